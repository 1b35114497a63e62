/** The choice of a person's last message, from what opencode lists (daemon/adapters/opencode/messages.ts). */
import * as Effect from "effect/Effect";
import { expect, test } from "vitest";
import {
  handOver,
  lastChoice,
  nativeMessageId,
  type Prompt,
} from "../../../daemon/adapters/opencode/messages.ts";

const message = (role: string, model: string) => {
  const [providerID, modelID] = model.split("/");
  return { info: { id: "m", role, agent: "build", model: { providerID, modelID } }, parts: [] };
};
const choice = (messages: readonly object[]) => {
  const calls = { get: () => Effect.succeed(messages), post: () => Effect.succeed("") };
  return Effect.runPromise(lastChoice({ calls, session: "s", fault: () => null } as never));
};

test("the next message has the model of the last one", async () => {
  const messages = [message("user", "a/one"), message("user", "a/two"), message("assistant", "a/three")];
  expect(await choice(messages)).toEqual({ agent: "build", model: "a/two", effort: null });
});

test("a restored message of an unknown model gives the next one no model", async () => {
  expect(await choice([message("user", "unknown/unknown")])).toEqual({
    agent: "build",
    model: null,
    effort: null,
  });
});

test("before the first message there is no choice", async () => {
  expect(await choice([])).toBeNull();
});

test("a command goes to opencode's own call, with its arguments, its files and what is said of them", async () => {
  const file = { type: "file", mime: "image/png", filename: "a.png", url: "data:" } as const;
  const prompt: Prompt = {
    id: "ours",
    sentMs: 1,
    text: "/greet heron",
    more: [file, { type: "text", text: "- a.png", synthetic: true }],
    agent: "build",
    model: "a/two",
    effort: null,
    command: { name: "greet", rest: "heron" },
  };
  const native = nativeMessageId(prompt);
  const posted: unknown[] = [];
  const calls = {
    get: () => Effect.succeed(posted.length === 0 ? [] : [{ info: { id: native, role: "user" } }]),
    // It answers when the turn is over.
    post: (path: string, body: unknown) =>
      Effect.andThen(
        Effect.sync(() => posted.push(path, body)),
        Effect.never,
      ),
    busySessions: Effect.sync(() => (posted.length === 0 ? [] : ["s"])),
  };
  const handed = await Effect.runPromise(
    handOver({ calls, session: "s", fault: () => null } as never, prompt),
  );
  expect(handed).toEqual({ outcome: "accepted" });
  expect(posted).toEqual([
    "/session/s/command",
    {
      messageID: native,
      command: "greet",
      arguments: "heron\n\n- a.png",
      parts: [file],
      agent: "build",
      model: "a/two",
    },
  ]);
});

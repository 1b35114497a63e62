/** The choice of a person's last message, from what opencode lists (daemon/adapters/opencode/messages.ts). */
import * as Effect from "effect/Effect";
import { expect, test } from "vitest";
import { lastChoice } from "../../daemon/adapters/opencode/messages.ts";

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

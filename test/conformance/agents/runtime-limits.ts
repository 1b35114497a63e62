/** Duties of an agent runtime where something is refused or too large: the turn says it, and the conversation goes on. */
import { crc32, deflateSync } from "node:zlib";
import { expect } from "vitest";
import { POLL } from "../../support/service/sessions/live-session.ts";
import type { Json } from "../../support/service/process-service.ts";
import { refused, type RuntimeCase, since, texts } from "./runtime-talk.ts";

const part = (type: string, body: Buffer): Buffer => {
  const named = Buffer.concat([Buffer.from(type), body]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
};

/** A grey picture one pixel high, PNG. */
const pictureOf = (width: number): Buffer => {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(1, 4);
  head.writeUInt8(8, 8);
  const row = Buffer.alloc(width + 1, 127);
  row.writeUInt8(0, 0);
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    part("IHDR", head),
    part("IDAT", deflateSync(row)),
    part("IEND", Buffer.alloc(0)),
  ]);
};

export const LIMIT_CASES: readonly RuntimeCase[] = [
  {
    name: "ends its turn at a limit of spend, and goes on once that is raised",
    ability: null,
    run: async ({ start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-allow` });
      await talk.session.call("PUT", "spend-limit", { tokens: 1 });
      await talk.turn([{ run: "echo limited" }, { run: "echo limited" }, { say: "Third." }]);
      expect(await talk.last()).toMatchObject({ state: "failed", error: { code: "spend_limit" } });
      await talk.session.call("PUT", "spend-limit", { tokens: 1_000_000_000 });
      expect(texts(await talk.turn([{ say: "Back again." }]))).toContain("Back again.");
      expect(await talk.last()).toMatchObject({ state: "completed" });
    },
  },
  {
    name: "names a request that the provider refuses",
    ability: null,
    run: (conversation) => refused(conversation, 400, { code: "model_refused" }),
  },
  {
    name: "names a conversation that is too long for the model, or shortens it",
    ability: null,
    run: async ({ start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-allow` });
      await talk.turn([{ say: "It begins." }]);
      const words =
        "prompt is too long: 300000 tokens are more than the maximum context length of 200000 tokens";
      const ended = async () => (await talk.last())["at"];
      const before = await ended();
      // Some runtimes show its items as those of another turn.
      await talk.say(Array.from({ length: 6 }, () => ({ refuse: 400, words })));
      await expect.poll(ended, POLL).not.toBe(before);
      await expect.poll(() => talk.isIdle(), POLL).toBe(true);
      const { state, error } = await talk.last();
      if (state !== "completed") expect(error).toMatchObject({ code: "context_exceeded" });
      expect(texts(await talk.turn([{ say: "Back again." }]))).toContain("Back again.");
    },
  },
  {
    name: "goes on after a picture that models refuse for its size",
    ability: null,
    run: async ({ place, talk }) => {
      const body = pictureOf(8001);
      const { url, headers } = talk.session.address("attachments?name=wide.png");
      const sent = await fetch(url, {
        method: "POST",
        body: new Uint8Array(body),
        headers: { ...headers, "content-type": "image/png" },
      });
      const { id } = (await sent.json()) as Json;
      const before = place.model.calls.length;
      expect(texts(await talk.turn([{ say: "It is wide." }], { attachments: [id] }))).toContain(
        "It is wide.",
      );
      expect(texts(await talk.turn([{ say: "Back again." }]))).toContain("Back again.");
      const heard = since(place, before)
        .map(({ text }) => text)
        .join("\n");
      expect(heard).toContain("wide.png");
      expect(heard).not.toContain(body.toString("base64").slice(60, 100));
    },
  },
];

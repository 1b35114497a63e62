/** Conformance: files for the first message of a session that does not exist yet. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { Admissions } from "../../../../src/store/ports/triggers/admissions.ts";
import { Fires } from "../../../../src/store/ports/triggers/fires.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { UPLOAD_UNUSED_MS, Uploads } from "../../../../src/store/ports/sessions/uploads.ts";
import { admitOne, newSession, requested } from "../../../support/world/sessions.ts";
import { addPerson, makeWorld, NOON, type World } from "../../../support/world/world.ts";
import type { Check } from "../fixture.ts";

const upload = ({ projectId, userId }: World, text: string) => ({
  projectId,
  createdBy: userId,
  id: randomUUID(),
  name: `${text}.txt`,
  mediaType: "text/plain",
  sha256: "0".repeat(64),
  content: Buffer.from(text),
  now: NOON,
});

/** All steps. @returns how many were removed */
const pruned = Effect.fnUntraced(function* (now: number) {
  const { prune } = yield* Uploads;
  let removed = 0;
  for (let step = yield* prune(now); step > 0; step = yield* prune(now)) removed += step;
  return removed;
});

export const checkUploads = (check: Check): void => {
  describe("files for a future session", () => {
    check(
      "are their person's, and go with a request that waits until its session has them",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { keep, heads, claim, get, handedOver } = yield* Uploads;
        const [one, two] = [upload(world, "one"), upload(world, "two")];
        expect([yield* keep(one), yield* keep(two)]).toEqual(["kept", "kept"]);
        const owner = { projectId: world.projectId, createdBy: world.userId };
        const ids = [two.id, one.id];
        expect((yield* heads(owner, ids)).map(({ name, bytes }) => [name, bytes])).toEqual([
          ["two.txt", 3],
          ["one.txt", 3],
        ]);
        expect(yield* heads({ ...owner, createdBy: yield* addPerson(world) }, ids)).toEqual([]);

        const firstMessage = { text: "Read both.", attachments: ids, author: "Ada" };
        const request = requested(world, newSession(world, { initialPrompt: null, firstMessage }));
        yield* claim(ids, { fireId: request.fire.id, until: NOON + 10 * UPLOAD_UNUSED_MS });
        expect(yield* admitOne(world, request)).toMatchObject({ outcome: "queued" });
        const { queue, prompt } = yield* Fires;
        expect(yield* queue({ accountId: world.accountId, userId: null })).toMatchObject([{ files: 2 }]);
        expect(yield* prompt(request.fire.id)).toBe("Read both.");
        expect(yield* get(one.id)).toMatchObject({ name: "one.txt" });

        const session = newSession(world, { firstMessage });
        yield* handedOver(session.id, ids);
        expect([yield* get(one.id), yield* get(two.id)]).toEqual([null, null]);
      }),
    );

    check(
      "are in the session's record until its conversation has them",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { get } = yield* Sessions;
        const firstMessage = { text: "Read.", attachments: [randomUUID()], author: "Ada" };
        const session = newSession(world, { initialPrompt: null, firstMessage });
        yield* admitOne(world, requested(world, session));
        expect((yield* get(session.id))?.firstMessage).toEqual(firstMessage);
        yield* (yield* Uploads).handedOver(session.id, firstMessage.attachments);
        expect((yield* get(session.id))?.firstMessage).toBeNull();
      }),
    );

    check(
      "end with a request that is cancelled, and at their limit",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { keep, claim, get } = yield* Uploads;
        const [waiting, unused] = [upload(world, "waiting"), upload(world, "unused")];
        yield* keep(waiting);
        yield* keep(unused);
        const request = requested(world, newSession(world));
        yield* claim([waiting.id], { fireId: request.fire.id, until: NOON + 10 * UPLOAD_UNUSED_MS });
        yield* admitOne(world, request);
        yield* pruned(NOON + UPLOAD_UNUSED_MS);
        expect([yield* get(waiting.id), yield* get(unused.id)]).toMatchObject([{ id: waiting.id }, null]);
        yield* (yield* Admissions).cancel(request.fire.id, NOON);
        yield* pruned(NOON);
        expect(yield* get(waiting.id)).toBeNull();
      }),
    );
  });
};

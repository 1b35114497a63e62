/** Previews: a link opens once, and its cookie ends at its expiry or with its token, session or sandbox. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { Previews, PREVIEWS_PER_SESSION } from "../../../../src/store/ports/sessions/previews.ts";
import { type Check } from "../fixture.ts";
import { admitSession, openSandbox } from "../../../support/world/sessions.ts";
import { hash, makeWorld, NOON } from "../../../support/world/world.ts";

const PORT = 5173;

/** A session with a sandbox, a token, and links for it. */
const scene = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const previews = yield* Previews;
  const token = { id: randomUUID(), hash: hash() };
  yield* (yield* Identity).createToken({
    ...token,
    accountId: world.accountId,
    userId: world.userId,
    projectId: null,
    name: "previews",
    origin: "user",
    expiresAt: null,
    now: NOON,
  });
  const sessionId = yield* admitSession(world);
  const sandbox = yield* openSandbox(sessionId);
  const issue = Effect.fnUntraced(function* (
    fields: { readonly expiresAt?: number; readonly now?: number } = {},
  ) {
    const link = {
      hash: hash(),
      tokenId: token.id,
      sessionId,
      sandboxId: sandbox.id,
      port: PORT,
      expiresAt: NOON + 1000,
      now: NOON,
      ...fields,
    };
    yield* previews.issue(link);
    return link.hash;
  });
  const opening = (linkHash: string) => ({
    linkHash,
    cookieHash: hash(),
    sessionId,
    port: PORT,
    expiresAt: NOON + 5000,
    now: NOON,
  });
  const stands = {
    projectId: world.projectId,
    sessionId,
    sandboxId: sandbox.id,
    port: PORT,
    tokenHash: token.hash,
    expiresAt: NOON + 5000,
  };
  return { ...previews, issue, opening, stands };
});

export const checkPreviews = (check: Check): void => {
  describe("previews", () => {
    check(
      "exchange a link for a cookie, which is not a link itself, until the cookie's end",
      Effect.gen(function* () {
        const { issue, open, find, opening, stands } = yield* scene;
        const link = yield* issue();
        expect(yield* find(link, NOON)).toBe(null);
        const request = opening(link);
        expect(yield* open(request)).toBe(true);
        expect(yield* find(request.cookieHash, NOON + 4999)).toEqual(stands);
        expect(yield* find(request.cookieHash, NOON + 5000)).toBe(null);
        expect(yield* find(link, NOON)).toBe(null);
        expect(yield* find(hash(), NOON)).toBe(null);
      }),
    );

    check(
      "open a link once, for any number of concurrent requests",
      Effect.gen(function* () {
        const { issue, open, find, opening } = yield* scene;
        const link = yield* issue();
        const requests = Array.from({ length: 12 }, () => opening(link));
        const answers = yield* Effect.all(requests.map(open), { concurrency: "unbounded" });
        expect(answers.filter(Boolean)).toEqual([true]);
        const found = yield* Effect.all(requests.map(({ cookieHash }) => find(cookieHash, NOON)));
        expect(found.map((preview) => preview !== null)).toEqual(answers);
        expect(yield* open(opening(link))).toBe(false);
        // A cookie is not a link, though its row was one.
        const first = requests.find((_, index) => answers[index]);
        expect(yield* open(opening(first?.cookieHash ?? ""))).toBe(false);
      }),
    );

    check(
      "open no link after its end, or for another session, port or origin",
      Effect.gen(function* () {
        const { issue, open, opening } = yield* scene;
        const link = yield* issue();
        const request = opening(link);
        expect(yield* open({ ...request, now: NOON + 1000 })).toBe(false);
        expect(yield* open({ ...request, port: PORT + 1 })).toBe(false);
        expect(yield* open({ ...request, sessionId: randomUUID() })).toBe(false);
        expect(yield* open(opening(hash()))).toBe(false);
        expect(yield* open({ ...request, now: NOON + 999 })).toBe(true);
      }),
    );

    check(
      "are limited to the newest of a session, and expired ones are removed",
      Effect.gen(function* () {
        const { issue, open, find, opening } = yield* scene;
        const ended = yield* issue({ expiresAt: NOON + 1 });
        const first = yield* issue({ now: NOON + 1 });
        const cookie = opening(yield* issue({ now: NOON + 2 }));
        yield* open(cookie);
        for (let made = 2; made < PREVIEWS_PER_SESSION; made += 1) {
          yield* issue({ now: NOON + 1 + made, expiresAt: NOON + 60_000 });
        }
        expect(yield* find(cookie.cookieHash, NOON)).not.toBe(null);
        expect(yield* open({ ...opening(ended), now: NOON })).toBe(false);
        // One more than fits: only the oldest is removed.
        yield* issue({ now: NOON + 500 });
        expect(yield* open(opening(first))).toBe(false);
        expect(yield* find(cookie.cookieHash, NOON)).not.toBe(null);
      }),
    );
  });
};

import { expect, test } from "vitest";
import { unaccounted, type FireRow, type Ledger, type SessionRow } from "./webhook-ledger.ts";
import type { Answer } from "./webhook-sender.ts";

const QUEUED = { status: "queued", reason: "account_session_cap" };
const fired = (session: string) => ({ status: "fired", session_id: session });

let clock = 0;
/** An answer that began after all earlier ones had ended. */
const answer = (body: object, status = 202): Answer => {
  clock += 2;
  return { status, body: { ...body }, begun: clock - 1, ended: clock };
};
const again = (body: object): Answer => answer({ ...body, duplicate: true });

const row = (id: string, given: Partial<FireRow> = {}): FireRow => ({
  id,
  status: "fired",
  delivery_id: "d1",
  session_id: "s1",
  ...given,
});
const session = (id: string, fire: string | null): SessionRow => ({ id, fire_id: fire });

const GOOD: Ledger = { fires: [row("f1")], sessions: [session("s1", "f1")] };
const WAITING: Ledger = { fires: [row("f1", { status: "queued", session_id: null })], sessions: [] };

/** The findings if one delivery got these answers. */
const found = (answers: readonly Answer[], ledger: Ledger) => unaccounted(new Map([["d1", answers]]), ledger);

test("accounts for a delivery that fired, one that waits, and one that waited and fired", () => {
  expect(found([answer(fired("s1")), again(fired("s1"))], GOOD)).toEqual([]);
  expect(found([answer(QUEUED), again(QUEUED)], WAITING)).toEqual([]);
  expect(found([answer(QUEUED), again(fired("s1"))], GOOD)).toEqual([]);
});

test("accounts for a delivery whose answers were lost, whatever its result", () => {
  expect(found([answer({}, 503)], { fires: [], sessions: [] })).toEqual([]);
  expect(found([answer({}, 503)], GOOD)).toEqual([]);
  expect(found([again(fired("s1"))], GOOD)).toEqual([]);
});

test("accounts for a row of a repeated delivery", () => {
  const fires = [row("f1"), row("f2", { status: "duplicate" })];
  expect(found([answer(fired("s1")), again(fired("s1"))], { ...GOOD, fires })).toEqual([]);
});

test("accepts two answers that crossed, in either order", () => {
  const early: Answer = { ...again(QUEUED), begun: 0 };
  expect(found([answer(fired("s1")), early], GOOD)).toEqual([]);
});

test("finds an accepted delivery without a row, or with two [I4]", () => {
  expect(found([answer(QUEUED)], { fires: [], sessions: [] })).toEqual(["d1 has 0 rows in the ledger"]);
  const fires = [row("f1"), row("f2", { status: "queued", session_id: null })];
  expect(found([answer(fired("s1"))], { ...GOOD, fires })).toEqual(["d1 has 2 rows in the ledger"]);
});

test("finds a refused delivery", () => {
  expect(found([answer({}, 401)], { fires: [], sessions: [] })).toEqual(["d1 was refused with 401"]);
});

test("finds answers of one delivery that contradict each other [I5]", () => {
  expect(found([answer(fired("s1")), again(fired("s2"))], GOOD)).toEqual(["d1 was answered with 2 sessions"]);
  expect(found([answer(QUEUED), answer(QUEUED)], WAITING)).toEqual(["d1 was taken for new more than once"]);
  expect(found([answer(fired("s1")), again(QUEUED)], GOOD)).toEqual([
    "d1 was told that it waits after it was told that it had fired",
  ]);
});

test("finds a delivery whose row differs from its answer", () => {
  expect(found([answer(fired("s9"))], GOOD)).toEqual([
    "d1 was answered with session s9, and its row is fired with session s1",
  ]);
  expect(found([answer(fired("s1"))], WAITING)).toEqual([
    "d1 was answered with session s1, and its row is queued with session null",
  ]);
});

test("finds two sessions of one delivery", () => {
  const sessions = [session("s1", "f1"), session("s2", "f1")];
  expect(found([answer(fired("s1"))], { ...GOOD, sessions })).toEqual([
    "d1 has 2 sessions",
    "session s2 has no fire that names it",
  ]);
});

test("finds a session without a cause, a fire without its session, and a fire that was not sent [I4]", () => {
  const sent = [answer(fired("s1"))];
  expect(found(sent, { ...GOOD, sessions: [...GOOD.sessions, session("s2", null)] })).toEqual([
    "session s2 has no fire that names it",
  ]);
  expect(found(sent, { ...GOOD, sessions: [] })).toEqual(["fire f1 has fired and session s1 is missing"]);
  const foreign = row("f2", { delivery_id: "d2", status: "queued", session_id: null });
  expect(found(sent, { ...GOOD, fires: [...GOOD.fires, foreign] })).toEqual([
    "fire f2 is of no delivery that was sent",
  ]);
});

test("finds a session that two fires name", () => {
  const log = new Map([
    ["d1", [answer(fired("s1"))]],
    ["d2", [answer(fired("s1"))]],
  ]);
  const fires = [row("f1"), row("f2", { delivery_id: "d2" })];
  expect(unaccounted(log, { ...GOOD, fires })).toEqual(["session s1 is named by 2 fires"]);
});

/** The numbers of turns, for any order of handovers, sightings and restarts. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { BEGIN_WITHIN_MS, TurnBook } from "../../../daemon/agent/turn-book.ts";
import type { TurnNow } from "../../../src/domain/conversation/conversation.ts";

const IDLE: TurnNow = { state: "idle", waiting_for: null };
const RUNNING: TurnNow = { state: "running", waiting_for: null };
const ASKING: TurnNow = { state: "requires_action", waiting_for: "per_1" };

/** A book, and what it told. */
const start = () => {
  const told: (readonly [TurnNow["state"], number])[] = [];
  const book = new TurnBook(({ state }, ended) => void told.push([state, ended]));
  return { book, told };
};
const begun = { hasBegun: true, nowMs: 0 };
const unsure = { hasBegun: false, nowMs: 0 };

test("a turn runs from its handover until the runtime rests", () => {
  const { book, told } = start();
  expect(book.begin("a")).toBe(1);
  book.sawRest(1, begun);
  expect(book.open?.number).toBe(1);
  book.handed(1, begun);
  book.sawRest(1, unsure);
  expect([book.open, book.ended]).toEqual([null, 1]);
  book.sawRest(1, begun);
  expect(book.begin("b")).toBe(2);
  expect(told).toEqual([
    ["running", 0],
    ["running", 0],
    ["idle", 1],
    ["running", 1],
  ]);
});

test("a turn that was not seen to begin ends after a while, and not before", () => {
  const { book } = start();
  book.begin("a");
  book.handed(1, unsure);
  book.sawRest(1, { hasBegun: false, nowMs: BEGIN_WITHIN_MS - 1 });
  expect(book.ended).toBe(0);
  book.sawRest(1, { hasBegun: false, nowMs: BEGIN_WITHIN_MS });
  expect(book.ended).toBe(1);
  book.begin("b");
  book.handed(2, unsure);
  book.sawWork(2);
  book.sawRest(2, unsure);
  expect(book.ended).toBe(2);
});

test("a look at the runtime counts for no later turn", () => {
  const { book } = start();
  book.begin("a");
  book.refused(1);
  book.begin("b");
  book.handed(2, unsure);
  book.sawWork(1);
  book.sawWork(null);
  book.sawRest(1, begun);
  expect(book.open).toMatchObject({ number: 2, hasBegun: false });
});

test("a message whose handover failed keeps its turn, and no other one gets it", () => {
  const { book } = start();
  expect(book.begin("a")).toBe(1);
  book.handed(1, unsure);
  expect(book.begin("a")).toBe(1);
  expect(() => book.begin("b")).toThrow("turn 1 is open");
  book.refused(1);
  expect(book.begin("b")).toBe(2);
});

test("the runtime's own work is a turn, also where a message finds it", () => {
  const { book } = start();
  book.sawWork(null);
  expect(book.open).toMatchObject({ number: 1, messageId: null });
  book.sawRest(1, unsure);
  book.begin("a");
  book.foundBusy(2);
  expect(book.open).toMatchObject({ number: 2, messageId: null, hasBegun: true });
  expect(() => book.begin("a")).toThrow("turn 2 is open");
});

test("an end of the runtime ends the turn that it has, and not one that it gets again", () => {
  const { book, told } = start();
  book.begin("a");
  book.runtimeEnded();
  expect(book.open?.number).toBe(1);
  book.handed(1, begun);
  book.observed(ASKING);
  book.runtimeEnded();
  book.runtimeEnded();
  expect(book.ended).toBe(1);
  expect(told.at(-1)).toEqual(["idle", 1]);
});

test("only the turn that is open can be stopped, and its successor is not", () => {
  const { book } = start();
  expect(book.stop(1)).toBe(false);
  book.begin("a");
  expect([book.stop(2), book.stop(1)]).toEqual([false, true]);
  book.handed(1, begun);
  expect(book.open?.isStopping).toBe(true);
  book.sawRest(1, begun);
  expect(book.stop(1)).toBe(false);
  book.begin("b");
  expect(book.open?.isStopping).toBe(false);
});

test("late events begin and end no turn, and tell what an open one waits for", () => {
  const { book, told } = start();
  book.observed(RUNNING);
  book.observed(IDLE);
  expect(told).toEqual([]);
  book.sawWork(null);
  book.observed(ASKING);
  book.observed(IDLE);
  expect(told).toEqual([
    ["running", 0],
    ["requires_action", 0],
    ["running", 0],
  ]);
});

type Act = (book: TurnBook, nowMs: number) => void;
const acts: readonly (readonly [string, Act])[] = [
  ["begin", (book) => void (book.open === null && book.begin("m"))],
  ["handed", (book, nowMs) => book.handed(book.ended + 1, { hasBegun: true, nowMs })],
  ["unsure", (book, nowMs) => book.handed(book.ended + 1, { hasBegun: false, nowMs })],
  ["busy", (book) => book.foundBusy(book.ended + 1)],
  ["refused", (book) => book.refused(book.ended + 1)],
  ["work", (book) => book.sawWork(book.open?.number ?? null)],
  ["late work", (book) => book.sawWork(book.ended)],
  ["rest", (book, nowMs) => book.sawRest(book.ended + 1, { hasBegun: false, nowMs })],
  ["late rest", (book, nowMs) => book.sawRest(book.ended, { hasBegun: true, nowMs })],
  ["gone", (book) => book.runtimeEnded()],
  ["stop", (book) => void book.stop(book.ended + 1)],
  ["running", (book) => book.observed(RUNNING)],
  ["asking", (book) => book.observed(ASKING)],
  ["idle", (book) => book.observed(IDLE)],
];

test("in any order, each number ends once, and the state works exactly while a turn is open", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...acts), { maxLength: 60 }), (steps) => {
      const { book, told } = start();
      steps.forEach(([, act], at) => act(book, at * 10_000));
      let [isWorking, last] = [false, 0];
      for (const [state, ended] of told) {
        // A step back, or more than one, would lose a turn's end. So would rest after work without an end.
        expect(ended - last).toBe(state === "idle" && isWorking ? 1 : 0);
        [isWorking, last] = [state !== "idle", ended];
      }
      expect([isWorking, last]).toEqual([book.open !== null, book.ended]);
      // After any of it, the runtime's rest frees the book.
      const { open } = book;
      if (open === null) return;
      if (open.isHanding) book.handed(open.number, { hasBegun: false, nowMs: 600_000 });
      book.sawRest(open.number, { hasBegun: false, nowMs: 600_000 + BEGIN_WITHIN_MS });
      expect([book.open, book.ended]).toEqual([null, open.number]);
    }),
  );
});

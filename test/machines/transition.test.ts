/** What the history of a machine says of an event. */
import { expect, it } from "vitest";
import { eventDetail } from "../../src/machines/transition.ts";

it.each([
  [1, ["q1"], "1 turn has ended, 1 open request"],
  [2, ["q1", "q2"], "2 turns have ended, 2 open requests"],
  [0, [], "0 turns have ended"],
])("says how many turns have ended, and what is asked: %d", (ended, requests, words) => {
  const event = { type: "turn.reported", ended, isWorking: false, requests };
  expect(eventDetail(event)).toBe(words);
});

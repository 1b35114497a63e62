import { expect, it } from "vitest";
import { applyItem, emptyConversation, type Item } from "../../../dashboard/conversation/reading/model.ts";
import { sampleItem, text } from "../samples/sample-conversation.ts";
import { turnState } from "../../../dashboard/conversation/foot/turn-state.ts";

const NOW = 100_000;
// eslint-disable-next-line typescript/no-unsafe-type-assertion -- it has all fields of one
const ANSWER = sampleItem("a", { ...text("Done."), place: 1, seq: 1 }) as unknown as Item;

const at = (
  state: "idle" | "running" | "requires_action",
  { status = "running", activity = "working", calls = 0, agoMs = 12_000, isFirst = false } = {},
) => {
  const conversation = emptyConversation();
  conversation.turn = { state, since: new Date(NOW - agoMs).toISOString(), waiting_for: null };
  if (!isFirst) applyItem(conversation, ANSWER);
  // It came long ago.
  conversation.heardMs = -Infinity;
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- a status of the API
  const session = { status, activity, pending_approvals: calls, last_turn: null } as Parameters<
    typeof turnState
  >[1];
  const { word, workedMs, silentMs } = turnState(conversation, session, NOW);
  return [word, workedMs, silentMs];
};

it("says what the agent does, and for how long", () => {
  expect(at("idle")).toEqual(["Resting", null, null]);
  expect(at("running")).toEqual(["Working", 12_000, null]);
  expect(at("requires_action")).toEqual(["Needs you", 12_000, null]);
});

it("works until its first turn begins, and rests as soon as a turn has ended", () => {
  expect(at("idle", { isFirst: true })).toEqual(["Working", null, null]);
  expect(at("running", { activity: "resting" })).toEqual(["Working", 12_000, null]);
});

it("names a model that is silent for half a minute, unless a call waits for a person", () => {
  expect(at("running", { agoMs: 30_000 })).toEqual(["Working", 30_000, 30_000]);
  expect(at("running", { agoMs: 30_000, calls: 1 })).toEqual(["Needs you", 30_000, null]);
});

it("says of an agent without work what the head of the page says", () => {
  expect(at("idle", { activity: "ready_for_review" })).toEqual(["Ready for review", null, null]);
  expect(at("idle", { activity: "failed" })).toEqual(["Failed", null, null]);
  expect(at("running", { status: "provisioning", activity: "starting" })).toEqual(["Starting", null, null]);
  expect(at("running", { status: "stopped", activity: "asleep" })).toEqual(["Asleep", null, null]);
});

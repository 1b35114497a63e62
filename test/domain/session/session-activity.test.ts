import { ACTIVITY_WORDS } from "../../../src/domain/session/activity-words.ts";
import { expect, it } from "vitest";
import {
  ACTIVITIES,
  oldestWait,
  sessionActivity,
  type ActivityFacts,
} from "../../../src/domain/session/session-activity.ts";
import { SESSION_STATUSES } from "../../../src/domain/session/session.ts";

const RESTING: ActivityFacts = {
  status: "running",
  conversation: null,
  oldestApproval: null,
  unsaved: null,
  stopReason: null,
  asked: null,
  restarts: false,
  initialPrompt: null,
  lastTurn: null,
  changeRequest: null,
  changes: null,
};

const turn = (
  state: "idle" | "running" | "requires_action",
  since = 1,
): Pick<ActivityFacts, "conversation"> => ({
  conversation: { turn: { state, since, waitingFor: null }, turnRequest: null },
});
const FAILED_TURN = {
  lastTurn: { state: "failed", error: { code: "no_model", message: "no key" } },
} as const;
const COMPLETED_TURN = { lastTurn: { state: "completed", error: null } } as const;
const PUSHED = { changes: { files: 2, head: "b" } };
const CALL = { oldestApproval: { id: "c", connector: "docs", tool: "delete", at: 2 } };
const ASKED = { asked: { kind: "question", text: "Which colour?" } } as const;
const UNSAVED = { unsaved: { since: 3 } };
const request = (status: "open" | "merged" | "closed", head: string | null = "b") => ({
  changeRequest: { status, head },
});

const TABLE: readonly (readonly [expected: string, Partial<ActivityFacts>])[] = [
  ["queued", { status: "queued" }],
  ["queued", { status: "stopped", restarts: true, ...COMPLETED_TURN, ...request("merged") }],
  ["queued", { status: "failed", restarts: true }],
  ["resting", { restarts: true }],
  ["starting", { status: "provisioning", restarts: true }],
  ["starting", { status: "branching" }],
  ["starting", { status: "provisioning", ...FAILED_TURN }],
  ["working", turn("running")],
  ["working", { ...turn("running"), ...FAILED_TURN, ...request("merged") }],
  ["working", { initialPrompt: "Fix it." }],
  ["resting", { initialPrompt: "Fix it.", ...COMPLETED_TURN }],
  ["resting", {}],
  ["resting", turn("idle")],
  ["asleep", { status: "stopped" }],
  // The turn of a sandbox that has ended is over.
  ["asleep", { status: "stopped", ...turn("running") }],
  ["asleep", { status: "stopped", ...turn("requires_action"), initialPrompt: "Fix it." }],
  ["needs_you", turn("requires_action")],
  ["needs_you", { ...turn("running"), ...CALL }],
  ["needs_you", { status: "stopped", ...CALL }],
  ["needs_you", { status: "provisioning", ...CALL }],
  ["needs_you", { ...UNSAVED, ...request("merged") }],
  ["asleep", { status: "stopped", ...UNSAVED }],
  ["needs_you", { status: "stopped", stopReason: "idle", ...ASKED, ...request("open") }],
  ["asleep", { status: "stopped", stopReason: "requested", ...ASKED }],
  ["starting", { status: "provisioning", ...ASKED }],
  ["resting", ASKED],
  ["failed", { status: "failed", ...request("open") }],
  ["failed", { status: "failed", ...request("merged") }],
  ["failed", FAILED_TURN],
  ["failed", { status: "stopped", ...FAILED_TURN, ...request("open"), stopReason: "idle" }],
  ["asleep", { status: "stopped", ...FAILED_TURN, stopReason: "requested" }],
  ["done", { ...FAILED_TURN, ...request("merged") }],
  ["ready_for_review", request("open")],
  ["ready_for_review", { status: "stopped", ...request("open") }],
  ["ready_for_review", PUSHED],
  ["ready_for_review", { status: "stopped", ...PUSHED }],
  ["resting", { changes: { files: 0, head: "b" } }],
  ["done", { ...PUSHED, ...request("merged") }],
  ["done", { status: "stopped", ...PUSHED, ...request("closed") }],
  ["done", request("closed", null)],
  ["done", { status: "completed" }],
  // Pushed after the end of the change request.
  ["ready_for_review", { ...PUSHED, ...request("merged", "a") }],
  ["ready_for_review", { status: "stopped", ...PUSHED, ...request("closed", "a") }],
];

it.each(TABLE)("is %s with %j", (expected, facts) => {
  expect(sessionActivity({ ...RESTING, ...facts })).toBe(expected);
});

it("has a row of the table for each activity and each status", () => {
  expect(new Set(TABLE.map(([activity]) => activity))).toEqual(new Set(ACTIVITIES));
  const statuses = new Set(TABLE.map(([, facts]) => facts.status ?? "running"));
  expect(statuses).toEqual(new Set(SESSION_STATUSES));
});

it("needs a person exactly while something waits", () => {
  for (const [, facts] of TABLE) {
    const whole = { ...RESTING, ...facts };
    expect(oldestWait(whole) !== null).toBe(sessionActivity(whole) === "needs_you");
  }
});

it("names what waits longest", () => {
  const all = { ...RESTING, ...turn("requires_action", 1), ...CALL, ...UNSAVED };
  const text = "The agent waits for an answer.";
  expect(oldestWait(all)).toEqual({ kind: "question", id: null, text });
  const { conversation } = all;
  const asked = conversation && {
    turn: { ...conversation.turn, waitingFor: "r" },
    turnRequest: { kind: "permission", text: "rm -r build" } as const,
  };
  expect(oldestWait({ ...all, conversation: asked })).toEqual({
    kind: "permission",
    id: "r",
    text: "rm -r build",
  });
  const later = { ...all, ...turn("requires_action", 9) };
  expect(oldestWait(later)).toEqual({ kind: "approval", id: "c", text: "delete of docs" });
  expect(oldestWait({ ...later, oldestApproval: null })?.kind).toBe("work_unsaved");
});

const inGroup = (group: string) => ACTIVITIES.filter((one) => ACTIVITY_WORDS[one].group === group);

it("has a group of a list for each activity", () => {
  expect(inGroup("needs_you")).toEqual(["needs_you", "failed"]);
  expect(inGroup("working")).toEqual(["queued", "starting", "working"]);
  expect(inGroup("ready_for_review")).toEqual(["ready_for_review"]);
  expect(inGroup("done")).toEqual(["resting", "asleep", "done"]);
});

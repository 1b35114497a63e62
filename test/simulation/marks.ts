/**
 * Calls that a run's seed marks: the so-many-th of them from the first step on goes wrong. Crashes at counted places, and
 * shares of calls that fail, fall where most calls are; marks fall everywhere alike, so that each fault point is met often.
 */
import type { CallFault, Slowness } from "./world/boundary.ts";
import type { Random } from "./random.ts";

/** What may go wrong with a marked call. */
type MarkedFault = "before" | "after" | CallFault | "late";

export interface Mark {
  /** With the call, as `refused store.Fires.get`. */
  readonly point: string;
  /** Which of the calls, the first being 1. */
  readonly nth: number;
}

type Names = readonly [string, ...string[]];

/** Calls that nearly every run makes. */
const COMMON: Names = [
  "daemon.abort",
  "daemon.health",
  "saves.save",
  "git.branchTip",
  "git.createBranch",
  "git.resolveBase",
  "provider.create",
  "provider.destroy",
  "provider.end",
  "provider.link",
  "provider.list",
  "provider.logs",
  "store.Admissions.admit",
  "store.Admissions.drain",
  "store.Admissions.skip",
  "store.Admissions.waitingAccounts",
  "store.Conversations.close",
  "store.Conversations.note",
  "store.Conversations.open",
  "store.Conversations.states",
  "store.Counters.wrong",
  "store.Conversations.memory.load",
  "store.Projects.changedSince",
  "store.Projects.get",
  "store.Projects.cursors",
  "store.Projects.keepCursors",
  "store.Projects.recordManifest",
  "store.Projects.states",
  "store.Sandboxes.beginBoot",
  "store.Sandboxes.get",
  "store.Sandboxes.memory.complete",
  "store.Sandboxes.memory.load",
  "store.Sandboxes.memory.save",
  "store.Sandboxes.noteSecrets",
  "store.Sandboxes.open",
  "store.Sandboxes.outdated",
  "store.Sandboxes.unheld",
  "store.Sandboxes.unsettled",
  "store.Secrets.current",
  "store.Secrets.current",
  "store.SessionLogs.keep",
  "store.Sessions.acceptBootstrap",
  "store.Sessions.get",
  "store.Sessions.memory.complete",
  "store.Sessions.memory.load",
  "store.Sessions.memory.save",
  "store.Sessions.ownerless",
  "store.Sessions.runningOn",
  "store.Sessions.unsettled",
  "store.StoreHealth.ping",
];
/** Those that many runs never make, the seldomest more than once: one is drawn as often as it stands here. */
const SELDOM: Names = [
  "daemon.env",
  "git.readFile",
  "provider.setSecretNames",
  "store.Admissions.cancel",
  "store.Counters.mend",
  "store.Counters.mend",
  "store.Counters.mend",
  "store.Events.prune",
  "store.Fires.get",
  "store.Fires.prune",
  "store.Fires.request",
  "store.Projects.update",
  "store.Secrets.nextVersion",
  "store.Secrets.prunePrevious",
  "store.Secrets.put",
  "store.Sessions.rename",
  "store.Sessions.rename",
  "store.WebhookRefusals.prune",
];
/** What change requests ask for. */
const OF_REQUESTS: Names = [
  "git.compare",
  "git.compare",
  "git.merge",
  "git.merge",
  "git.merge",
  "store.ChangeRequests.allOpen",
  "store.ChangeRequests.byId",
  "store.ChangeRequests.get",
  "store.ChangeRequests.memory.complete",
  "store.ChangeRequests.memory.load",
  "store.ChangeRequests.memory.save",
  "store.ChangeRequests.memory.save",
  "store.ChangeRequests.memory.save",
  "store.ChangeRequests.noteTips",
  "store.ChangeRequests.open",
  "store.ChangeRequests.unsettled",
];
/** What people ask for who talk to agents. */
export const OF_PEOPLE: Names = [
  "daemon.hand",
  "daemon.hand",
  "daemon.interrupt",
  "daemon.answer",
  "daemon.answer",
  "store.Conversations.attachmentHeads",
  "store.Conversations.close",
  "store.Conversations.get",
  "store.Conversations.item",
  "store.Conversations.memory.complete",
  "store.Conversations.memory.load",
  "store.Conversations.memory.save",
  "store.Conversations.memory.save",
  "store.Conversations.memory.save",
  "store.Conversations.note",
  "store.Conversations.open",
  "store.Conversations.page",
  "store.Conversations.unsettled",
];
/** What agents' calls that ask lead to. */
export const OF_APPROVALS: Names = [
  "store.Approvals.ask",
  "store.Approvals.attend",
  "store.Approvals.begin",
  "store.Approvals.begin",
  "store.Approvals.due",
  "store.Approvals.find",
  "store.Approvals.get",
  "store.Approvals.move",
  "store.Approvals.move",
  "store.Approvals.move",
  "upstream.call",
  "upstream.call",
];
/** All calls that can be marked in worlds without people. */
/** What waiting sandboxes ask for. */
export const OF_WARM: Names = [
  "daemon.claim",
  "daemon.prepare",
  "git.pack",
  "store.CloneCredentials.mint",
  "store.Sandboxes.forgetWarmth",
  "store.WarmSandboxes.abandoned",
  "store.WarmSandboxes.add",
  "store.WarmSandboxes.add",
  "store.WarmSandboxes.claim",
  "store.WarmSandboxes.claim",
  "store.WarmSandboxes.keep",
  "store.WarmSandboxes.ready",
  "store.WarmSandboxes.ready",
  "store.WarmSandboxes.remove",
  "store.WarmSandboxes.unclaimed",
];
export const MARKABLE: ReadonlySet<string> = new Set([...COMMON, ...SELDOM, ...OF_REQUESTS]);

/** Ports whose calls fail in ways of their own (ports.ts), so that a mark only crashes there. */
const FAILING_THEIR_OWN_WAY = /^(daemon|provider)\./;

/**
 * Statements that reach the database late: they wait there for a lock, or on the way. They take effect even where the caller
 * was interrupted meanwhile, or its actor lives on another node by now.
 */
const LATE: Names = [
  "store.Admissions.admit",
  "store.Admissions.cancel",
  "store.Fires.request",
  "store.Projects.recordManifest",
  "store.Sandboxes.beginBoot",
  "store.Sandboxes.memory.save",
  "store.Sandboxes.noteSecrets",
  "store.Sandboxes.open",
  "store.Sandboxes.open",
  "store.Sandboxes.open",
  "store.Sessions.memory.save",
  "store.Fires.request",
  "store.ChangeRequests.memory.save",
];

/** Calls of a slow store: what happens while they are on their way, there or back, must not get lost. */
const SLOW: ReadonlySet<string> = new Set([
  "store.Admissions.drain",
  "store.Conversations.close",
  "store.Conversations.item",
  "store.Conversations.note",
]);
/** The share of worlds whose store is slow. */
const SLOW_WORLDS = 0.25;

/** A common call goes wrong at one of so many of its first times. */
const NTH_MAX = 4;
const NTH_OF_PEOPLE_MAX = 20;

const markOf = (random: Random, names: Names, nthMax: number): Mark => {
  const name = random.pick(names);
  const faults: readonly [MarkedFault, ...MarkedFault[]] = FAILING_THEIR_OWN_WAY.test(name)
    ? ["before", "after"]
    : ["before", "after", "refused", "unknown"];
  return { point: `${random.pick(faults)} ${name}`, nth: random.between(1, nthMax) };
};

/** Where people talk: three of a conversation's calls, and one of its saves that is late. */
export const marksOfPeople = (random: Random): readonly Mark[] => [
  ...Array.from({ length: 3 }, () => markOf(random, OF_PEOPLE, NTH_OF_PEOPLE_MAX)),
  { point: "late store.Conversations.memory.save", nth: random.between(1, NTH_OF_PEOPLE_MAX) },
];

/** Where people decide on calls: three of an approval's calls. */
export const marksOfApprovals = (random: Random): readonly Mark[] =>
  Array.from({ length: 3 }, () => markOf(random, OF_APPROVALS, NTH_MAX));

/** Where sandboxes wait: three of their calls. */
export const marksOfWarm = (random: Random): readonly Mark[] =>
  Array.from({ length: 3 }, () => markOf(random, OF_WARM, NTH_MAX));

/** A run's marks: one of a call that it makes, two of such as it may not make at all, one that is late, and one of a change request's. */
export const marksOf = (random: Random): readonly Mark[] => [
  markOf(random, COMMON, NTH_MAX),
  markOf(random, SELDOM, 1),
  markOf(random, SELDOM, 1),
  { point: `late ${random.pick(LATE)}`, nth: random.between(1, NTH_MAX) },
  markOf(random, OF_REQUESTS, NTH_MAX),
];

/** The slowness of this seed's world. Null: its store is not slow. */
export const slownessOf = (random: Random): Slowness | null =>
  random.chance(SLOW_WORLDS) ? { calls: SLOW, random } : null;

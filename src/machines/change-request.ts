/**
 * A change request's life: api.md 6. Work reaches the default branch through a merge alone (spec 1).
 *
 * A merge takes four steps: the commits are noted, git merges them, the manifest is read, the request is merged. Each step
 * is a command, so a merge that a crash interrupts goes on from where it was.
 *
 *  C1 `merged` is entered after git has the work in the base branch, and after the manifest was read from there.
 *  C2 Git is asked to merge after the two commits are saved. They stay noted until the outcome is known.
 *  C3 One merge at a time: while it is under way, a request to merge or to close is refused.
 *  C4 A merge that git has made is not refused any more.
 *  C5 An open request with noted commits is in doubt: git may have merged them, and its answer was lost. It is closed, or
 *     taken out of doubt, after a look at the base branch. A merge that is found there is finished.
 *  C6 `merged` is final. A closed request leaves its state only when the code host has merged its pull request.
 *  C7 The pull request is brought in line after the start and after each end.
 *
 * Clients see three states. A request that is `merging` shows the status that it had before: its outcome is not known yet,
 * and a merge that is refused leaves it as it was.
 */
import { assign, setup } from "xstate";
import type { MergeRefusal, MergeSides } from "../domain/merge.ts";
import { pureMachine, type Snapshot } from "./step.ts";

export interface ChangeRequestContext {
  /** What `merging` is for: a merge, or a look at what became of one, after which the request stays open or is closed. */
  readonly aim: "merge" | "look" | "close" | null;
  /** The user who asked for the merge that was noted last; null for a merge at the code host. */
  readonly by: string | null;
  /** The merge commit's message; null: a default one. */
  readonly message: string | null;
  /** The commits of the merge that was noted last (C2). */
  readonly sides: MergeSides | null;
  /** The base branch's commit that has the work; null until git has it. */
  readonly commit: string | null;
  /** Why the last merge was refused. */
  readonly refusal: MergeRefusal | null;
}
export type ChangeRequestState = "open" | "merging" | "merged" | "closed";
export type ChangeRequestSnapshot = Snapshot<ChangeRequestState, ChangeRequestContext>;

export type ChangeRequestEvent =
  | { readonly type: "merge.requested"; readonly by: string | null; readonly message: string | null }
  | { readonly type: "close.requested" }
  /** A duty found the request in doubt while its repository answers. */
  | { readonly type: "look.requested" }
  /** `at` is the date of the merge commit, in ms: a repeated merge makes the same commit. */
  | { readonly type: "sides.noted"; readonly sides: MergeSides; readonly at: number }
  | { readonly type: "merged.in_git"; readonly sides: MergeSides; readonly commit: string }
  /** The base branch does not have the noted commits. */
  | { readonly type: "merge.missed" }
  /** `isSure`: git has not merged, and will not. */
  | { readonly type: "merge.refused"; readonly refusal: MergeRefusal; readonly isSure: boolean }
  | { readonly type: "manifest.read" }
  /** Reading crashed too often. The duty that compares branches reads it later. */
  | { readonly type: "manifest.failed" }
  | { readonly type: "pull.merged"; readonly sides: MergeSides; readonly commit: string }
  | { readonly type: "pull.closed" };

export type ChangeRequestCommand =
  /** Compare the branches; ends as sides.noted, merge.refused, or merged.in_git where `former` was merged. */
  | { readonly type: "noteSides"; readonly former: MergeSides | null }
  /** Ends as merged.in_git or merge.refused. */
  | ({ readonly type: "mergeInGit" } & MergeOrder)
  /** Look for noted commits in the base branch; ends as merged.in_git, merge.missed or merge.refused. */
  | { readonly type: "lookForMerge"; readonly sides: MergeSides }
  | { readonly type: "readManifest" }
  | { readonly type: "mirrorPull" }
  /** Have the project's other open requests looked at: their base branch has moved. */
  | { readonly type: "refreshOthers" };

interface MergeOrder {
  readonly sides: MergeSides;
  readonly message: string | null;
  readonly at: number;
}

/** Guarded by `isInDoubt`, which a request without noted commits is not. */
function sidesOf(context: ChangeRequestContext): MergeSides {
  if (context.sides === null) throw new Error("a merge is looked for that was never noted");
  return context.sides;
}

const noteSides = {
  type: "noteSides" as const,
  params: ({ context }: { context: ChangeRequestContext }) => ({ former: context.sides }),
};
const lookForMerge = {
  type: "lookForMerge" as const,
  params: ({ context }: { context: ChangeRequestContext }) => ({ sides: sidesOf(context) }),
};
type SidesNoted = Extract<ChangeRequestEvent, { type: "sides.noted" }>;
const mergeInGit = {
  type: "mergeInGit" as const,
  params: ({
    context: { message },
    event: { sides, at },
  }: {
    context: ChangeRequestContext;
    event: SidesNoted;
  }): MergeOrder => ({ sides, message, at }),
};

const close = [
  {
    guard: "isInDoubt" as const,
    target: "merging" as const,
    actions: ["lookToClose" as const, lookForMerge],
  },
  { target: "closed" as const, actions: "mirrorPull" as const },
];
/** Git has not merged the noted commits, and will not. */
const dropMerge = ["forgetSides" as const, "forgetAsker" as const, "settle" as const];
const closeInstead = { guard: "isLooking" as const, actions: "closeInstead" as const };
const adoptHostMerge = {
  target: "merging" as const,
  actions: ["adopt" as const, "forgetAsker" as const, "readManifest" as const],
};
const finish = {
  guard: "isMadeInGit" as const,
  target: "merged" as const,
  actions: ["settle" as const, "mirrorPull" as const, "refreshOthers" as const],
};

export const changeRequestMachine = setup({
  types: { context: {} as ChangeRequestContext, events: {} as ChangeRequestEvent },
  guards: {
    isInDoubt: ({ context }) => context.sides !== null,
    isLooking: ({ context }) => context.aim === "look" && context.commit === null,
    isClosing: ({ context }) => context.aim === "close" && context.commit === null,
    isMerging: ({ context }) => context.aim === "merge" && context.commit === null,
    isUnmade: ({ context }) => context.commit === null,
    isSurelyUnmade: ({ context, event }) =>
      context.commit === null && event.type === "merge.refused" && event.isSure,
    isMadeInGit: ({ context }) => context.commit !== null,
  },
  actions: {
    noteSides: (_, _params: { readonly former: MergeSides | null }) => undefined,
    mergeInGit: (_, _params: MergeOrder) => undefined,
    lookForMerge: (_, _params: { readonly sides: MergeSides }) => undefined,
    readManifest: () => undefined,
    mirrorPull: () => undefined,
    refreshOthers: () => undefined,
    beginMerge: assign(({ event }) =>
      event.type === "merge.requested"
        ? { aim: "merge" as const, by: event.by, message: event.message, refusal: null }
        : {},
    ),
    look: assign({ aim: "look", refusal: null }),
    lookToClose: assign({ aim: "close", refusal: null }),
    closeInstead: assign({ aim: "close" }),
    note: assign(({ event }) => (event.type === "sides.noted" ? { sides: event.sides } : {})),
    adopt: assign(({ event }) =>
      event.type === "merged.in_git" || event.type === "pull.merged"
        ? { aim: "merge" as const, sides: event.sides, commit: event.commit, refusal: null }
        : {},
    ),
    refuse: assign(({ event }) => (event.type === "merge.refused" ? { refusal: event.refusal } : {})),
    forgetSides: assign({ sides: null }),
    forgetAsker: assign({ by: null }),
    settle: assign({ aim: null, message: null }),
  },
}).createMachine({
  id: "change-request",
  context: { aim: null, by: null, message: null, sides: null, commit: null, refusal: null },
  initial: "open",
  entry: "mirrorPull",
  states: {
    open: {
      on: {
        "merge.requested": { target: "merging", actions: ["beginMerge", noteSides] },
        "close.requested": close,
        "look.requested": { guard: "isInDoubt", target: "merging", actions: ["look", lookForMerge] },
        "pull.merged": adoptHostMerge,
        "pull.closed": close,
      },
    },
    merging: {
      on: {
        "sides.noted": { guard: "isMerging", actions: ["note", mergeInGit] },
        "merged.in_git": { guard: "isUnmade", actions: ["adopt", "readManifest"] },
        "merge.refused": [
          { guard: "isSurelyUnmade", target: "open", actions: ["refuse", ...dropMerge] },
          { guard: "isUnmade", target: "open", actions: ["refuse", "settle"] },
        ],
        "merge.missed": [
          { guard: "isClosing", target: "closed", actions: [...dropMerge, "mirrorPull"] },
          { guard: "isLooking", target: "open", actions: [...dropMerge] },
        ],
        "manifest.read": finish,
        "manifest.failed": finish,
        "close.requested": closeInstead,
        "pull.closed": closeInstead,
      },
    },
    merged: { type: "final" },
    closed: { on: { "pull.merged": adoptHostMerge } },
  },
});

/** `start({})` is a new change request's first snapshot; `step` is its only way on. */
export const changeRequest = pureMachine<
  ChangeRequestSnapshot,
  ChangeRequestEvent,
  ChangeRequestCommand,
  Record<string, never>
>(changeRequestMachine);

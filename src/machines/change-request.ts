/**
 * A change request's life: api.md 6. Work reaches the default branch through a merge alone (spec 1).
 *
 * A merge takes four steps: the commits are noted, git merges them, the manifest is read, the request is merged. Each step
 * is a command, so a merge that a crash interrupts goes on from where it was.
 *
 *  C1 `merged` is entered after git has the work in the base branch, and after the manifest was read from there.
 *  C2 Git is asked to merge after the two commits are saved. They stay noted until the outcome is known. The
 *     head is merged as noted, the base may have moved: the merge is onto its tip then.
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
import type { MergeRefusal, MergeSides } from "../domain/repository/merge.ts";
import { pureMachine, type Snapshot } from "./step.ts";
import type { Words } from "./word-types.ts";

export interface ChangeRequestContext {
  /** The aim of `merging`: a merge, or a look at a former merge. After the look, the request stays open or is closed. */
  readonly aim: "merge" | "look" | "close" | null;
  /** The user who asked for the merge that was noted last; null for a merge at the code host. */
  readonly by: string | null;
  /** The merge commit's message; null: a default one. */
  readonly message: string | null;
  /** Whether that merge makes one commit of all. Absent: it does not. */
  readonly squash?: boolean | undefined;
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
  | {
      readonly type: "merge.requested";
      readonly by: string | null;
      readonly message: string | null;
      readonly squash?: boolean;
    }
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
  | ({ readonly type: "noteSides"; readonly former: MergeSides | null } & Squashed)
  /** Ends as merged.in_git or merge.refused. */
  | ({ readonly type: "mergeInGit" } & MergeOrder)
  /** Look for noted commits in the base branch; ends as merged.in_git, merge.missed or merge.refused. */
  | ({ readonly type: "lookForMerge"; readonly sides: MergeSides } & Squashed)
  | { readonly type: "readManifest" }
  | { readonly type: "mirrorPull" }
  /** Have the project's other open requests looked at: their base branch has moved. */
  | { readonly type: "refreshOthers" };

/** Whether the merge makes one commit of all. Absent: it does not. */
interface Squashed {
  readonly squash?: true;
}

interface MergeOrder extends Squashed {
  readonly sides: MergeSides;
  readonly message: string | null;
  readonly at: number;
}

/** Guarded by `isInDoubt`, which a request without noted commits is not. */
function mergeSides(context: ChangeRequestContext): MergeSides {
  if (context.sides === null) throw new Error("a merge is looked for that was never noted");
  return context.sides;
}

const squashOption = ({ squash }: ChangeRequestContext): Squashed => (squash === true ? { squash } : {});

const noteSides = {
  type: "noteSides" as const,
  params: ({ context }: { context: ChangeRequestContext }) => ({
    former: context.sides,
    ...squashOption(context),
  }),
};
const lookForMerge = {
  type: "lookForMerge" as const,
  params: ({ context }: { context: ChangeRequestContext }) => ({
    sides: mergeSides(context),
    ...squashOption(context),
  }),
};
type SidesNoted = Extract<ChangeRequestEvent, { type: "sides.noted" }>;
const mergeInGit = {
  type: "mergeInGit" as const,
  params: ({
    context,
    event: { sides, at },
  }: {
    context: ChangeRequestContext;
    event: SidesNoted;
  }): MergeOrder => ({ sides, message: context.message, at, ...squashOption(context) }),
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

const finishedWords = "When the manifest is read from the base branch, the change request is merged.";
const hostMergedWords = "If its pull request is merged at the code host, the change request is merged.";

export const changeRequestMachine = setup({
  types: {
    context: {} as ChangeRequestContext,
    events: {} as ChangeRequestEvent,
    meta: {} as Words<ChangeRequestSnapshot["state"], ChangeRequestEvent, ChangeRequestCommand>,
  },
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
    noteSides: (_, _params: { readonly former: MergeSides | null } & Squashed) => undefined,
    mergeInGit: (_, _params: MergeOrder) => undefined,
    lookForMerge: (_, _params: { readonly sides: MergeSides } & Squashed) => undefined,
    readManifest: () => undefined,
    mirrorPull: () => undefined,
    refreshOthers: () => undefined,
    beginMerge: assign(({ event }) =>
      event.type === "merge.requested"
        ? {
            aim: "merge" as const,
            by: event.by,
            message: event.message,
            squash: event.squash === true ? true : undefined,
            refusal: null,
          }
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
  meta: {
    events: {
      created: "The change request was opened.",
      "merge.requested": "Somebody asked for a merge.",
      "close.requested": "Somebody closed the change request.",
      "look.requested": "The service looked whether a former merge was made.",
      "sides.noted": "The two commits of the merge were noted.",
      "merged.in_git": "The base branch has the work.",
      "merge.missed": "The base branch does not have the noted work.",
      "merge.refused": "The merge was refused.",
      "manifest.read": "The manifest was read from the base branch.",
      "manifest.failed": "The manifest could not be read. It is read again later.",
      "pull.merged": "The pull request was merged at the code host.",
      "pull.closed": "The pull request was closed at the code host.",
    },
    commands: {
      noteSides: "compare the branches",
      mergeInGit: "merge the branches in git",
      lookForMerge: "look for the merge in the base branch",
      readManifest: "read the manifest from the base branch",
      mirrorPull: "bring the pull request in line",
      refreshOthers: "look at the project's other change requests again",
    },
  },
  context: { aim: null, by: null, message: null, sides: null, commit: null, refusal: null },
  initial: "open",
  entry: "mirrorPull",
  states: {
    open: {
      description: "The change request is open.",
      meta: {
        next: {
          "merge.requested": "A person can merge it.",
          "close.requested": {
            closed: "A person or the session can close it.",
            merging: "Before it is closed, the service looks whether a former merge was made.",
          },
          "look.requested": "The service looks whether a former merge was made.",
          "pull.merged": hostMergedWords,
          "pull.closed": {
            closed: "If its pull request is closed at the code host, the change request is closed.",
            merging: "If its pull request is closed, the service looks whether a former merge was made.",
          },
        },
      },
      on: {
        "merge.requested": { target: "merging", actions: ["beginMerge", noteSides] },
        "close.requested": close,
        "look.requested": { guard: "isInDoubt", target: "merging", actions: ["look", lookForMerge] },
        "pull.merged": adoptHostMerge,
        "pull.closed": close,
      },
    },
    merging: {
      description: "A merge, or a look at a former merge, is under way.",
      meta: {
        next: {
          "sides.noted": "When the two commits are noted, git merges them.",
          "merged.in_git": "When the base branch has the work, the manifest is read.",
          "merge.missed": {
            open: "If the base branch does not have the noted work, the change request stays open.",
            closed: "If the base branch does not have the noted work, the change request is closed.",
          },
          "merge.refused": "If the branches conflict or git refuses, the change request is open again.",
          "manifest.read": finishedWords,
          "manifest.failed": "If the manifest cannot be read, the change request is merged all the same.",
          "close.requested": "If it is closed during the look, it is closed afterwards.",
          "pull.closed": "If its pull request is closed during the look, it is closed afterwards.",
        },
      },
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
    merged: { description: "The work is in the base branch.", type: "final" },
    closed: {
      description: "The change request was closed without a merge.",
      meta: { next: { "pull.merged": hostMergedWords } },
      on: { "pull.merged": adoptHostMerge },
    },
  },
});

/** `start({})` is a new change request's first snapshot; `step` is its only way on. */
export const changeRequest = pureMachine<
  ChangeRequestSnapshot,
  ChangeRequestEvent,
  ChangeRequestCommand,
  Record<string, never>
>(changeRequestMachine);

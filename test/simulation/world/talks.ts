/**
 * The conversations of simulated agents. The seed decides what each agent says, and when. An agent goes on talking after its
 * sandbox's record has ended: a late node may still reach the old sandbox.
 */
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import type { ConversationReport, NativeItem } from "../../../src/domain/conversation/conversation.ts";
import { DaemonUnreachable } from "../../../src/sandbox/daemon.ts";
import type { Random } from "../random.ts";
import type { SimulatedTime } from "../time.ts";

/** A version of an item, or of the turn, from the moment at which it is said. */
export interface Said {
  /** ms of `elapsed`. */
  readonly at: number;
  readonly rev: number;
  /** Null: the turn changes. */
  readonly item: NativeItem | null;
  /** Whether the agent works from then on. */
  readonly isWorking: boolean;
  /** The native id of the request for whose answer it waits. */
  readonly waitingFor: string | null;
  /** How many of its turns have ended. */
  readonly ended: number;
}

export interface Talks {
  /** The reports of one sandbox above a number. The stream breaks off now and then. */
  readonly follow: (sandboxId: string, after: number) => Stream.Stream<ConversationReport, DaemonUnreachable>;
  /** The newest version of each item that was said by a moment, ms of `elapsed`. */
  readonly saidBy: (sandboxId: string, at: number) => readonly NativeItem[];
  /** The native ids of a sandbox's items, in the order in which its agent made them. */
  readonly madeBy: (sandboxId: string) => readonly string[];
  /** From now on no stream breaks off. */
  readonly heal: () => void;
}

export interface TalkOptions {
  readonly time: SimulatedTime;
  readonly randomOf: (label: string) => Random;
  /** When the agent of the sandbox begins, ms of `elapsed`. */
  readonly beginsAt: (sandboxId: string) => number;
}

const ITEMS_MAX = 5;
const PAUSE_MIN_MS = 300;
const PAUSE_MAX_MS = 30_000;
/** The share of items that the agent finishes. */
const FINISHED = 0.7;
/** The share of finished items that are said to run once more. */
const REOPENED = 0.1;
export const BREAKS = 0.1;
/** The share of reads that repeat earlier versions, as the first read after a break may. */
export const REPEATS = 0.1;

export const versionOf = (nativeId: string, rev: number, isFinished: boolean): NativeItem => ({
  native_id: nativeId,
  rev,
  kind: "message",
  role: "agent",
  status: isFinished ? "completed" : "running",
  message_id: null,
  turn_id: null,
  parent_id: null,
  content: [{ type: "text", text: isFinished ? `${nativeId} is finished` : nativeId }],
  tool: null,
  plan: [],
  request: null,
  model: null,
  usage: null,
  error: null,
  created_at: rev,
  completed_at: isFinished ? rev : null,
});

/** Everything that one agent says, in order. */
const talkOf = (sandboxId: string, beginsAt: number, random: Random): readonly Said[] => {
  const talk: Said[] = [];
  let at = beginsAt;
  const say = (item: ((rev: number) => NativeItem) | null, isWorking: boolean): void => {
    at += random.between(PAUSE_MIN_MS, PAUSE_MAX_MS);
    const rev = talk.length + 1;
    talk.push({ at, rev, item: item?.(rev) ?? null, isWorking, waitingFor: null, ended: 0 });
  };
  const count = random.between(0, ITEMS_MAX);
  for (let index = 0; index < count; index += 1) {
    const nativeId = `${sandboxId}-${index}`;
    say((rev) => versionOf(nativeId, rev, false), true);
    if (!random.chance(FINISHED)) continue;
    say((rev) => versionOf(nativeId, rev, true), true);
    if (random.chance(REOPENED)) say((rev) => versionOf(nativeId, rev, false), true);
  }
  if (count > 0) say(null, false);
  return talk;
};

/** The newest version of each item, in the order of their numbers. */
export const newest = (said: readonly Said[]): readonly NativeItem[] => {
  const items = new Map<string, NativeItem>();
  for (const { item } of said)
    if (item !== null) {
      items.delete(item.native_id);
      items.set(item.native_id, item);
    }
  return [...items.values()];
};

/** The native ids of the items, in the order of their first versions. */
export const madeIn = (said: readonly Said[]): readonly string[] => [
  ...new Set(said.flatMap(({ item }) => item?.native_id ?? [])),
];

/** The lines that a reader gets: what is due, and the turn as it is by the last of them. */
export const linesOf = (said: readonly Said[], last: Said | null): readonly ConversationReport[] => {
  const { isWorking = false, waitingFor = null, ended = 0, rev = 0 } = last ?? {};
  const state = waitingFor !== null ? "requires_action" : isWorking ? "running" : "idle";
  return [
    ...newest(said).map((item) => ({ type: "item" as const, item })),
    { type: "turn", turn: { state, waiting_for: waitingFor }, ended, rev },
  ];
};

export const simulatedTalks = ({ time, randomOf, beginsAt }: TalkOptions): Talks => {
  const talks = new Map<string, { readonly said: readonly Said[]; readonly random: Random }>();
  let isHealed = false;
  const talk = (sandboxId: string) => {
    const known = talks.get(sandboxId);
    if (known !== undefined) return known;
    const random = randomOf(`talk of ${sandboxId}`);
    const made = { said: talkOf(sandboxId, beginsAt(sandboxId), random), random };
    talks.set(sandboxId, made);
    return made;
  };

  const follow = (sandboxId: string, after: number) => {
    let read = after;
    const round = Effect.gen(function* () {
      const { said, random } = talk(sandboxId);
      const next = said.find(({ rev }) => rev > read);
      if (next === undefined) return yield* Effect.never;
      yield* Effect.sleep(Math.max(0, next.at - time.elapsed));
      if (!isHealed && random.chance(BREAKS))
        return yield* new DaemonUnreachable({ message: "the simulated conversation broke off" });
      const from = random.chance(REPEATS) ? 0 : read;
      const due = said.filter(({ rev, at }) => rev > from && at <= time.elapsed);
      read = Math.max(read, due.at(-1)?.rev ?? 0);
      return due.length === 0 ? [] : linesOf(due, due.at(-1) ?? null);
    });
    return Stream.flatMap(Stream.fromEffectRepeat(round), (lines) => Stream.fromIterable(lines));
  };

  return {
    follow,
    saidBy: (sandboxId, until) => newest(talk(sandboxId).said.filter(({ at }) => at <= until)),
    madeBy: (sandboxId) => madeIn(talk(sandboxId).said),
    heal: () => {
      isHealed = true;
    },
  };
};

/**
 * What the agent in a fresh sandbox knows of its session's former sandboxes: the conversation, and the work that was saved
 * (docs/decisions/0045). People see a note of it.
 *
 *  B1 The agent gets the conversation itself if its runtime can take it over; else a summary. The note says which, and
 *     why it is a summary. If the runtime takes neither, the note says that.
 *  B2 It has it before any message of a person, and begins no turn.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { makeSince } from "../../src/domain/conversation/since.ts";
import type { Recap } from "../../src/domain/sandbox/launch.ts";
import { leftOutText } from "../../src/domain/save/reasons.ts";
import type { Restored } from "../../src/domain/save/saved.ts";
import type { AgentSession, Briefing, Restoring, RuntimeAdapter } from "../adapters/adapter.ts";
import type { ConversationFeed } from "../conversation/feed.ts";
import { noteItem } from "../conversation/note.ts";
import type { HttpFailure } from "../http/client.ts";
import type { Log } from "../logs/log.ts";
import type { Report } from "../report.ts";
import type { Settings } from "../settings.ts";
import type { SetupFailure } from "../boot/setup.ts";
import { quantity } from "../../src/domain/counted.ts";

export interface BriefingParts {
  readonly settings: Settings;
  readonly adapter: Pick<RuntimeAdapter, "restore" | "tell">;
  readonly feed: Pick<ConversationFeed, "item">;
  readonly log: Log;
  readonly report: Pick<Report, "restored">;
}

/** Pause between two attempts. */
const AGAIN = Schedule.spaced("500 millis");
/** How often a briefing is given to a runtime that answers and refuses it. */
const REFUSALS_MAX = 10;

const CONTINUES = "The session continues in a new sandbox.";

/** @param soFar where the conversation ends that the agent is told */
const notesUntil = (soFar: string) => ({
  native: `The agent has the whole conversation ${soFar}, with its tool calls and their results.`,
  until: `The agent has the conversation ${soFar}, and a summary of what came after its runtime's own record of it was saved.`,
  shortened: "The agent has the newest part of the conversation itself, and a summary of what came before.",
  summary: `The agent has a summary of the conversation ${soFar}, not the conversation itself`,
  none: `The agent does not have the conversation ${soFar}, because its runtime did not take it.`,
});

/** Of a session that has had a sandbox, and of one that begins from another one. */
const CONTINUING = { opening: CONTINUES, notes: notesUntil("so far") };
const beginning = (title: string): typeof CONTINUING => ({
  opening: `The session began from the session "${title}".`,
  notes: notesUntil("up to there"),
});
const wordsFor = ({ begun }: Recap): typeof CONTINUING =>
  begun === undefined ? CONTINUING : beginning(begun);

const WHY: Readonly<Record<Extract<Restoring, { outcome: "failed" }>["why"], string>> = {
  refused: "because its runtime did not take the conversation.",
  different: "because its runtime did not keep the conversation as it was.",
  late: "because its runtime did not take the conversation in time.",
  missing: "because its runtime's own record of the conversation did not come back.",
};

/** For the agent, below the conversation that it has again. */
const continuation = ({ begun }: Recap): string =>
  (begun === undefined
    ? `${CONTINUES} You have the conversation so far.`
    : `This session began from another one, "${begun}". You have the conversation of that one up to there.`) +
  " Programs that you started are not running any more, and files that were neither pushed nor saved are gone. " +
  "Do not answer this message. Use it to understand what people ask next.";

interface Told {
  readonly text: string;
  readonly note: string;
}

/** A briefing, and what people see if the runtime refuses it. */
export interface Recalled extends Briefing {
  readonly unheard: string;
}

/** Restores the conversation. @returns what the agent hears in addition. Null if it has no former sandbox. */
export const recallFormer = Effect.fnUntraced(function* (
  parts: BriefingParts,
  session: AgentSession,
): Effect.fn.Return<Recalled | null> {
  const { recap, wip, wipLacks } = parts.settings.launch;
  const { restored } = parts.report;
  const choice = {
    ...session,
    agentName: recap?.agent ?? session.agentName,
    model: recap?.model ?? session.model,
    ...(recap?.effort !== undefined && { effort: recap.effort }),
  };
  const recallNote = recap === undefined ? null : yield* recall(parts, recap, choice);
  const notes = [
    ...(recallNote === null ? [] : [recallNote]),
    ...(restored === null ? (wip === undefined ? [] : [NOT_WANTED]) : savedWork(restored, recap?.begun)),
    ...(wipLacks === undefined ? [] : [notSaved(wipLacks)]),
  ];
  if (notes.length === 0) return null;
  return {
    ...choice,
    text: notes.map(({ text }) => text).join("\n\n"),
    note: notes.map(({ note }) => note).join(" "),
    unheard: recallNote?.unheard ?? `${CONTINUES} The agent does not know which unpushed work came back.`,
  };
});

/** What the agent hears when its setup command failed, in addition to what it hears of former sandboxes. */
export const withSetup = (
  note: Recalled | null,
  failure: SetupFailure | null,
  session: AgentSession,
): Recalled | null => {
  if (failure === null) return note;
  const unheard = "The agent does not know that the setup command failed.";
  if (note === null) return { ...session, ...failure, unheard };
  return {
    ...note,
    text: `${note.text}\n\n${failure.text}`,
    note: `${note.note} ${failure.note}`,
    unheard: `${note.unheard} ${unheard}`,
  };
};

/** B1. */
const recall = Effect.fnUntraced(function* (
  { adapter, log }: BriefingParts,
  recap: Recap,
  session: AgentSession,
): Effect.fn.Return<Told & Pick<Recalled, "unheard">> {
  const { text, history, begun } = recap;
  const words = wordsFor(recap);
  const unheard = `${words.opening} ${words.notes.none}`;
  const summary = `${words.opening} ${words.notes.summary}`;
  if (history === undefined || adapter.restore === null) return { text, note: `${summary}.`, unheard };
  const sinceMs = yield* Clock.currentTimeMillis;
  const restoring = yield* adapter.restore(session, history);
  const fields = { items: history.items.length, ms: (yield* Clock.currentTimeMillis) - sinceMs };
  if (restoring.outcome === "restored") {
    log("conversation restored", fields);
    const { until } = restoring;
    const since = until === undefined ? null : makeSince(history.items, until);
    const isWhole = until === undefined ? history.summary === null : since === null;
    const { native, shortened, until: later } = words.notes;
    const note = `${words.opening} ${isWhole ? native : until === undefined ? shortened : later}`;
    return {
      text: [continuation(recap), ...(since === null ? [] : [since])].join("\n\n"),
      note,
      unheard: note,
    };
  }
  log("conversation not restored", { ...fields, why: restoring.why, message: restoring.message });
  // A runtime's own record is of its own session, and never comes with a new one.
  const isNew = begun !== undefined && restoring.why === "missing";
  return { text, note: isNew ? `${summary}.` : `${summary}, ${WHY[restoring.why]}`, unheard };
});

/** People restarted the session without its saved work. */
const NOT_WANTED: Told = {
  text:
    "Unpushed work from before the restart of this session is saved, but not in this workspace: the session was restarted " +
    "without it.",
  note: "The session was restarted without its saved work.",
};

/** Former sandboxes had work that no save has. */
const notSaved = (lacks: string): Told => ({
  text: `Not all unpushed work from before the restart of this session is saved: ${lacks}`,
  note: `Not all unpushed work is saved: ${lacks}`,
});

/** Unpushed work of a former sandbox, and the part of it that the workspace has again. */
const savedWork = (restored: Restored, title: string | undefined): readonly Told[] => {
  const origin =
    title === undefined ? "from before the restart of this session" : `of the session "${title}"`;
  const { refs, commits, files, skipped, error, notes = [] } = restored;
  const parts = restoredParts(restored);
  if (commits + files + refs.length > 0)
    return [
      {
        text:
          `Unpushed work ${origin} is in the workspace${title === undefined ? " again" : ""}: ${parts} ` +
          "The files are uncommitted changes.",
        note: `The unpushed work was restored: ${parts}`,
      },
    ];
  // Everything was pushed.
  if (skipped.length + notes.length === 0 && error === null) return [];
  return [
    {
      text: `Unpushed work ${origin} is not in this workspace. ${parts}`,
      note: `The unpushed work was not restored. ${parts}`,
    },
  ];
};

/** How many paths are named. */
const NAMED_PATHS = 10;

const listPaths = (all: readonly string[]): string =>
  all.slice(0, NAMED_PATHS).join(", ") +
  (all.length > NAMED_PATHS ? ` and ${all.length - NAMED_PATHS} more` : "");

/** What came back, under which names, and what did not, in sentences. */
const restoredParts = ({ commits, refs, files, renamed, skipped, error, notes = [] }: Restored): string => {
  const left = skipped.map(
    ({ path, count = 1, ...why }) =>
      `${path}${count > 1 ? ` and ${count - 1} more` : ""} (${leftOutText(why)})`,
  );
  return [
    `${quantity(commits, "commit")} of the branch, ${quantity(files, "changed file")}.`,
    ...(refs.length > 0 ? [`With these refs: ${listPaths(refs)}.`] : []),
    ...(renamed.length > 0
      ? [
          "The branch or other saved work has something else in the place of some files, so these are beside it: " +
            `${listPaths(renamed.map(({ path, as }) => `${path} as ${as}`))}.`,
        ]
      : []),
    ...(left.length > 0 ? [`Not restored: ${listPaths(left)}.`] : []),
    ...notes,
    ...(error === null ? [] : [error]),
  ].join(" ");
};

/** Gives the agent the briefing, as soon as its runtime takes it. */
export const brief = Effect.fnUntraced(function* ({ adapter, feed, log }: BriefingParts, briefing: Recalled) {
  let refusals = 0;
  const mayTryAgain = ({ status }: HttpFailure): boolean => {
    if (status !== null) refusals += 1;
    return refusals < REFUSALS_MAX;
  };
  const refusal = yield* adapter.tell(briefing).pipe(
    Effect.retry({ schedule: AGAIN, while: mayTryAgain }),
    Effect.as(null),
    Effect.catch(({ message }) => Effect.succeed(message)),
  );
  if (refusal === null) return log("the agent got a briefing");
  log("the agent did not get a briefing", { message: refusal });
  feed.item(noteItem("former", briefing.unheard, yield* Clock.currentTimeMillis));
});

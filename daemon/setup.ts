/**
 * The project's setup command, of the session's commit (manifest.ts). It prepares the checkout in each new sandbox, beside
 * the start of the agent runtime: it installs packages, for example.
 *
 *  S1 It runs as the agent, with the agent's environment, in the workspace. Its output is in the session's log.
 *  S2 The agent gets no message before the command has ended. It always ends: in time, or with its whole process group.
 *  S3 A command that fails does not end the session. The agent and the people in the conversation learn why it failed.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import type { Allowance } from "./allowance.ts";
import type { ConversationFeed } from "./conversation/feed.ts";
import { noteItem } from "./conversation/note.ts";
import type { Log } from "./logs/log.ts";
import { RuntimeOutput } from "./logs/output.ts";
import type { Redactor } from "../src/domain/redactor.ts";
import type { SetupWish } from "./manifest.ts";
import { ProcessGroup, type Exit, type Launch } from "./process.ts";

/** How long a command may run if the service does not say (PLATFORM_SETUP_TIMEOUT_MS). */
const DEFAULT_TIMEOUT_MS = 600_000;
/** How many of the last lines of output the agent gets, and how much of each. */
const TOLD_LINES = 20;
const TOLD_LINE_LENGTH = 500;
/** How much of a long command is shown in the conversation. */
const SHOWN_COMMAND = 200;

export interface SetupParts {
  readonly feed: Pick<ConversationFeed, "item">;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly allowance: Allowance;
  readonly onEnd: () => void;
}

export interface SetupCommand extends SetupWish {
  readonly timeoutMs: number | undefined;
  /** Starts programs as the agent. */
  readonly launch: (command: readonly string[]) => Launch;
}

/** What the agent and people hear of a command that failed. */
export interface SetupFailure {
  readonly text: string;
  readonly note: string;
}

type Ended = Exit | "late" | { readonly problem: string };

const seconds = (ms: number): string =>
  ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;

/** In one line, for a note. Several lines joined into one would be another script. */
const shown = (command: string): string => {
  const [first = "", ...more] = command.trim().split(/\s*\n\s*/);
  const line = first.length > SHOWN_COMMAND ? `${first.slice(0, SHOWN_COMMAND).toWellFormed()} …` : first;
  return more.length === 0 ? line : `${line} … (${more.length + 1} lines)`;
};

/** Runs it to its end. @returns null if it succeeded. */
export const runSetup = Effect.fnUntraced(function* (
  { feed, redactor, log, allowance, onEnd }: SetupParts,
  { launch, timeoutMs = DEFAULT_TIMEOUT_MS, ...wish }: SetupCommand,
): Effect.fn.Return<SetupFailure | null> {
  const { command, title } = wish;
  const beganMs = yield* Clock.currentTimeMillis;
  log("setup", { state: "running" });
  feed.item(noteItem("setup_begins", `The setup command runs: ${title ?? shown(command)}`, beganMs));
  const last: string[] = [];
  const output = new RuntimeOutput({
    source: "setup",
    redactor,
    log,
    allowance,
    onLine: (line) => {
      last.push(line.slice(0, TOLD_LINE_LENGTH).toWellFormed());
      if (last.length > TOLD_LINES) last.shift();
    },
  });
  const ended: Ended = yield* Effect.acquireUseRelease(
    // A script of several lines ends with its first command that fails.
    ProcessGroup.start(launch(["sh", "-e", "-c", command]), (stream, chunk) => output.add(stream, chunk)),
    (group) =>
      Effect.timeoutOption(group.exit, timeoutMs).pipe(
        Effect.map(Option.getOrElse(() => "late" as const)),
        Effect.catch(({ message }) => Effect.succeed({ problem: message })),
      ),
    (group) => group.end,
  );
  output.flush();
  const nowMs = yield* Clock.currentTimeMillis;
  const took = nowMs - beganMs;
  const why = failureOf(ended, timeoutMs);
  log("setup", { state: why === null ? "done" : "failed", ms: took, ...(why !== null && { message: why }) });
  onEnd();
  const note =
    why === null
      ? `The setup command is done. It took ${seconds(Math.max(took, 100))}.`
      : `The setup command failed: ${why}. The session's log has its output. The agent gets the last lines.`;
  feed.item(noteItem("setup_ends", note, nowMs));
  return why === null
    ? null
    : { note: "The agent knows that the setup command failed.", text: told(wish, why, last) };
});

/** Null: it succeeded. */
const failureOf = (ended: Ended, timeoutMs: number): string | null => {
  if (ended === "late") return `it ran longer than ${seconds(timeoutMs)} and was ended`;
  if ("problem" in ended) return `it could not be started (${ended.problem})`;
  if (ended.code === 0) return null;
  return ended.code === null
    ? `it was ended by ${ended.signal ?? "a signal"}`
    : `it ended with exit code ${ended.code}`;
};

const told = ({ command, place }: SetupWish, why: string, last: readonly string[]): string =>
  [
    `Before this message, the platform ran the project's setup command in the workspace (${place}):`,
    command.trim(),
    `It failed: ${why}. So packages or files that the project needs may be missing.`,
    ...(last.length > 0 ? ["The end of its output:", ...last] : []),
  ].join("\n");

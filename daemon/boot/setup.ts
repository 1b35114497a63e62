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
import type { Allowance } from "../logs/allowance.ts";
import type { ConversationFeed } from "../conversation/feed.ts";
import { noteItem } from "../conversation/note.ts";
import type { Log } from "../logs/log.ts";
import { RuntimeOutput } from "../logs/output.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import type { SetupWish } from "./manifest.ts";
import { ProcessGroup, type Exit, type Launch } from "../agent/process.ts";

/** How long a command may run if the service does not say (PLATFORM_SETUP_TIMEOUT_MS). */
const DEFAULT_TIMEOUT_MS = 600_000;
/** How many of the last lines of output the agent gets, and how much of each. */
const TOLD_LINES = 20;
const TOLD_LINE_LENGTH = 500;
/** How much of a long command is shown in the conversation. */
const SHOWN_COMMAND = 200;

/** Where the command's output goes. */
export interface SetupOutput {
  readonly redactor: Redactor;
  readonly log: Log;
  readonly allowance: Allowance;
}

export interface SetupParts extends SetupOutput {
  readonly feed: Pick<ConversationFeed, "item">;
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

/** A command that has ended. */
export interface SetupRun {
  readonly tookMs: number;
  /** Why it failed. Null if it succeeded. */
  readonly why: string | null;
  /** The end of its output. */
  readonly last: readonly string[];
}

type Ended = Exit | "late" | { readonly problem: string };

const seconds = (ms: number): string =>
  ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;

/** In one line, for a note. Several lines joined into one would be another script. */
const displayCommand = (command: string): string => {
  const [first = "", ...more] = command.trim().split(/\s*\n\s*/);
  const line = first.length > SHOWN_COMMAND ? `${first.slice(0, SHOWN_COMMAND).toWellFormed()} …` : first;
  return more.length === 0 ? line : `${line} … (${more.length + 1} lines)`;
};

/** Runs it to its end. @returns null if it succeeded. */
export const runSetup = (parts: SetupParts, command: SetupCommand): Effect.Effect<SetupFailure | null> =>
  Effect.gen(function* () {
    const { title } = command;
    yield* say(parts, "setup_begins", `The setup command runs: ${title ?? displayCommand(command.command)}`);
    const run = yield* runCommand(parts, command);
    yield* saidEnd(parts, run);
    return run.why === null
      ? null
      : {
          note: "The agent knows that the setup command failed.",
          text: failureText(command, run.why, run.last),
        };
  });

/** Says in the conversation that a command of before the session is the session's own. Returns when it has ended. @returns whether it succeeded */
export const takeOverSetup = Effect.fnUntraced(function* (
  parts: SetupParts,
  { command, title }: SetupWish,
  running: Effect.Effect<SetupRun>,
) {
  yield* say(
    parts,
    "setup_begins",
    `The setup command began before this session: ${title ?? displayCommand(command)}`,
  );
  const run = yield* running;
  if (run.why !== null) return false;
  yield* saidEnd(parts, run);
  return true;
});

const say = ({ feed }: SetupParts, key: string, text: string) =>
  Effect.map(Clock.currentTimeMillis, (nowMs) => feed.item(noteItem(key, text, nowMs)));

const saidEnd = (parts: SetupParts, { why, tookMs }: SetupRun) => {
  parts.onEnd();
  const note =
    why === null
      ? `The setup command is done. It took ${seconds(Math.max(tookMs, 100))}.`
      : `The setup command failed: ${why}. The session's log has its output. The agent gets the last lines.`;
  return say(parts, "setup_ends", note);
};

/** Runs it to its end, with its output in the log. */
export const runCommand = Effect.fnUntraced(function* (
  { redactor, log, allowance }: SetupOutput,
  { launch, timeoutMs = DEFAULT_TIMEOUT_MS, command }: SetupCommand,
): Effect.fn.Return<SetupRun> {
  const beganMs = yield* Clock.currentTimeMillis;
  log("setup", { state: "running" });
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
  const end: Ended = yield* Effect.acquireUseRelease(
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
  const tookMs = (yield* Clock.currentTimeMillis) - beganMs;
  const why = setupFailure(end, timeoutMs);
  log("setup", {
    state: why === null ? "done" : "failed",
    ms: tookMs,
    ...(why !== null && { message: why }),
  });
  return { tookMs, why, last };
});

/** Null if it succeeded. */
const setupFailure = (end: Ended, timeoutMs: number): string | null => {
  if (end === "late") return `it ran longer than ${seconds(timeoutMs)} and was ended`;
  if ("problem" in end) return `it could not be started (${end.problem})`;
  if (end.code === 0) return null;
  return end.code === null
    ? `it was ended by ${end.signal ?? "a signal"}`
    : `it ended with exit code ${end.code}`;
};

const failureText = ({ command, place }: SetupWish, why: string, last: readonly string[]): string =>
  [
    `Before this message, the platform ran the project's setup command in the workspace (${place}):`,
    command.trim(),
    `It failed: ${why}. So packages or files that the project needs may be missing.`,
    ...(last.length > 0 ? ["The end of its output:", ...last] : []),
  ].join("\n");

/**
 * Pushes refs to the upstream server, each only from its known commit there (`--force-with-lease`). The server's report
 * decides each ref's outcome. If there is no report, or it says that the ref has moved, the ref is read (threats.md
 * G12): a push is never repeated blindly, and never assumed lost.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { parseBranchName } from "../../domain/repository/git-ref.ts";
import { Pause, PAUSED } from "../../ground/pause.ts";
import { cutText, storableText } from "../../domain/text.ts";
import { Faults } from "../../store/ports/faults.ts";
import { GitError } from "../port.ts";
import { absent, type RefUpdate } from "../server/ref-policy.ts";
import { listRemote, type Remote, remoteError, runRemote } from "./remote.ts";

/** The outcome of one ref. */
export type PushOutcome =
  | { readonly kind: "taken" }
  /** The server has another commit, `tip`. Null if the ref does not exist. */
  | { readonly kind: "moved"; readonly tip: string | null }
  /** The server's own message. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Not accepted: the ref is unchanged. */
  | { readonly kind: "failed"; readonly error: GitError }
  /** The outcome cannot be determined. */
  | { readonly kind: "unknown"; readonly error: GitError };

export interface Push {
  readonly repository: string;
  readonly updates: readonly Pick<RefUpdate, "ref" | "oldCommit" | "newCommit">[];
  /** All of them or none. */
  readonly atomic: boolean;
  /** The location of the objects, if they are not in the repository. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Pushed {
  /** By ref. */
  readonly outcomes: ReadonlyMap<string, PushOutcome>;
  /** The server's messages for the pusher, line by line. */
  readonly said: readonly string[];
}

const deadlineMs = 15 * 60_000;
const maxLinesSaid = 20;

/** A name that is safe on git's command line, where `:`, `+`, `^` and `*` have a meaning. */
export const isPlainRef = (ref: string): boolean => {
  const [, name = ""] = /^refs\/(?:heads|tags|wip)\/(.+)$/s.exec(ref) ?? [];
  return Result.isSuccess(parseBranchName(name));
};

const orNothing = (commit: string): string => (commit === absent ? "" : commit);

const pushCommand = (remote: Remote, { updates, atomic }: Push): readonly string[] => [
  "push",
  "--porcelain",
  "--progress",
  "--no-verify",
  "--recurse-submodules=no",
  ...(atomic ? ["--atomic"] : []),
  ...updates.map(({ ref, oldCommit }) => `--force-with-lease=${ref}:${orNothing(oldCommit)}`),
  "--",
  remote.address,
  ...updates.map(({ ref, newCommit }) => `${orNothing(newCommit)}:${ref}`),
];

const progress = /^(?:Enumerating|Counting|Compressing|Writing|Receiving|Resolving|Unpacking|Checking) /;

/** Lines from the server's hooks. */
const saidIn = (stderr: string): readonly string[] =>
  stderr
    .split("\n")
    .map((line) => line.split("\r").findLast((part) => part !== "") ?? "")
    .flatMap((line) => (line.startsWith("remote: ") ? [line.slice("remote: ".length).trimEnd()] : []))
    .filter((line) => line !== "" && !progress.test(line))
    .slice(-maxLinesSaid);

const isOpenQuestion = (summary: string): boolean =>
  // The lease is broken, or the server disconnected before its report.
  /\(stale info\)|\[remote failure\]|failed to report status/.test(summary);

/** `flag TAB from:to TAB summary (reason)`, one line for each ref. Refs without a report are missing. */
const outcomesIn = (stdout: string): Map<string, PushOutcome> => {
  const outcomes = new Map<string, PushOutcome>();
  for (const line of stdout.split("\n")) {
    const [flag, refs = "", summary = ""] = line.split("\t");
    const ref = refs.slice(refs.indexOf(":") + 1);
    if (flag === undefined || !/^[ +*=!-]$/.test(flag) || ref === "") continue;
    if (flag !== "!") outcomes.set(ref, { kind: "taken" });
    else if (!isOpenQuestion(summary)) {
      const reason = cutText(storableText(/\((.*)\)$/.exec(summary)?.[1] ?? summary), 500);
      outcomes.set(ref, { kind: "refused", reason });
    }
  }
  return outcomes;
};

/**
 * Reads the refs that the server did not report as accepted. If a ref is unchanged, the server's refusal counts. If it
 * has moved, that was the reason.
 */
const settle = Effect.fnUntraced(function* (
  remote: Remote,
  open: Push["updates"],
  report: { readonly error: GitError; readonly refusals: ReadonlyMap<string, PushOutcome> },
) {
  const { error, refusals } = report;
  const listing = yield* Effect.result(
    listRemote(
      remote,
      open.map(({ ref }) => ref),
    ),
  );
  return open.map(({ ref, oldCommit, newCommit }): readonly [string, PushOutcome] => {
    const refusal = refusals.get(ref);
    if (Result.isFailure(listing)) {
      if (refusal !== undefined) return [ref, refusal];
      // A server that refuses every call has refused this one.
      const why = listing.failure.code === "refused" ? listing.failure : error;
      return [ref, { kind: error.code === "refused" ? "failed" : "unknown", error: why }];
    }
    const tip = listing.success.get(ref) ?? null;
    if ((tip ?? absent) === newCommit) return [ref, { kind: "taken" }];
    if ((tip ?? absent) !== oldCommit) return [ref, { kind: "moved", tip }];
    return [ref, refusal ?? { kind: "failed", error }];
  });
});

/** Pushes. Every update gets an outcome. */
export const pushRefs = Effect.fnUntraced(function* (remote: Remote, push: Push) {
  const faults = yield* Faults;
  if ((yield* Pause).isOn) return yield* new GitError({ code: "refused", message: PAUSED });
  faults("upstream.begun");
  const run = yield* Effect.result(
    runRemote(remote, {
      repository: push.repository,
      args: pushCommand(remote, push),
      ...(push.environment === undefined ? {} : { environment: push.environment }),
      deadlineMs,
      expect: [0, 1],
    }),
  );
  const output = Result.isSuccess(run) ? run.success : null;
  const outcomes = outcomesIn(output?.stdout.toString("utf8") ?? "");
  faults("upstream.answered");
  const open = push.updates.filter(({ ref }) => outcomes.get(ref)?.kind !== "taken");
  if (open.length > 0) {
    const error = Result.isFailure(run)
      ? run.failure
      : remoteError(run.success.stderr, push.repository, remote.dialled);
    const report = { error, refusals: new Map(outcomes) };
    for (const [ref, outcome] of yield* settle(remote, open, report)) outcomes.set(ref, outcome);
  }
  const result: Pushed = { outcomes, said: saidIn(output?.stderr ?? "") };
  return result;
});

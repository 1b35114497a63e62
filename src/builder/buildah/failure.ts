/** Why a build failed, from buildah's exit code and what it wrote. Messages are those of buildah 1.28. */
import type { BuildFailure } from "../../domain/environment/build-failure.ts";
import { BuildError } from "../port.ts";
import { type Stage, fromReference } from "../../domain/environment/dockerfile.ts";
import type { BuildOutput } from "./output.ts";

/** 128 and SIGXFSZ: a file became larger than the limit on files. */
const FILE_TOO_LARGE = 153;
/** buildah's exit code if no command of a step failed. */
const NO_COMMAND = 125;
/** The longest problem that is passed on, in characters. */
const PROBLEM_MAX = 1000;

export interface EndedBuild {
  /** buildah's. Null if a signal ended it. */
  readonly code: number | null;
  readonly output: BuildOutput;
  /** Hosts that the egress proxy refused since the current step began, in order. */
  readonly refused: readonly string[];
  readonly diskBytes: number;
  readonly stages: readonly Stage[];
}

/** buildah's own last words. */
const errorLine = (tail: string): string =>
  tail
    .trimEnd()
    .split("\n")
    .findLast((line) => /^(?:Error|error|level=error)[: ]/.test(line)) ?? "";

/** buildah cannot read an instruction, although its keyword is known. */
const SYNTAX =
  /Build error|dockerfile parse error|parsing main Dockerfile|resolving step|flag provided but not defined|Syntax error|unknown flag|only supports? the|requires? (?:exactly|at least)|must have two arguments|mount type|invalid mount|invalid reference format|duplicate(?:d)? mount|bad (?:from|value)|can't find =/i;
const BASE =
  /creating build container|initializing source|pinging container registry|reading manifest|short-name|pull access denied|no stage or image found|image not known/i;

/** The line that buildah names, or else the first instruction of the kind that it names. */
const failedLine = (error: string, stages: readonly Stage[]): number | null => {
  const match = /StartLine:(\d+)|\bline (\d+)/.exec(error);
  if (match !== null) return Number(match[1] ?? match[2]);
  return stages.flat().find(({ keyword }) => new RegExp(`\\b${keyword}\\b`).test(error))?.line ?? null;
};

/** buildah's last lines: what it says of the signal that ended a command, its exit code, and the error. */
const lastLines = (tail: string): string => tail.trimEnd().split("\n").slice(-3).join("\n");
/** The last form: buildah could not write a layer's tar, and names the pipe from which the writer read. */
const FILE_SIZE =
  /: file too large|exited on file size limit exceeded|storing layer .*: io: read\/write on closed pipe/i;
const PATH_LENGTH = /: file name too long/i;
/** The longest path, in bytes. */
export const PATH_MAX = 4096;

/** A build's user namespace has no number for an owner. Last is what `chown` says of it in a step's own words. */
const OWNER =
  /insufficient UIDs or GIDs|\blchown .*: invalid argument|changing (?:ownership|group) of .*: Invalid argument/;
const OWNER_HINT =
  "A build has users and groups from 0 to 65535 only. Give the files one of these numbers, for example by `tar --owner=0 --group=0`.";

/** The end of the output, which closes with what helps if the reason is hard to read. */
const withHint = (tail: string): string => (OWNER.test(tail) ? `${tail.trimEnd()}\n${OWNER_HINT}\n` : tail);

const exitCode = (error: string, code: number | null): number | null => {
  const status = /exit status (\d+)\s*$/.exec(error)?.[1];
  if (status !== undefined) return Number(status);
  return code === null || code === NO_COMMAND ? null : code;
};

/** Classifies a build that ended by itself, with a failure. */
export const classifyFailure = ({ code, output, refused, diskBytes, stages }: EndedBuild): BuildFailure => {
  const { current, tail } = output;
  const error = errorLine(tail);
  if (current === null) {
    return SYNTAX.test(error)
      ? { code: "syntax", line: failedLine(error, stages) ?? 1, problem: error.slice(0, PROBLEM_MAX) }
      : { code: "builder_unavailable", problem: `buildah failed: ${tail.slice(-1000)}` };
  }
  const { step, instruction } = current;
  const { line } = instruction;
  const exit = exitCode(error, code);
  const [host] = refused;
  if (exit === FILE_TOO_LARGE || FILE_SIZE.test(lastLines(tail)))
    return { code: "too_large", what: "disk", limit: diskBytes };
  if (exit === null && PATH_LENGTH.test(error)) return { code: "too_large", what: "path", limit: PATH_MAX };
  if (host !== undefined) return { code: "egress_denied", host, step, line, exit, tail };
  const ranCommand = instruction.keyword === "RUN" && exit !== null;
  if (!ranCommand && SYNTAX.test(error)) {
    // buildah reads the arguments of the next instruction before it announces it.
    const next = /resolving step/.test(error) ? failedLine(error, stages) : null;
    return { code: "syntax", line: next ?? line, problem: error.slice(0, PROBLEM_MAX) };
  }
  const fromName = /--from=(\S+)/.exec(instruction.text)?.[1];
  if (!ranCommand && (instruction.keyword === "FROM" || (fromName !== undefined && BASE.test(error)))) {
    return { code: "base_unavailable", reference: fromName ?? fromReference(instruction), line, tail };
  }
  return { code: "step_failed", step, line, exit, tail: withHint(tail) };
};

export const buildError = (failure: BuildFailure): BuildError => new BuildError({ failure });

/**
 * Ends processes that hold a command's output open after the command has ended, e.g. of `setsid server & echo done`. Runtimes wait for
 * the end of the output, so the turn would go on for as long as the process does.
 *
 *  S1 A process is ended only if its own output leads to the runtime, and the rest of its command is gone: the shell has ended,
 *     and the kernel gave the process to another parent. A server whose output goes to a file stays.
 *  S2 It has a grace. People read its name in the conversation.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type { ConversationFeed } from "../conversation/feed.ts";
import { noteItem } from "../conversation/note.ts";
import type { Log } from "../logs/log.ts";
import { runToEnd, type Launch } from "./process.ts";
import type { Report } from "../report.ts";

/** How long a process may hold the output of a command that has ended. */
const GRACE_MS = 10_000;
const LOOK_EVERY = "1 second";
/** The kernel counts the start of a process in these. */
const TICK_MS = 10;
/** A command's process may seem older than its record. */
const CLOCK_SLACK_MS = 1000;

export interface ProcessFact {
  readonly pid: number;
  readonly parent: number;
  /** ms since the epoch. */
  readonly startMs: number;
  readonly name: string;
}

/** Facts in the order of their pids, read from a line like those of `/proc/PID/stat`. Null if it has ended. */
export const factIn = (stat: string, bootMs: number): ProcessFact | null => {
  // A name may contain blanks and parentheses.
  const [open, close] = [stat.indexOf("("), stat.lastIndexOf(")")];
  const [state = "", parent = "", ...rest] = stat.slice(close + 2).split(" ");
  if (open < 0 || state === "Z" || state === "X") return null;
  return {
    pid: Number(stat.slice(0, open)),
    parent: Number(parent),
    startMs: bootMs + Number(rest[17]) * TICK_MS,
    name: stat.slice(open + 1, close),
  };
};

const below = (facts: readonly ProcessFact[], roots: ReadonlySet<number>): ReadonlySet<number> => {
  const children = Map.groupBy(facts, ({ parent }) => parent);
  const pids = new Set(roots);
  // A set is walked through together with what is added meanwhile.
  for (const pid of pids) for (const child of children.get(pid) ?? []) pids.add(child.pid);
  return pids;
};

/** The processes of a runtime, and those that its command has left behind. */
export interface Left {
  readonly strays: readonly ProcessFact[];
  readonly runtime: ReadonlySet<number>;
}

/**
 * S1, as far as parents tell it. No strays: the command has not ended.
 *
 * @param inits the first process of each namespace, which gets the children of processes that end
 */
export const leftBehind = (
  facts: readonly ProcessFact[],
  inits: ReadonlySet<number>,
  { runtimePid, sinceMs }: { readonly runtimePid: number; readonly sinceMs: number },
): Left => {
  const young = facts.filter(({ startMs }) => startMs >= sinceMs - CLOCK_SLACK_MS);
  const orphans = young.filter(({ pid, parent }) => pid !== runtimePid && inits.has(parent));
  const orphanIds = below(facts, new Set(orphans.map(({ pid }) => pid)));
  const runtime = new Set([...below(facts, new Set([runtimePid]))].filter((pid) => !orphanIds.has(pid)));
  const isRunning = young.some(({ pid }) => pid !== runtimePid && runtime.has(pid));
  return { strays: isRunning ? [] : young.filter(({ pid }) => orphanIds.has(pid)), runtime };
};

/** Where the descriptors of a process lead, by their numbers. */
export type Descriptors = ReadonlyMap<string, string>;

const INODE = /^(pipe|socket):\[(\d+)\]$/;

/**
 * Whether the output of a process leads to the runtime. Both ends of a pipe have one number. The two ends of a pair of sockets are
 * made together, so their numbers follow each other.
 */
export const leadsTo = (stray: Descriptors, runtime: readonly Descriptors[]): boolean => {
  const ends = new Set(runtime.flatMap((descriptors) => [...descriptors.values()]));
  return ["1", "2"].some((number) => {
    const [, kind, inode] = INODE.exec(stray.get(number) ?? "") ?? [];
    if (kind === "pipe") return ends.has(`pipe:[${inode}]`);
    return kind === "socket" && [-1, 1].some((step) => ends.has(`socket:[${Number(inode) + step}]`));
  });
};

/** The output of `ls -l /proc/1/fd /proc/2/fd`, by process. */
export const descriptorsIn = (listing: string): ReadonlyMap<number, Descriptors> => {
  const processes = new Map<number, Map<string, string>>();
  let current = new Map<string, string>();
  for (const line of listing.split("\n")) {
    const [, pid] = /^\/proc\/(\d+)\/fd:$/.exec(line) ?? [];
    if (pid !== undefined) processes.set(Number(pid), (current = new Map()));
    const [, number, target] = / (\d+) -> (.+)$/.exec(line) ?? [];
    if (number !== undefined && target !== undefined) current.set(number, target);
  }
  return processes;
};

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
};

const readFacts = (nowMs: number): readonly ProcessFact[] => {
  const bootMs = nowMs - Number(read("/proc/uptime").split(" ")[0]) * 1000;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => factIn(read(`/proc/${pid}/stat`), bootMs) ?? []);
};

/** A process's last number is that of its own namespace. */
const isInit = (pid: number): boolean => pid === 1 || /^NSpid:.*\s1$/m.test(read(`/proc/${pid}/status`));

const findInits = (facts: readonly ProcessFact[]): ReadonlySet<number> =>
  new Set([...new Set(facts.map(({ parent }) => parent))].filter(isInit));

/** Null if the daemon may not read them. */
const readDescriptors = (pid: number): Descriptors | null => {
  try {
    const path = `/proc/${pid}/fd`;
    return new Map(readdirSync(path).map((number) => [number, readlinkSync(`${path}/${number}`)]));
  } catch {
    return null;
  }
};

export interface StraysParts {
  readonly report: Pick<Report, "runtime">;
  readonly feed: Pick<ConversationFeed, "item" | "commandSince">;
  readonly log: Log;
  /** A command that runs as the agent. */
  readonly launch: (command: readonly string[]) => Launch;
}

/** Looks while it runs. */
export const endStrays = (parts: StraysParts): Effect.Effect<never> => {
  const { report, feed } = parts;
  let foundMs: number | null = null;
  const askedToEnd = new Set<number>();
  const look = Effect.gen(function* () {
    const { pid } = report.runtime;
    const sinceMs = feed.commandSince;
    const nowMs = yield* Clock.currentTimeMillis;
    const facts = pid === null || sinceMs === null ? [] : readFacts(nowMs);
    const left = leftBehind(facts, findInits(facts), { runtimePid: pid ?? 0, sinceMs: sinceMs ?? nowMs });
    foundMs = left.strays.length === 0 ? null : (foundMs ?? nowMs);
    if (foundMs === null || nowMs - foundMs < GRACE_MS) return;
    for (const stray of yield* holders(left, parts)) end(stray, { ...parts, askedToEnd, nowMs });
  });
  return Effect.forever(Effect.andThen(Effect.sleep(LOOK_EVERY), look));
};

/** Those of them whose output leads to the runtime. */
const holders = ({ strays, runtime }: Left, { launch }: StraysParts): Effect.Effect<readonly ProcessFact[]> =>
  Effect.gen(function* () {
    const pids = [...runtime, ...strays.map(({ pid }) => pid)];
    const own = new Map(pids.map((pid) => [pid, readDescriptors(pid)]));
    // A daemon with a user of its own may not look into the agent's processes. The agent may.
    const listing = ![...own.values()].includes(null)
      ? ""
      : yield* runToEnd(launch(["ls", "-l", ...pids.map((pid) => `/proc/${pid}/fd`)])).pipe(
          Effect.match({ onFailure: () => "", onSuccess: ({ stdout }) => stdout }),
        );
    const agents = descriptorsIn(listing);
    const descriptors = (pid: number): Descriptors => own.get(pid) ?? agents.get(pid) ?? new Map();
    const ends = [...runtime].map(descriptors);
    return strays.filter(({ pid }) => leadsTo(descriptors(pid), ends));
  });

/** S2. It is asked to end first. */
const end = (
  { pid, name }: ProcessFact,
  {
    feed,
    log,
    askedToEnd,
    nowMs,
  }: StraysParts & { readonly askedToEnd: Set<number>; readonly nowMs: number },
): void => {
  try {
    process.kill(pid, askedToEnd.has(pid) ? "SIGKILL" : "SIGTERM");
  } catch (error) {
    return log("a process that holds a command's output cannot be ended", {
      pid,
      name,
      message: String(error),
    });
  }
  if (askedToEnd.has(pid)) return;
  askedToEnd.add(pid);
  log("a process held the output of a command that had ended", { pid, name });
  feed.item(noteItem(`stray_${pid}`, noteOn(name, pid), nowMs));
};

const noteOn = (name: string, pid: number): string =>
  `The command has ended, but the process ${name} (${pid}) that it left behind held its output open, so that the turn could not go on. ` +
  "The platform has ended that process. A process stays if its output goes elsewhere: server > server.log 2>&1 &";

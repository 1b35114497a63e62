/** Runs one phase of a build in its sandbox, and ends it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import type { Duplex, Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { poll } from "../../ground/poll.ts";
import { joinGroups } from "../../sandbox/machine/limits/cgroup.ts";
import { processesSeeing, signal } from "../../sandbox/machine/processes.ts";
import { identityMap, type LaunchRequest, launchCommand } from "./launch.ts";

/** What the program inside may report: one line of JSON with the image's environment. */
const REPORT_BYTES_MAX = 2 * 1024 * 1024;
/** How much of bubblewrap's complaint is kept. */
const COMPLAINT_BYTES_MAX = 4096;
/** Milliseconds after which killed processes count as stuck in the kernel. */
const BURIAL_MS = 10_000;
const POLL_MS = 10;

export interface PhaseRequest extends LaunchRequest {
  /** The file with the seccomp program. */
  readonly filter: string;
  /** Control groups for all processes. */
  readonly groups: readonly string[];
  /** The standard input of the program inside: a directory's files as a tar, or a text. */
  readonly input: { readonly files: string } | { readonly text: string };
  /** Takes the output of the program inside. */
  readonly output: (chunk: Buffer) => void;
  /** Gets the outermost process. */
  readonly started: (child: ChildProcess) => void;
}

export interface PhaseEnd {
  /** Null if a signal ended it. */
  readonly code: number | null;
  /** Lines that the program inside reported. The first is `up`. */
  readonly reports: readonly string[];
  /** What bubblewrap wrote before the program ran. */
  readonly complaint: string;
}

/** Collects text up to a number of bytes. The rest is read and dropped. */
const collect = (stream: Readable, bytesMax: number): (() => string) => {
  const chunks: Buffer[] = [];
  let length = 0;
  stream.on("data", (chunk: Buffer) => {
    if (length < bytesMax) chunks.push(chunk.subarray(0, bytesMax - length));
    length += chunk.length;
  });
  stream.on("error", () => undefined);
  return () => Buffer.concat(chunks).toString("utf8");
};

/** Sends a directory's files as a tar. Links are sent as links, and devices as what they are: none can be made inside. */
const sendFiles = async (tar: string, directory: string, to: Writable): Promise<void> => {
  const child = spawn(
    tar,
    [
      "--create",
      "--sparse",
      "--numeric-owner",
      "--owner=0",
      "--group=0",
      `--directory=${directory}`,
      "--file=-",
      ".",
    ],
    { stdio: ["ignore", "pipe", "ignore"], cwd: "/" },
  );
  const { stdout } = child;
  if (stdout === null) throw new Error("tar's output is piped");
  const close = once(child, "close");
  // If the sandbox ends early, its end has the reason.
  await pipeline(stdout, to).catch(() => child.kill("SIGKILL"));
  await close;
};

/** Waits for the launcher's first line. @returns false if it ended before */
const waits = async (reports: Readable, child: ChildProcess): Promise<boolean> => {
  const first = once(reports, "data").then(([chunk]) => (chunk as Buffer).toString().startsWith("waiting"));
  const exit = once(child, "exit").then(() => false);
  return Promise.race([first, exit]);
};

/**
 * Runs a phase to its end.
 * @throws Error if the sandbox could not be started
 */
export const runPhase = async (request: PhaseRequest): Promise<PhaseEnd> => {
  const [command = "", ...args] = launchCommand(request);
  const filter = openSync(request.filter, "r");
  let child: ChildProcess;
  try {
    child = spawn(command, args, {
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe", filter],
    });
  } finally {
    closeSync(filter);
  }
  const close = once(child, "close") as Promise<[number | null]>;
  // Awaited below; a failure before that is thrown there.
  close.catch(() => undefined);
  request.started(child);
  const [stdin, stdout, stderr, signals] = child.stdio as unknown as [Writable, Readable, Readable, Duplex];
  for (const stream of [stdin, stdout]) stream.on("error", () => undefined);
  const reports = collect(signals, REPORT_BYTES_MAX);
  const complaint = collect(stderr, COMPLAINT_BYTES_MAX);
  stdout.on("data", request.output);
  if (await waits(signals, child)) {
    for (const file of ["gid_map", "uid_map"])
      writeFileSync(`/proc/${child.pid}/${file}`, identityMap(request.uid));
    await joinGroups(request.groups, child.pid ?? 0);
    const { input } = request;
    stdin.write("go\n");
    if ("text" in input) stdin.end(input.text);
    else await sendFiles(request.tools.tar, input.files, stdin);
  }
  const [code] = await close;
  const lines = reports().split("\n").slice(1, -1);
  return { code, reports: lines, complaint: complaint().trim() };
};

/**
 * Kills every process of a build: the outermost one, with whose end the sandbox's PID 1 is killed, and everything that
 * still sees one of its mounts.
 * @throws Error if some processes do not end
 */
export const killPhase = async (child: ChildProcess | null, run: string): Promise<void> => {
  const isGone = (): boolean => {
    if (child !== null && child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    const left = processesSeeing(run);
    for (const pid of left) signal(pid, "SIGKILL");
    return left.length === 0 && (child === null || child.exitCode !== null || child.signalCode !== null);
  };
  const isBuried = await poll(isGone, { everyMs: POLL_MS, withinMs: BURIAL_MS });
  if (isBuried === null) throw new Error("processes of a build cannot be stopped");
};

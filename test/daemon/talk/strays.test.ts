/** Which processes hold the output of a command that has ended. */
import { expect, test } from "vitest";
import {
  descriptorsIn,
  factIn,
  leadsTo,
  leftBehind,
  type ProcessFact,
} from "../../../daemon/agent/strays.ts";

const RUNTIME = 10;
const SINCE = 100_000;

const fact = (pid: number, parent: number, rest: Partial<ProcessFact> = {}): ProcessFact => ({
  pid,
  parent,
  startMs: SINCE + 500,
  name: `p${pid}`,
  ...rest,
});

const OLD = { startMs: SINCE - 60_000 };
/** The first process, the daemon, the runtime and a server of the runtime's. */
const STANDING = [fact(1, 0, OLD), fact(5, 1, OLD), fact(RUNTIME, 5, OLD), fact(11, RUNTIME, OLD)];

/** 1 and 12 are the first of their namespaces. */
const strays = (facts: readonly ProcessFact[]) =>
  leftBehind([...STANDING, ...facts], new Set([1, 12]), { runtimePid: RUNTIME, sinceMs: SINCE }).strays.map(
    ({ pid }) => pid,
  );

test("a process is left behind once its shell has ended, with the processes that it started", () => {
  const shell = fact(20, RUNTIME);
  expect(strays([shell, fact(21, 20)])).toEqual([]);
  expect(strays([fact(21, 1), fact(22, 21)])).toEqual([21, 22]);
  // Another command still runs.
  expect(strays([fact(21, 1), fact(30, RUNTIME)])).toEqual([]);
  // It was left behind by an earlier command.
  expect(strays([fact(21, 1, OLD)])).toEqual([]);
});

test("the first process of the agent's own namespace is a parent of those left behind, too", () => {
  const inner = [fact(12, RUNTIME, OLD), fact(13, 12, OLD)];
  expect(strays([...inner, fact(20, 13), fact(21, 20)])).toEqual([]);
  expect(strays([...inner, fact(21, 12)])).toEqual([21]);
});

test.each([
  ["one pipe", ["1", "pipe:[7]"], ["9", "pipe:[7]"], true],
  ["a pair of sockets, as its error output", ["2", "socket:[8]"], ["9", "socket:[7]"], true],
  ["the other end of a pair", ["1", "socket:[8]"], ["9", "socket:[9]"], true],
  ["a file", ["1", "/workspace/log"], ["9", "/workspace/log"], false],
  ["nowhere", ["1", "/dev/null"], ["9", "/dev/null"], false],
  ["another pipe", ["1", "pipe:[8]"], ["9", "pipe:[7]"], false],
  ["a pipe that is not its output", ["3", "pipe:[7]"], ["9", "pipe:[7]"], false],
] as const)("whose output is %s leads to the runtime: %j, %j, %s", (_, own, runtime, isSo) => {
  expect(leadsTo(new Map([own]), [new Map(), new Map([runtime])])).toBe(isSo);
});

const stat = (state: string) =>
  `21 (a) b (c) ${state} 1 21 21 0 -1 4194304 152 0 0 0 0 0 0 0 20 0 1 0 5000 2338816 440 1844674407 1 1 0`;

test("a line of the kernel is read, whatever the name", () => {
  expect(factIn(stat("S"), 1000)).toEqual({ pid: 21, parent: 1, startMs: 51_000, name: "a) b (c" });
  expect(factIn(stat("Z"), 1000)).toBeNull();
  expect(factIn("", 1000)).toBeNull();
});

test("a listing of the agent's is read", () => {
  const listing = [
    "/proc/21/fd:",
    "total 0",
    "lrwx------ 1 1001 1001 64 Nov 29 00:39 0 -> /dev/null",
    "lrwx------ 1 1001 1001 64 Nov 29 00:39 1 -> socket:[7045802]",
    "",
    "/proc/22/fd:",
    "l-wx------ 1 1001 1001 64 Nov 29 00:39 12 -> pipe:[5]",
  ].join("\n");
  expect([...descriptorsIn(listing)].map(([pid, map]) => [pid, Object.fromEntries(map)])).toEqual([
    [21, { 0: "/dev/null", 1: "socket:[7045802]" }],
    [22, { 12: "pipe:[5]" }],
  ]);
});

/**
 * `npm run bench:git-start [-- --starts 300]`: what one start of git costs a process of 60 MB and one of 300 MB, when the process forks
 * itself and when the starter does (decision 0052). Prints means; it measures and judges nothing.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { startProgram } from "../../src/starter/starter.ts";

const given = process.argv.indexOf("--starts");
const STARTS = given === -1 ? 300 : Number(process.argv[given + 1]);
const SIZES_MB = [60, 300];
const TICKS_PER_MS = 0.1;
const env = { PATH: process.env["PATH"], LC_ALL: "C" };

/** CPU time of a process and of its children that it has reaped, in milliseconds. */
const cpuMs = (pid: number | "self"): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_MS;
};

const parentOf = (pid: number): number =>
  Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

const forked = async (): Promise<void> => {
  const child = spawn("git", ["version"], {
    env,
    cwd: "/",
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  child.stdout.resume();
  child.stderr.resume();
  await once(child, "close");
};

const asked = async (): Promise<void> => {
  const program = startProgram({
    program: "git",
    args: ["version"],
    env,
    cwd: "/",
    group: "own",
    descriptors: [1, 2],
    graceMs: 0,
  });
  await program.started;
  for (const socket of program.sockets.values()) socket.resume();
  await program.ended;
  for (const socket of program.sockets.values()) socket.destroy();
};

/** A heap of objects, of which some change between two starts, as in a service. */
const heap: { value: number }[][] = [];
const grow = (megabytes: number): void => {
  while (process.memoryUsage.rss() < megabytes * 1e6)
    heap.push(Array.from({ length: 10_000 }, (_, value) => ({ value })));
};
const change = (): void => {
  for (const [index, part] of heap.entries())
    for (let at = index % 500; at < part.length; at += 5000) (part[at] ?? { value: 0 }).value += 1;
};

const measure = async (start: () => Promise<void>, starter: number | null) => {
  const all = (): number => cpuMs("self") + (starter === null ? 0 : cpuMs(starter));
  const before = all();
  const own = process.cpuUsage();
  for (let left = STARTS; left > 0; left -= 1) {
    await start();
    change();
  }
  const { user, system } = process.cpuUsage(own);
  return { all: (all() - before) / STARTS, caller: (user + system) / 1000 / STARTS };
};

const witness = startProgram({
  program: "sleep",
  args: ["600"],
  env,
  cwd: "/",
  group: "own",
  descriptors: [],
  graceMs: 0,
});
await witness.started;
const starter = parentOf(witness.pid());
for (const size of SIZES_MB) {
  grow(size);
  for (const [name, start, by] of [
    ["forks itself", forked, null],
    ["asks the starter", asked, starter],
  ] as const) {
    await start();
    const { all, caller } = await measure(start, by);
    process.stdout.write(
      `${size} MB, ${name}: ${all.toFixed(2)} ms CPU time a start, of which ${caller.toFixed(2)} ms in the caller\n`,
    );
  }
}
witness.abandon();
await witness.ended;

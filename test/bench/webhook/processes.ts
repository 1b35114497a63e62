/** CPU time and descent of processes, from Linux's /proc. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

const TICK_MS = 1000 / Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** User and system time, that of children which ended and were waited for included. */
  readonly ticks: number;
}

const read = (pid: string): Process[] => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in parentheses and may itself hold blanks and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return [{ pid: Number(pid), parent: Number(fields[1]), ticks }];
  } catch {
    return []; // It ended while it was looked at.
  }
};

const all = (): readonly Process[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap(read);

export const childrenOf = (parent: number): readonly number[] =>
  all()
    .filter((process) => process.parent === parent)
    .map(({ pid }) => pid);

/** CPU time in ms that a process and everything that descends from it have used so far. */
export const cpuMsOf = (root: number): number => {
  const processes = all();
  const within = new Set([root]);
  // A child may stand before its parent once pids have wrapped: repeated until nothing is added.
  for (let before = 0; before !== within.size;) {
    before = within.size;
    for (const { pid, parent } of processes) if (within.has(parent)) within.add(pid);
  }
  return processes.filter(({ pid }) => within.has(pid)).reduce((sum, { ticks }) => sum + ticks * TICK_MS, 0);
};

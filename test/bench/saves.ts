/**
 * `npm run bench:saves [-- --files 100,10000,100000 --rounds 5]`: what a save costs in the sandbox, beside `git status` and
 * `git add -A` of the same tree. A save lists the workspace and reads what has changed, as a daemon does; the contenders take turns. Prints
 * processor time and time by the clock, and their ratios to `git status` of the same round.
 */
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { framesFrom, readMemory } from "../../daemon/saving/memory.ts";
import type { Listing } from "../../src/domain/save/listing.ts";
import { median, wholeFrom1 } from "./figures.ts";
import { git, guarded, makeTree, path, place, root, run, workspace } from "./saves/workspace.ts";

const { values } = parseArgs({
  options: {
    files: { type: "string", default: "100,10000,100000" },
    rounds: { type: "string", default: "5" },
  },
});
const SIZES = values.files.split(",").map((text) => wholeFrom1("files", text));
const ROUNDS = wholeFrom1("rounds", values.rounds);
const CHANGED = [5, 5000];
const MS_A_TICK = 10;

/** Processor time of the children so far, ms. */
const childrenMs = (): number => {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * MS_A_TICK;
};

interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
}

const measured = (work: () => void): Cost => {
  const [cpu, since] = [childrenMs(), performance.now()];
  work();
  return { cpuMs: childrenMs() - cpu, wallMs: performance.now() - since };
};

/** The contenders, each as one round of work. */
const contenders = (commit: string): Readonly<Record<string, () => void>> => ({
  status: () => void git(["status", "--porcelain=v2", "-z", "--untracked-files=all"]),
  add: () => {
    const objects = join(root, "objects");
    const index = join(root, "index");
    mkdirSync(objects, { recursive: true });
    writeFileSync(index, readFileSync(join(workspace, ".git/index")));
    git(["add", "-A"], {
      GIT_INDEX_FILE: index,
      GIT_OBJECT_DIRECTORY: objects,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(workspace, ".git/objects"),
    });
    rmSync(objects, { recursive: true, force: true });
  },
  save: () => {
    const request = { pushed: commit, base: commit };
    const said = run({ ...place, command: "list", request, known: [], contentsSince: 0 });
    const end = said.indexOf("\n");
    const { items } = JSON.parse(said.subarray(end + 1).toString("utf8")) as Listing;
    const asked = items.flatMap(({ kind, path: name, object }) =>
      object === null ? [] : [{ kind, path: name, object }],
    );
    const wanted = { items: asked, share: 1 };
    if (framesFrom(readMemory(said.subarray(0, end), 0), wanted) === null)
      run({ ...place, command: "read", request: wanted });
  },
});

const results: object[] = [];
for (const files of SIZES) {
  const commit = makeTree(files);
  let changed = 0;
  for (const wanted of CHANGED.filter((count) => count <= files)) {
    for (; changed < wanted; changed += 1) appendFileSync(join(workspace, path(changed)), "One line more.\n");
    const names = Object.entries(contenders(commit));
    const costs = new Map(names.map(([name]) => [name, [] as Cost[]]));
    for (let round = 0; round <= ROUNDS; round += 1)
      for (const [name, work] of names.toSorted(() => (round % 2 === 0 ? 1 : -1))) {
        const cost = measured(work);
        // The first round fills the caches.
        if (round > 0) costs.get(name)?.push(cost);
      }
    const of = (name: string, what: keyof Cost): readonly number[] =>
      (costs.get(name) ?? []).map((cost) => cost[what]);
    const ratio = (name: string, what: keyof Cost): number =>
      median(of(name, what).map((cost, at) => cost / Math.max(of("status", what)[at] ?? 0, MS_A_TICK)));
    for (const [name] of names) {
      const row = {
        files,
        changed: wanted,
        name,
        cpu_ms: Math.round(median(of(name, "cpuMs"))),
        wall_ms: Math.round(median(of(name, "wallMs"))),
        cpu_ratio: Number(ratio(name, "cpuMs").toFixed(2)),
        wall_ratio: Number(ratio(name, "wallMs").toFixed(2)),
      };
      results.push(row);
      process.stdout.write(
        `${String(files).padStart(7)} files, ${String(wanted).padStart(4)} changed: ${name.padEnd(7)}` +
          `${String(row.cpu_ms).padStart(7)} ms of CPU (${row.cpu_ratio}), ${row.wall_ms} ms (${row.wall_ratio})\n`,
      );
    }
  }
}
guarded.remove();
process.stdout.write(`${JSON.stringify(results)}\n`);

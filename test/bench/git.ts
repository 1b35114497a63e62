/**
 * `npm run bench:git [-- --rounds 2 --percent 5 --branches 128]`: what git costs through the service. As it is, it ends within two
 * minutes. The long form is `--rounds 5 --percent 100 --branches 256`.
 *
 * Clones of four repositories (200 files; 20,000 files; 10,000 commits; 500 MiB that do not pack), made from a fixed seed:
 * through the service's endpoint with a token, and by a plain `git clone` from the same disk, both of the same repository and
 * without a checkout. Then clones into a sandbox, as a session's boot makes them, beside a plain `git clone` from the same
 * disk; both with a checkout.
 *
 * Session branches a second at 1, 8 and 32 at a time: by the hosted backend, and by bare `git update-ref` processes, as git
 * comes and as durable as ours are.
 *
 * Each round measures all of them one after another, in another order each round; a first round warms everything up and is
 * not counted. Prints medians; ratios are taken within a round. `--percent` makes the three larger repositories smaller.
 * They are no pass mark: client, servers and git share the machine's cores. The last line is one JSON object.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { parseArgs, promisify } from "node:util";
import { guardedDirectory } from "../support/machine/guard.ts";
import { Installation, TOKEN } from "../support/service/process-service.ts";
import { MAKERS, openBranches, type Maker } from "./git/branches.ts";
import { cloneIntoSandbox } from "./git/into-sandbox.ts";
import { fill, SHAPES, sizeOf, type Shape } from "./git/repositories.ts";
import { median, rounded, turned, wholeFrom1 } from "./figures.ts";

const run = promisify(execFile);
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "2" },
    percent: { type: "string", default: "5" },
    branches: { type: "string", default: "128" },
  },
});
const positive = (name: keyof typeof values): number => wholeFrom1(name, values[name]);
const rounds = positive("rounds");
const percent = positive("percent");
const branches = positive("branches");
const AT_ONCE = [1, 8, 32] as const;

/** `in hosted`: ours, in a sandbox; `checkout`: from the disk, with a checkout. */
type Server = "ours" | "disk" | "in hosted" | "checkout";
type Round = Readonly<Record<string, number>>;

const environment = {
  PATH: process.env["PATH"] ?? "",
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
};

/** Seconds a clone takes. */
const clone = async (
  url: string,
  directory: string,
  options: readonly string[] = ["--bare"],
): Promise<number> => {
  const into = mkdtempSync(path.join(directory, "clone-"));
  const started = performance.now();
  await run("git", ["clone", "--quiet", ...options, url, into], { cwd: directory, env: environment });
  const seconds = (performance.now() - started) / 1000;
  rmSync(into, { recursive: true });
  return seconds;
};

/** The largest the process has been, in MiB. */
const peakMib = (pid: number): number =>
  Math.round(Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024);

/** Makes each shape a project of the service's. @returns where it may be cloned from. */
const prepare = async (
  installation: Installation,
  call: (repository: string) => Promise<string>,
): Promise<ReadonlyMap<Shape, string>> => {
  const projects = new Map<Shape, string>();
  for (const shape of SHAPES) {
    const source = path.join(installation.directory, "import", `${shape}.git`);
    mkdirSync(source, { recursive: true });
    await run("git", ["init", "--quiet", "--bare", "--initial-branch=main", source]);
    await fill(source, sizeOf(shape, percent));
    projects.set(shape, await call(source));
    rmSync(source, { recursive: true });
  }
  return projects;
};

const tell = (text: string): void => void process.stdout.write(`${text}\n`);

const runClones = async (directory: string): Promise<{ results: Round[]; peak: number; before: number }> => {
  const installation = await Installation.open();
  const life = await installation.start({});
  const root = path.join(installation.dataDir, "repositories");
  try {
    const projects = await prepare(installation, (repository) => life.project(repository));
    const before = peakMib(life.pid);
    const endpoint = (id: string) => `${life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${id}.git`;
    const onDisk = (id: string) => `file://${path.join(root, `${id}.git`)}`;
    const timed: Readonly<Record<Server, (id: string) => Promise<number>>> = {
      ours: (id) => clone(endpoint(id), directory),
      disk: (id) => clone(onDisk(id), directory),
      checkout: (id) => clone(onDisk(id), directory, []),
      "in hosted": (id) => cloneIntoSandbox(life, id),
    };
    const inside: readonly Server[] = ["checkout", "in hosted"];
    const results: Round[] = [];
    for (let number = 0; number <= rounds; number += 1) {
      const round: Record<string, number> = {};
      for (const servers of [turned<Server>(["ours", "disk"], number), inside]) {
        // A boot is warm after the first shape, and takes longer than most clones.
        const shapes = number === 0 && servers === inside ? [...projects].slice(0, 1) : [...projects];
        for (const [shape, id] of shapes)
          for (const server of servers) round[`${shape} ${server}`] = await timed[server](id);
      }
      if (number > 0) results.push(round);
      const told = SHAPES.map((shape) => `${shape} ${round[`${shape} ours`]?.toFixed(2)} s`).join(", ");
      tell(`${number === 0 ? "warm-up" : `round ${number}`}: ${told}`);
    }
    return { results, before, peak: peakMib(life.pid) };
  } finally {
    await life.end("SIGTERM");
    await installation.close();
  }
};

const runBranches = async (directory: string): Promise<Round[]> => {
  const made = await openBranches(path.join(directory, "repositories"));
  const results: Round[] = [];
  try {
    for (let number = 0; number <= rounds; number += 1) {
      const round: Record<string, number> = {};
      for (const atOnce of AT_ONCE)
        for (const maker of turned<Maker>(MAKERS, number)) {
          round[`${atOnce} ${maker}`] = await made.perSecond(maker, { count: branches, atOnce });
        }
      if (number > 0) results.push(round);
    }
    return results;
  } finally {
    await made.close();
  }
};

const { directory, remove } = guardedDirectory("platform-bench-");
try {
  const made = await runBranches(directory);
  const clones = await runClones(directory);
  const middle = (all: readonly Round[], of: (round: Round) => number): number =>
    rounded(median(all.map(of)));
  const at = (round: Round, name: string): number => round[name] ?? Number.NaN;
  const ratio = (all: readonly Round[], ours: string, other: string): number =>
    middle(all, (round) => at(round, other) / at(round, ours));
  const cloned = SHAPES.map((shape) => {
    const seconds = (server: Server) => middle(clones.results, (round) => at(round, `${shape} ${server}`));
    return [
      shape,
      {
        ours_s: seconds("ours"),
        disk_s: seconds("disk"),
        speed_to_disk: ratio(clones.results, `${shape} ours`, `${shape} disk`),
        checkout_s: seconds("checkout"),
        in_hosted_s: seconds("in hosted"),
        speed_in_sandbox_to_checkout: ratio(clones.results, `${shape} in hosted`, `${shape} checkout`),
      },
    ] as const;
  });
  const branched = AT_ONCE.map((atOnce) => {
    const perSecond = (maker: Maker) => Math.round(middle(made, (round) => at(round, `${atOnce} ${maker}`)));
    const rate = (maker: Maker) => rounded(1 / ratio(made, `${atOnce} ours`, `${atOnce} ${maker}`));
    return [
      atOnce,
      {
        ...Object.fromEntries(MAKERS.map((maker) => [`${maker}_per_second`, perSecond(maker)])),
        rate_to_bare: rate("bare"),
        rate_to_durable: rate("durable"),
      },
    ] as const;
  });
  const figures = {
    rounds,
    percent,
    clones: Object.fromEntries(cloned),
    branches_at_once: Object.fromEntries(branched),
    service_mib: { before_clones: clones.before, peak: clones.peak },
  };
  for (const [shape, figure] of cloned) tell(`${shape}: ${JSON.stringify(figure)}`);
  for (const [atOnce, figure] of branched) tell(`${atOnce} at once: ${JSON.stringify(figure)}`);
  tell(JSON.stringify(figures));
} finally {
  remove();
}

/**
 * `npm run bench:git [-- --rounds 2 --percent 5 --branches 128]`: what git costs through the service. As it is, it ends within two
 * minutes. The long form is `--rounds 5 --percent 100 --branches 256`.
 *
 * Clones of four repositories (200 files; 20,000 files; 10,000 commits; 500 MiB that do not pack), made from a fixed seed:
 * through the service's endpoint with a token, through `git http-backend` behind lighttpd, and by a plain `git clone` from
 * the same disk, all three of the same repository and without a checkout. The same again as projects whose repository is
 * at that lighttpd: through the endpoint when its mirror has all of it, and with the mirror still to be made.
 *
 * Then clones into a sandbox, as a session's boot makes them, of a hosted project, of one whose mirror has all of it, and of
 * one whose mirror was lost (that one from the session's acceptance on: its branch is cut when the mirror is made again),
 * beside a plain `git clone` from the same disk; all of them with a checkout.
 *
 * Session branches a second at 1, 8 and 32 at a time: by the hosted backend, and by bare `git update-ref` processes, as git
 * comes and as durable as ours are.
 *
 * Each round measures all of them one after another, in another order each round; a first round warms everything up and is
 * not counted. Prints medians; ratios are taken within a round. `--percent` makes the three larger repositories smaller.
 * The aims stand beside what came out and are no pass mark: client, servers and git share the machine's cores. The last
 * line is one JSON object.
 */
import { randomUUID } from "node:crypto";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { parseArgs, promisify } from "node:util";
import { guardedDirectory } from "../support/machine/guard.ts";
import { Installation, TOKEN, type Life } from "../support/service/process-service.ts";
import { MAKERS, openBranches, type Maker } from "./git/branches.ts";
import { lighttpdMissing, startLighttpd } from "./git/lighttpd.ts";
import { cloneIntoSandbox } from "./git/into-sandbox.ts";
import { fill, SHAPES, sizeOf, type Shape } from "./git/repositories.ts";
import { median, rounded } from "./scheduler/figures.ts";
import { wholeFrom1 } from "./options.ts";

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

/**
 * `mirror` and `mirrorless`: ours, of a repository that lighttpd has, with its mirror and before there is one. `in …`: the
 * same in a sandbox; `checkout`: from the disk, with a checkout.
 */
type Server =
  | "ours"
  | "lighttpd"
  | "disk"
  | "mirror"
  | "mirrorless"
  | "in hosted"
  | "in mirror"
  | "in mirrorless"
  | "checkout";
type Round = Readonly<Record<string, number>>;

/** All of them, beginning with another one each round. */
const turned = <A>(all: readonly A[], by: number): readonly A[] => [
  ...all.slice(by % all.length),
  ...all.slice(0, by % all.length),
];

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

/** A project whose repository stays at another server; its mirror is made with it. */
const elsewhere = async (life: Life, url: string): Promise<string> => {
  const repository = { kind: "git", url };
  return String(
    (await life.call("POST", "/v1/projects", { name: `elsewhere ${randomUUID()}`, repository }))["id"],
  );
};

const tell = (text: string): void => void process.stdout.write(`${text}\n`);

const runClones = async (directory: string): Promise<{ results: Round[]; peak: number; before: number }> => {
  const installation = await Installation.open();
  const life = await installation.start({ PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1" });
  const root = path.join(installation.dataDir, "repositories");
  const lighttpd =
    lighttpdMissing === null ? await startLighttpd(path.join(directory, "lighttpd"), root) : null;
  try {
    const projects = await prepare(installation, (repository) => life.project(repository));
    const before = peakMib(life.pid);
    const endpoint = (id: string) => `${life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${id}.git`;
    const behind = (id: string) => `${lighttpd?.url}/${id}.git`;
    const mirrored = new Map<string, string>();
    if (lighttpd !== null)
      for (const id of projects.values()) mirrored.set(id, await elsewhere(life, behind(id)));
    const timed: Readonly<Record<Server, (id: string) => Promise<number>>> = {
      ours: (id) => clone(endpoint(id), directory),
      lighttpd: (id) => clone(behind(id), directory),
      disk: (id) => clone(`file://${path.join(root, `${id}.git`)}`, directory),
      mirror: (id) => clone(endpoint(mirrored.get(id) ?? ""), directory),
      mirrorless: async (id) => {
        const started = performance.now();
        const made = await elsewhere(life, behind(id));
        const making = (performance.now() - started) / 1000;
        return making + (await clone(endpoint(made), directory));
      },
      checkout: (id) => clone(`file://${path.join(root, `${id}.git`)}`, directory, []),
      "in hosted": async (id) => (await cloneIntoSandbox(life, id)).clone,
      "in mirror": async (id) => (await cloneIntoSandbox(life, mirrored.get(id) ?? "")).clone,
      "in mirrorless": async (id) => {
        const made = mirrored.get(id) ?? "";
        rmSync(path.join(installation.dataDir, "mirrors", `${made}.git`), { recursive: true });
        // The branch is not cut before there is a mirror.
        return (await cloneIntoSandbox(life, made)).sinceAccepted;
      },
    };
    const beside: readonly Server[] = lighttpd === null ? ["ours", "disk"] : ["ours", "lighttpd", "disk"];
    const mirrors: readonly Server[] = lighttpd === null ? [] : ["mirror", "mirrorless"];
    const inside: readonly Server[] =
      lighttpd === null ? ["checkout", "in hosted"] : ["checkout", "in hosted", "in mirror", "in mirrorless"];
    const results: Round[] = [];
    for (let number = 0; number <= rounds; number += 1) {
      const round: Record<string, number> = {};
      // Writes for a mirror would otherwise reach the disk during the next measurement.
      for (const servers of [turned(beside, number), mirrors, inside]) {
        // A boot is warm after the first shape, and takes longer than most clones.
        const shapes = number === 0 && servers === inside ? [...projects].slice(0, 1) : [...projects];
        for (const [shape, id] of shapes)
          for (const server of servers) round[`${shape} ${server}`] = await timed[server](id);
        await run("sync", []);
      }
      if (number > 0) results.push(round);
      const told = SHAPES.map((shape) => `${shape} ${round[`${shape} ours`]?.toFixed(2)} s`).join(", ");
      tell(`${number === 0 ? "warm-up" : `round ${number}`}: ${told}`);
    }
    return { results, before, peak: peakMib(life.pid) };
  } finally {
    await lighttpd?.stop();
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
  if (lighttpdMissing !== null) tell(`not compared with git http-backend: ${lighttpdMissing} is not here`);
  const made = await runBranches(directory);
  const clones = await runClones(directory);
  const middle = (all: readonly Round[], of: (round: Round) => number): number =>
    rounded(median(all.map(of)));
  const at = (round: Round, name: string): number => round[name] ?? Number.NaN;
  const ratio = (all: readonly Round[], ours: string, other: string): number =>
    middle(all, (round) => at(round, other) / at(round, ours));
  const cloned = SHAPES.map((shape) => {
    const seconds = (server: Server) => middle(clones.results, (round) => at(round, `${shape} ${server}`));
    const speed = (server: Server) => ratio(clones.results, `${shape} ours`, `${shape} ${server}`);
    const beside =
      lighttpdMissing === null
        ? {
            lighttpd_s: seconds("lighttpd"),
            speed_to_lighttpd: speed("lighttpd"),
            mirror_s: seconds("mirror"),
            mirrorless_s: seconds("mirrorless"),
          }
        : {};
    const inside = {
      checkout_s: seconds("checkout"),
      in_hosted_s: seconds("in hosted"),
      speed_in_sandbox_to_checkout: ratio(clones.results, `${shape} in hosted`, `${shape} checkout`),
      ...(lighttpdMissing === null
        ? { in_mirror_s: seconds("in mirror"), in_mirrorless_s: seconds("in mirrorless") }
        : {}),
    };
    return [
      shape,
      {
        ours_s: seconds("ours"),
        disk_s: seconds("disk"),
        ...beside,
        speed_to_disk: speed("disk"),
        ...inside,
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
    aims: { speed_to_lighttpd_min: 0.9 },
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

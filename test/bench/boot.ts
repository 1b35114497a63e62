/**
 * `npm run bench:boot [-- --boots 20 --provider docker]`: from an accepted session to a running one, step by step, beside a bare
 * `git clone` and a bare `opencode serve` on the same machine in the same run; and the same in a sandbox that waited for
 * the session. Prints medians and ratios; the last line is one JSON object. It measures and judges nothing.
 */
import { execFile, spawn } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";
import { guardedDirectory } from "../support/machine/guard.ts";
import { Installation, type Life } from "../support/service/process-service.ts";

const run = promisify(execFile);
const OPENCODE = path.join(
  path.dirname(createRequire(import.meta.url).resolve("opencode-linux-x64/package.json")),
  "bin/opencode",
);

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.floor(sorted.length / 2)] ?? Number.NaN);
};

const inTemporary = async <A>(work: (directory: string) => Promise<A>): Promise<A> => {
  const { directory, remove } = guardedDirectory("platform-bench-");
  try {
    return await work(directory);
  } finally {
    remove();
  }
};

/** A plain clone of the repository from the same disk, in ms. */
const bareClone = (repository: string): Promise<number> =>
  inTemporary(async (directory) => {
    const started = performance.now();
    await run("git", [
      "clone",
      "--quiet",
      "--depth",
      "1",
      `file://${repository}`,
      path.join(directory, "clone"),
    ]);
    return performance.now() - started;
  });

/** From spawning the bare runtime to its first healthy answer, in ms. */
const bareRuntime = (port: number): Promise<number> =>
  inTemporary(async (directory) => {
    const started = performance.now();
    const child = spawn(OPENCODE, ["serve", "--hostname", "127.0.0.1", "--port", String(port)], {
      cwd: directory,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: directory,
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
      },
      stdio: "ignore",
    });
    try {
      for (;;) {
        const healthy = await fetch(`http://127.0.0.1:${port}/global/health`, {
          signal: AbortSignal.timeout(250),
        })
          .then(({ ok }) => ok)
          .catch(() => false);
        if (healthy) return performance.now() - started;
        await new Promise((resolve) => {
          setTimeout(resolve, 10);
        });
      }
    } finally {
      child.kill("SIGKILL");
    }
  });

/** Steps of one boot in ms since it was accepted, as the daemon's log and the records have them. */
interface Boot {
  readonly sandbox: number;
  readonly clone: number;
  readonly runtime: number;
  readonly running: number;
}

const LOG_STEPS = { sandbox: "listening", clone: "checked out", runtime: "agent runtime" } as const;

const boot = async (life: Life, projectId: string): Promise<Boot> => {
  const { id } = (await life.call("POST", `/v1/projects/${projectId}/sessions`, {})) as { id: string };
  const session = await life.session(projectId, id, ["running", "failed"]);
  if (session["status"] !== "running")
    throw new Error(`a boot failed: ${JSON.stringify(session["failure"])}`);
  const accepted = Date.parse(String(session["created_at"]));
  const log = await life.text(`/v1/projects/${projectId}/sessions/${id}/logs?follow=0`);
  const since = (said: string) =>
    Date.parse(new RegExp(`^(\\S+) daemon ${said}(?: |$)`, "m").exec(log)?.[1] ?? "") - accepted;
  await life.call("POST", `/v1/projects/${projectId}/sessions/${id}/stop`);
  return {
    sandbox: since(LOG_STEPS.sandbox),
    clone: since(LOG_STEPS.clone),
    runtime: since(LOG_STEPS.runtime),
    running: Date.parse(String(session["running_at"])) - accepted,
  };
};

/** One session in a sandbox that waited, in ms since the request was sent or the session accepted. */
interface WarmBoot {
  /** The session is running, by its record. */
  readonly running: number;
  /** The runtime has answered a request of the client. */
  readonly answered: number;
}

const pause = (ms: number) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

const warmBoot = async (life: Life, projectId: string): Promise<WarmBoot> => {
  const ready = async () => {
    const { waiting } = await life.call("GET", `/v1/projects/${projectId}/environment`);
    return (waiting as { readonly ready: number }).ready;
  };
  while ((await ready()) === 0) await pause(100);
  // The next one starts when this one is taken. Its start is not what is measured, but it is part of each use.
  const sent = performance.now();
  const { id } = (await life.call("POST", `/v1/projects/${projectId}/sessions`, {})) as { id: string };
  const target = `/v1/projects/${projectId}/sessions/${id}`;
  const isAnswered = () =>
    life.call("GET", `${target}/runtime/session`).then(
      (answer) => Array.isArray(answer),
      () => false,
    );
  while (!(await isAnswered())) await pause(5);
  const answered = performance.now() - sent;
  const session = await life.session(projectId, id, ["running", "failed"]);
  const { waited } = await life.call("GET", `${target}/sandbox`);
  if (session["status"] !== "running" || waited !== true)
    throw new Error(`a boot was not as it should: ${JSON.stringify({ session, waited })}`);
  await life.call("POST", `${target}/stop`);
  const running = Date.parse(String(session["running_at"])) - Date.parse(String(session["created_at"]));
  return { running, answered };
};

const quantile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN);
};

const flag = process.argv.indexOf("--boots");
const boots = flag === -1 ? 20 : Number(process.argv[flag + 1]);
const named = process.argv.indexOf("--provider");
/** The sandboxes' provider. An engine is the one that PLATFORM_DOCKER_SOCKET names. */
const provider = named === -1 ? "auto" : (process.argv[named + 1] ?? "auto");
const installation = await Installation.open();
const life = await installation.start({ PLATFORM_SANDBOX_PROVIDER: provider });
const ours: Boot[] = [];
const warm: WarmBoot[] = [];
const clones: number[] = [];
const runtimes: number[] = [];
try {
  const projectId = await life.project(installation.sample);
  const repository = path.join(installation.dataDir, "repositories", `${projectId}.git`);
  await boot(life, projectId); // The first one copies nothing, but warms every cache of the machine.
  for (let round = 0; round < boots; round += 1) {
    // Interleaved, so that the machine's moods meet all three alike.
    ours.push(await boot(life, projectId));
    clones.push(await bareClone(repository));
    runtimes.push(await bareRuntime(43_000 + round));
  }
  const waits = await life.project(await installation.repository("[environment]\nwarm = 1\n"));
  for (let round = 0; round < boots; round += 1) warm.push(await warmBoot(life, waits));
} finally {
  await life.end("SIGTERM");
  await installation.close();
}
const steps = {
  sandbox: median(ours.map(({ sandbox }) => sandbox)),
  clone: median(ours.map(({ clone }) => clone)),
  runtime: median(ours.map(({ runtime }) => runtime)),
  running: median(ours.map(({ running }) => running)),
};
const warmSteps = {
  running_p50: median(warm.map(({ running }) => running)),
  running_p95: quantile(
    warm.map(({ running }) => running),
    0.95,
  ),
  first_answer_p50: median(warm.map(({ answered }) => answered)),
  first_answer_p95: quantile(
    warm.map(({ answered }) => answered),
    0.95,
  ),
};
const bare = { clone: median(clones), runtime: median(runtimes) };
const result = {
  boots,
  provider,
  ms_since_accepted: steps,
  warm_ms: warmSteps,
  bare_ms: bare,
  over_the_two_in_turn_ms: steps.running - bare.clone - bare.runtime,
  over_the_longer_one_ms: steps.running - Math.max(bare.clone, bare.runtime),
  ratio_to_the_longer_one: Number((steps.running / Math.max(bare.clone, bare.runtime)).toFixed(2)),
};
process.stdout.write(
  `accepted → daemon listening ${steps.sandbox} ms → checked out ${steps.clone} ms → runtime ready ${steps.runtime} ms → running ${steps.running} ms\n`,
);
process.stdout.write(
  `in a sandbox that waited: running after ${warmSteps.running_p50} ms (p95 ${warmSteps.running_p95}), the runtime's first answer after ${warmSteps.first_answer_p50} ms (p95 ${warmSteps.first_answer_p95})\n`,
);
process.stdout.write(
  `bare: git clone ${bare.clone} ms, opencode serve ${bare.runtime} ms (medians of ${boots})\n`,
);
process.stdout.write(`${JSON.stringify(result)}\n`);

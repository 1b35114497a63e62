/**
 * `npm run bench:boot [-- --boots 20]`: from an accepted session to a running one, step by step, beside a bare
 * `git clone` and a bare `opencode serve` on the same machine in the same run. Prints medians and ratios; the last line
 * is one JSON object. It measures and judges nothing.
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

const flag = process.argv.indexOf("--boots");
const boots = flag === -1 ? 20 : Number(process.argv[flag + 1]);
const installation = await Installation.open();
const life = await installation.start();
const ours: Boot[] = [];
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
const bare = { clone: median(clones), runtime: median(runtimes) };
const result = {
  boots,
  ms_since_accepted: steps,
  bare_ms: bare,
  over_the_two_in_turn_ms: steps.running - bare.clone - bare.runtime,
  over_the_longer_one_ms: steps.running - Math.max(bare.clone, bare.runtime),
  ratio_to_the_longer_one: Number((steps.running / Math.max(bare.clone, bare.runtime)).toFixed(2)),
};
process.stdout.write(
  `accepted → daemon listening ${steps.sandbox} ms → checked out ${steps.clone} ms → runtime ready ${steps.runtime} ms → running ${steps.running} ms\n`,
);
process.stdout.write(
  `bare: git clone ${bare.clone} ms, opencode serve ${bare.runtime} ms (medians of ${boots})\n`,
);
process.stdout.write(`${JSON.stringify(result)}\n`);

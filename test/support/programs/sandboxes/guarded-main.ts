/**
 * Programs that a test kills. `node guarded-main.ts run` starts the Postgres of a test run. `node guarded-main.ts
 * bench` starts a service with one sandbox, like a benchmark. Other words start one part of a benchmark. Each prints one JSON
 * line with its directory, and keeps running.
 */
import { readlinkSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgres } from "../../../bench/webhook/contenders.ts";
import { measureInserts } from "../../../bench/webhook/pgbench.ts";
import { childrenOf } from "../../../bench/webhook/processes.ts";
import { TestEngine } from "../../machine/container-engine.ts";
import { startNginx } from "../../machine/nginx.ts";
import { programOf } from "../../machine/processes-in.ts";
import { askForPostgres, offerPostgres } from "../../postgres/offer.ts";
import { Installation, LIGHT_AGENT } from "../../service/process-service.ts";

/** The program's output. */
export interface Started {
  readonly directory: string;
  readonly sandboxId: string | null;
}

const run = async (): Promise<Started> => {
  const { address } = await offerPostgres();
  const { url } = await askForPostgres(address);
  const database = new URL(url).searchParams.get("host") ?? "";
  return { directory: path.dirname(database), sandboxId: null };
};

const bench = async (): Promise<Started> => {
  const installation = await Installation.open();
  const life = await installation.start({
    PLATFORM_SANDBOX_PROVIDER: "local",
    ...LIGHT_AGENT,
  });
  const projectId = await life.project(installation.sample);
  const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
  const { status } = await life.session(projectId, String(id), ["running", "failed"]);
  if (status !== "running") throw new Error(`the session is ${String(status)}`);
  const sandbox = await life.call("GET", `/v1/projects/${projectId}/sessions/${String(id)}/sandbox`);
  return { directory: installation.directory, sandboxId: String(sandbox["id"]) };
};

const nginx = async (): Promise<Started> => {
  const { files } = await startNginx((port) => `server { listen 127.0.0.1:${port}; }`);
  return { directory: path.dirname(files), sandboxId: null };
};

/** Longer than the test needs. */
const INSERTS_S = 600;
const LOOK_MS = 20;

const pgbench = async (): Promise<Started> => {
  const { benchUrl } = await startPostgres();
  void measureInserts(benchUrl, { clients: 1, seconds: INSERTS_S });
  for (;;) {
    const found = childrenOf(process.pid).find((pid) => programOf(pid) === "pgbench");
    if (found !== undefined) return { directory: readlinkSync(`/proc/${found}/cwd`), sandboxId: null };
    await delay(LOOK_MS);
  }
};

const engine = async (): Promise<Started> => ({
  directory: (await TestEngine.open()).directory,
  sandboxId: null,
});

const WORDS = { run, bench, nginx, pgbench, engine } as const;
export type Word = keyof typeof WORDS;

const started = await WORDS[process.argv[2] as Word]();
process.stdout.write(`${JSON.stringify(started)}\n`);
setInterval(() => undefined, 60_000);

/** Who is measured: the service and the bare receivers, each in a process of its own on one Postgres server. */
import { createHmac, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as pg from "pg";
import { startEmbedded } from "../../../src/store/postgres/embedded/embedded.ts";
import { databaseAt } from "../../support/postgres/databases.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { startServer } from "../programs.ts";
import { childrenOf } from "./processes.ts";

export const SECRET = randomUUID();
const SLUG = "on-push";
const SECRET_NAME = "GITHUB_WEBHOOK_SECRET";

/** A receiver of webhooks: where it listens, and the process whose CPU time is its. */
export interface Receiver {
  readonly pid: number;
  readonly port: number;
  readonly path: string;
  /** 202 answers it has given so far, as the one who counts them says. */
  accepted: number;
  /** How many of them can be found again: a receiver that keeps nothing has none. */
  readonly kept: () => Promise<number>;
}

export interface Server {
  /** Of the postmaster. */
  readonly pid: number;
  /** For the service; the bare receiver and pgbench have a database of their own beside it. */
  readonly url: string;
  readonly benchUrl: string;
  readonly close: () => Promise<void>;
}

/** Where the bare receiver and pgbench insert: the same columns and indexes for both. */
const table = (name: string): string => `
  CREATE TABLE ${name} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project uuid NOT NULL,
    slug text NOT NULL,
    delivery_id text NOT NULL UNIQUE,
    body bytea NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now()
  )`;

/** Runs statements on a connection that is closed again; the rows are the last one's. */
export const statements = async (
  url: string,
  ...texts: readonly string[]
): Promise<readonly Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: readonly Record<string, unknown>[] = [];
    for (const text of texts) ({ rows } = await client.query<Record<string, unknown>>(text));
    return rows;
  } finally {
    await client.end();
  }
};

/** The embedded Postgres with its usual settings: fsync and synchronous_commit are on. */
export const startPostgres = async (): Promise<Server> => {
  const { directory, remove } = guardedDirectory("platform-bench-");
  const scope = Effect.runSync(Scope.make());
  const { url } = await Effect.runPromise(Scope.provide(startEmbedded(directory), scope));
  const benchUrl = databaseAt(url, "bench");
  await statements(url, "CREATE DATABASE bench");
  await statements(benchUrl, table("deliveries"), table("pgbench_deliveries"));
  const [pid] = (await readFile(path.join(directory, "postgres/postmaster.pid"), "utf8")).split("\n");
  return {
    pid: Number(pid),
    url,
    benchUrl,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void));
      remove();
    },
  };
};

/** Webhooks that the service accepts before the first turn. */
const FIRST = 2;

/** @param then what the service answers once its first session is admitted */
const readyToFire = async (life: Life, projectId: string, then: "queued" | "fired"): Promise<void> => {
  await life.call("PUT", `/v1/projects/${projectId}/secrets/${SECRET_NAME}`, { value: SECRET });
  const body = JSON.stringify({ ref: "refs/heads/main" });
  const signature = createHmac("sha256", SECRET).update(body).digest("hex");
  const send = async (): Promise<string> => {
    const answer = await fetch(`${life.url}/v1/webhooks/projects/${projectId}/${SLUG}`, {
      method: "POST",
      headers: { "x-hub-signature-256": `sha256=${signature}`, "x-github-delivery": randomUUID() },
      body,
    });
    return `${answer.status} ${await answer.text()}`;
  };
  const answers: string[] = [];
  while (answers.length < FIRST) answers.push(await send());
  if (!answers[0]?.startsWith('202 {"status":"fired"') || !answers[1]?.startsWith(`202 {"status":"${then}"`))
    throw new Error(`the service is not ready for the bench: ${answers.join("; ")}`);
};

type Closing = Receiver & { readonly close: () => Promise<void> };

/** The real service with simulated sandboxes; its account is at its cap, so that what is measured is the durable accept. */
export const startService = (
  server: Pick<Server, "url">,
  more: Readonly<Record<string, string>> = {},
): Promise<Closing> =>
  // The one slot is taken, and what follows waits.
  serviceWith("queued", { DATABASE_URL: server.url, PLATFORM_TIER_CAPS: '{"free": 1}', ...more });

const HELD = path.join(import.meta.dirname, "../../support/programs/sandboxes/held-hook.ts");

/**
 * The real service with a slot for every webhook: each starts a session. The only place to boot is taken for good, so what is measured
 * is the acceptance, and not the branch and the sandbox of the session.
 */
export const startStartingService = (server: Pick<Server, "url">): Promise<Closing> =>
  serviceWith("fired", {
    DATABASE_URL: server.url,
    PLATFORM_TIER_CAPS: '{"free": 1000000}',
    PLATFORM_BOOTS_AT_ONCE: "1",
    PLATFORM_BOOT_TIMEOUT_MS: String(60 * 60 * 1000),
    NODE_OPTIONS: `--import=${HELD}`,
  });

const serviceWith = async (
  then: "queued" | "fired",
  settings: Readonly<Record<string, string>>,
): Promise<Closing> => {
  const installation = await Installation.open();
  const before = new Set(childrenOf(process.pid));
  const life = await installation.start({
    PLATFORM_SANDBOX_PROVIDER: "simulated",
    PLATFORM_QUEUE_MAX: "10000000",
    ...settings,
  });
  const pid = childrenOf(process.pid).find((child) => !before.has(child));
  if (pid === undefined) throw new Error("the service has no process");
  const projectId = await life.project(installation.sample);
  await readyToFire(life, projectId, then);
  return {
    pid,
    port: Number(new URL(life.url).port),
    path: `/v1/webhooks/projects/${projectId}/${SLUG}`,
    accepted: FIRST,
    kept: async () => {
      const { account } = (await life.call("GET", "/v1/me")) as {
        account: { active_sessions: number; queued_fires: number };
      };
      return account.active_sessions + account.queued_fires;
    },
    close: async () => {
      await life.end("SIGTERM");
      await installation.close();
    },
  };
};

/** The bare receiver. Its path is the service's, so that requests are of one length. */
export const startBare = async (
  databaseUrl: string,
  like: Receiver,
): Promise<Receiver & { readonly close: () => void }> => ({
  ...(await startServer("webhook/bare.ts", { DATABASE_URL: databaseUrl, WEBHOOK_SECRET: SECRET })),
  path: like.path,
  accepted: 0,
  kept: async () => {
    const [row] = await statements(databaseUrl, "SELECT count(*)::int AS count FROM deliveries");
    return Number(row?.["count"]);
  },
});

/** Works with a service over a Postgres server of its own; neither is left behind. */
export const withService = async (
  work: (
    life: Life,
    place: { readonly installation: Installation; readonly server: Server },
  ) => Promise<unknown>,
): Promise<void> => {
  const server = await startPostgres();
  try {
    const installation = await Installation.open();
    try {
      const settings = { DATABASE_URL: server.url, PLATFORM_SANDBOX_PROVIDER: "simulated" };
      const life = await installation.start(settings);
      await work(life, { installation, server });
      await life.end("SIGTERM");
    } finally {
      await installation.close();
    }
  } finally {
    await server.close();
  }
};

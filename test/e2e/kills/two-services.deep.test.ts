/**
 * Two services, each with its own data directory, on one database: two nodes. The database decides who may admit
 * what, once and by the newest state, regardless of which node owns which actor. several-nodes.real.test.ts covers
 * resources of one node, and nodes that die.
 */
import { createHmac, randomBytes } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseCron } from "../../../src/domain/trigger/cron.ts";
import { gitOk } from "../../git/git-client.ts";
import { commitFiles } from "../../support/service/requests.ts";
import {
  countedOf,
  emptied,
  eventually,
  filled,
  firesOf,
  instantAhead,
  instantsOf,
  instantsUnaccounted,
  ledgerOf,
  sessionsOf,
  stopSession,
} from "../../support/service/account-view.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { unaccounted } from "../../support/webhooks/webhook-ledger.ts";
import { WebhookSender, type RequestLog } from "../../support/webhooks/webhook-sender.ts";
import { TEST_MS } from "../../support/patience.ts";

const CAP = 12;
const EVERY_SECOND = "* * * * * *";
const TICK = `[[triggers]]
slug = "tick"
type = "cron"
cron = "${EVERY_SECOND}"
prompt = "{{ cron.fired_at }}"
`;
const HOOK = `[[triggers]]
slug = "hook"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "{{ body.ref }}"
`;
const schedule = Result.getOrThrow(parseCron(EVERY_SECOND));

const scope = Effect.runSync(Scope.make());
const installations: Installation[] = [];
let here: Life;
let there: Life;
/** Projects of the first service. */
let ticks = "";
let hooks = "";
let secret = "first secret";
/** A repository with a webhook trigger, for more projects. */
let fresh = "";
/** Its sessions start by hand only. */
let quiet = "";

const setSecret = async (value: string) => {
  await here.call("PUT", `/v1/projects/${hooks}/secrets/HOOK_SECRET`, { value });
  secret = value;
};

beforeAll(async () => {
  const settings = {
    DATABASE_URL: await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope)),
    PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
    PLATFORM_SANDBOX_PROVIDER: "simulated",
    PLATFORM_TIER_CAPS: JSON.stringify({ free: CAP }),
    // A person who stops a session whose sandbox is on the frozen service waits for so long that its work is saved.
    PLATFORM_SAVE_TIMEOUT_MS: "1000",
  };
  const start = async (program: "plain" | "armed") => {
    const installation = await Installation.open();
    installations.push(installation);
    return { installation, life: await installation.start(settings, program) };
  };
  const first = await start("armed");
  here = first.life;
  there = (await start("plain")).life;
  const repository = await first.installation.repository(HOOK);
  await gitOk(repository, "checkout", "--quiet", "-b", "off");
  await commitFiles(repository, { "platform.toml": `${HOOK}enabled = false\n` });
  await gitOk(repository, "checkout", "--quiet", "main");
  hooks = await here.project(repository);
  fresh = await first.installation.repository(HOOK);
  quiet = await here.project(await first.installation.repository(HOOK));
  await setSecret(secret);
  ticks = await here.project(await first.installation.repository(TICK));
}, TEST_MS);
afterAll(async () => {
  here?.signal("SIGCONT");
  for (const life of [here, there]) await life?.end("SIGTERM");
  for (const installation of installations) await installation.close();
  await Effect.runPromise(Scope.close(scope, Exit.void));
}, TEST_MS);

interface Delivered {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Posts a webhook to one of them. */
const deliver = async (
  life: Life,
  delivery: string | null,
  { key = secret, project = hooks }: { readonly key?: string; readonly project?: string } = {},
): Promise<Delivered> => {
  const body = JSON.stringify({ ref: "refs/heads/main" });
  const answer = await fetch(`${life.url}/v1/webhooks/projects/${project}/hook`, {
    method: "POST",
    headers: {
      "x-hub-signature-256": `sha256=${createHmac("sha256", key).update(body).digest("hex")}`,
      ...(delivery === null ? {} : { "x-github-delivery": delivery }),
    },
    body,
  });
  return { status: answer.status, body: (await answer.json()) as Delivered["body"] };
};

const isTaken = (life: Life) =>
  eventually(async () => {
    const { status } = await deliver(life, null);
    if (status !== 202) throw new Error(`it was answered with ${status}`);
  });

const ROUNDS = Array.from({ length: 10 }, (_, round) => round);

describe("two services on one database", () => {
  it(
    "fire each due instant exactly once [R10, I2, I3]",
    async () => {
      await instantAhead(there, ticks);
      const [firstMs = 0] = await instantsOf(there, ticks);
      const range = { schedule, firstMs, untilMs: await instantAhead(here, ticks, 4) };
      expect(await instantsUnaccounted(there, ticks, range)).toEqual([]);
      await here.call("PATCH", `/v1/projects/${ticks}`, { triggers_paused: true });
    },
    TEST_MS,
  );

  it(
    "create one session for a delivery that reaches both at once [W33, I5]",
    async () => {
      await isTaken(there);
      const pairs = await Promise.all(
        ROUNDS.map((round) => Promise.all([here, there].map((life) => deliver(life, `both-${round}`)))),
      );
      const rows = (await firesOf(here, hooks)).filter(({ status }) => status !== "duplicate");
      for (const [round, pair] of pairs.entries()) {
        expect(pair.map(({ status }) => status)).toEqual([202, 202]);
        expect(pair.filter(({ body }) => body["duplicate"] === true)).toHaveLength(1);
        const own = rows.filter(({ delivery_id: id }) => id === `both-${round}`);
        expect(own).toHaveLength(1);
        const told = pair.flatMap(({ body }) => (body["status"] === "fired" ? [body["session_id"]] : []));
        expect(new Set([...told, own[0]?.session_id]).size).toBe(1);
      }
    },
    TEST_MS,
  );

  it(
    "accept a webhook at once for a project that the other one just created",
    async () => {
      for (const round of ROUNDS) {
        const project = await here.project(fresh);
        await here.call("PUT", `/v1/projects/${project}/secrets/HOOK_SECRET`, { value: secret });
        const { status } = await deliver(there, `fresh-${round}`, { project });
        expect([round, status]).toEqual([round, 202]);
        // The later tests count the account's slots, and stop only their own projects' sessions.
        for (const { id } of await sessionsOf(here, project)) await stopSession(here, project, id);
        await here.call("PATCH", `/v1/projects/${project}`, { status: "archived" });
      }
    },
    TEST_MS,
  );

  it(
    "refuse a webhook with a secret that the other one replaced, and soon accept the new secret [W31]",
    async () => {
      for (const round of ROUNDS) {
        const former = secret;
        await setSecret(`secret of round ${round}`);
        expect((await deliver(there, null, { key: former })).status).toBe(401);
        await isTaken(there);
      }
    },
    TEST_MS,
  );

  it(
    "refuse webhooks for a project that the other one paused, and soon accept them when it resumes [W29]",
    async () => {
      for (const triggers_paused of ROUNDS.flatMap(() => [true, false])) {
        await here.call("PATCH", `/v1/projects/${hooks}`, { triggers_paused });
        if (triggers_paused) expect((await deliver(there, null)).status).toBe(404);
        else await isTaken(there);
      }
    },
    TEST_MS,
  );

  it(
    "refuse webhooks for a trigger that is disabled in a manifest read by the other one [W29, M19]",
    async () => {
      for (const default_branch of ["off", "main", "off", "main"]) {
        await here.call("PATCH", `/v1/projects/${hooks}`, { default_branch });
        if (default_branch === "off") expect((await deliver(there, null)).status).toBe(404);
        else await isTaken(there);
      }
    },
    TEST_MS,
  );

  it(
    "start queued fires on one when slots are freed on the other [R08, I12]",
    async () => {
      await emptied(here, [hooks, ticks]);
      const held = await filled(here, hooks, CAP);
      const ids = ROUNDS.map((round) => `waits-${round}`);
      for (const id of ids) expect((await deliver(here, id)).body).toMatchObject({ status: "queued" });
      for (const id of held.slice(0, ids.length)) await stopSession(there, hooks, id);
      await eventually(async () => {
        const { queue } = (await here.call("GET", "/v1/queue")) as { queue: readonly unknown[] };
        expect(queue).toEqual([]);
      });
      const rows = (await firesOf(here, hooks)).filter(({ delivery_id: id }) => ids.includes(id ?? ""));
      expect(rows.map(({ status }) => status)).toEqual(ids.map(() => "fired"));
      expect(new Set(rows.map(({ session_id: id }) => id)).size).toBe(ids.length);
      const { said, counted } = await countedOf(there, [hooks, ticks]);
      expect(said).toEqual(counted);
      await emptied(here, [hooks, ticks]);
    },
    TEST_MS,
  );

  it(
    "refuse with the same error at the cap, whichever one has the session's actor [I1]",
    async () => {
      const [stopped = ""] = await filled(here, hooks, 1);
      await stopSession(here, hooks, stopped);
      await filled(there, hooks, CAP);
      for (const life of [here, there]) {
        const restart = life.call("POST", `/v1/projects/${hooks}/sessions/${stopped}/restart`);
        await expect(restart).rejects.toThrow(/answered 429: .*"session_cap_reached"/);
      }
      await emptied(here, [hooks, ticks]);
    },
    TEST_MS,
  );
});

/** The differences between the two services' answers to the same deliveries. */
const disagreements = (logs: readonly RequestLog[]): readonly string[] => {
  const found: string[] = [];
  for (const id of new Set(logs.flatMap((log) => [...log.keys()]))) {
    const bodies = logs.flatMap((log) => log.get(id) ?? []).map(({ body }) => body);
    const sessions = new Set(
      bodies.flatMap((body) => (body["status"] === "fired" ? [body["session_id"]] : [])),
    );
    if (sessions.size > 1) found.push(`${id} has ${sessions.size} sessions`);
    const taken = bodies.filter((body) => body["status"] !== undefined && body["duplicate"] !== true);
    if (taken.length > 1) found.push(`${id} was taken for new ${taken.length} times`);
  }
  return found;
};

describe("a service that stands still and continues", () => {
  it(
    "gave up its unfinished commit, which the other one took over [R11, I5, I18]",
    async () => {
      const { reached } = await here.arm({ point: "admission.written", signal: "SIGSTOP" });
      const late = deliver(here, "late");
      await reached;
      const taken = await deliver(there, "late").finally(() => here.signal("SIGCONT"));
      expect(taken).toEqual({ status: 202, body: { status: "fired", session_id: expect.any(String) } });
      expect((await late).status).toBe(503);
      expect(await deliver(here, "late")).toMatchObject({
        status: 202,
        body: { ...taken.body, duplicate: true },
      });
    },
    TEST_MS,
  );

  it(
    "does not carry out what waited in it after the other one was asked for the opposite [R02, R11]",
    async () => {
      await there.call("PATCH", `/v1/projects/${ticks}`, { triggers_paused: true });
      await emptied(there, [hooks, ticks]);
      const made = await eventually(() => filled(there, quiet, 6));
      for (const id of made) await stopSession(there, quiet, id);
      const restart = (id: string) => there.call("POST", `/v1/projects/${quiet}/sessions/${id}/restart`);
      here.signal("SIGSTOP");
      try {
        // Some wait in the one that stands still. They may be answered with 503, or reach the other one once more.
        await Promise.allSettled(made.map(restart));
        for (const id of made) await eventually(() => stopSession(there, quiet, id));
      } finally {
        here.signal("SIGCONT");
      }
      await isTaken(here);
      // Its actors work again, so by now the requests that waited in it were read.
      const [last = ""] = await filled(here, quiet, 1);
      await here.session(quiet, last, ["running"]);
      const sessions = await sessionsOf(there, quiet);
      const statuses = made.map((id) => sessions.find((session) => session.id === id)?.status);
      expect(statuses).toEqual(made.map(() => "stopped"));
      await emptied(there, [quiet, hooks]);
    },
    TEST_MS,
  );

  it(
    "under traffic has lost and duplicated nothing, and its late actions have no effect [R11, I2, I3, I4, I5, I12, I18]",
    async () => {
      await here.call("PATCH", `/v1/projects/${ticks}`, { triggers_paused: false });
      const held = await filled(here, hooks, 5);
      await eventually(async () => {
        const sessions = await sessionsOf(here, hooks);
        const running = sessions.filter(({ id, status }) => held.includes(id) && status === "running");
        expect(running).toHaveLength(held.length);
      });
      const [firstMs = 0] = await instantsOf(here, ticks);
      const senders = [here, there].map(
        (life) =>
          new WebhookSender({
            url: `${life.url}/v1/webhooks/projects/${hooks}/hook`,
            secret,
            deliveries: 100,
            prefix: "frozen",
            duplicateShare: 0.3,
            burst: 10,
            concurrency: 8,
            random: () => 0.2,
            whenUp: () => Promise.resolve(),
          }),
      );
      const sent = Promise.all(senders.map((sender) => sender.send()));
      await senders[0]?.reached(60);
      here.signal("SIGSTOP");
      await instantAhead(there, ticks, 8);
      for (const id of held) await stopSession(there, hooks, id);
      here.signal("SIGCONT");

      // It remembers them running, and stops them once more. A connection that was idle for so long it may close first.
      const late = held.map((id) => eventually(() => stopSession(here, hooks, id)));
      expect((await Promise.all(late)).map(({ status }) => status)).toEqual(held.map(() => "stopped"));
      const logs = await sent;
      const range = { schedule, firstMs, untilMs: await instantAhead(here, ticks, 1) };
      expect(await instantsUnaccounted(here, ticks, range)).toEqual([]);
      await here.call("PATCH", `/v1/projects/${ticks}`, { triggers_paused: true });
      expect(disagreements(logs)).toEqual([]);
      const ledger = await ledgerOf(here, hooks);
      const fires = ledger.fires.filter(({ delivery_id: id }) => id?.startsWith("frozen") === true);
      const own = new Set(fires.map(({ id }) => id));
      const sessions = ledger.sessions.filter(({ fire_id: id }) => own.has(id ?? ""));
      for (const log of logs) expect(unaccounted(log, { fires, sessions })).toEqual([]);
      const { said, counted, waiting } = await countedOf(there, [hooks, ticks]);
      expect(said).toEqual(counted);
      expect(waiting).toBe(said.queued);
    },
    TEST_MS,
  );
});

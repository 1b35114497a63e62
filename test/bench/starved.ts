/**
 * `npm run bench:starved [-- --live 1000 --share 0.2 --triggers 12 --boots 200]`: what a service does on a machine that is far too
 * small for it. As root: the program and its embedded database share so much of one core, by a control group.
 *
 * With the whole machine it is given `live` sessions (simulated sandboxes) and cron triggers that fire every ten seconds, and is
 * killed. Then it starts again with its share. Told are: when it is ready, how many instants have their ledger row and how late
 * they have it, in the first 30 s and in the 90 s after that; how many requests of a client that asks ten times a second for a
 * session are answered, and how late; and, for `boots` sessions created at once, how many run and how many fail. It measures and
 * judges nothing; the last line is one JSON object.
 */
import { existsSync, writeFileSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { guardedGroup } from "../support/machine/guard.ts";
import { Installation, TOKEN, type Life } from "../support/service/process-service.ts";

const { values } = parseArgs({
  options: {
    live: { type: "string", default: "1000" },
    share: { type: "string", default: "0.2" },
    triggers: { type: "string", default: "12" },
    boots: { type: "string", default: "200" },
  },
});
const [live, share, triggers, boots] = [
  Number(values.live),
  Number(values.share),
  Number(values.triggers),
  Number(values.boots),
];
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  PLATFORM_DEFAULT_TIER: "enterprise",
  PLATFORM_TIER_CAPS: JSON.stringify({ enterprise: live + boots + 100_000 }),
} as const;
const AT_ONCE = 16;
const PERIOD_US = 100_000;
const INSTANT_MS = 10_000;
const LOOKS_MS = [30_000, 120_000] as const;

/** A control group that holds a process and all it starts to a share of one core. */
const makeGroup = () => {
  const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
  const directory = `/sys/fs/cgroup/${isUnified ? "" : "cpu/"}platform-starved-${process.pid}`;
  const { remove } = guardedGroup(directory);
  const quota = Math.round(share * PERIOD_US);
  if (isUnified) writeFileSync(`${directory}/cpu.max`, `${quota} ${PERIOD_US}`);
  else writeFileSync(`${directory}/cpu.cfs_quota_us`, String(quota));
  return {
    add: (pid: number) => writeFileSync(`${directory}/cgroup.procs`, String(pid)),
    throttled: () => readFileSync(`${directory}/cpu.stat`, "utf8"),
    remove,
  };
};

const manifest = Array.from({ length: triggers }, (_, index) =>
  [
    "[[triggers]]",
    `slug = "tick-${index}"`,
    'type = "cron"',
    'cron = "*/10 * * * * *"',
    'prompt = "Tick."',
  ].join("\n"),
).join("\n\n");

/* oxlint-disable no-await-in-loop -- the measured program has the machine for itself */
const create = async (life: Life, projectId: string): Promise<void> => {
  try {
    await life.call("POST", `/v1/projects/${projectId}/sessions`, { initial_prompt: "Look after it." });
  } catch (error) {
    if (!String(error).includes(" answered 503")) throw error;
    await delay(500);
    return create(life, projectId);
  }
};

const createAll = async (life: Life, projectId: string, count: number): Promise<void> => {
  let left = count;
  const next = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await create(life, projectId);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
};

interface Row {
  readonly status: string;
  readonly scheduled_for: string | null;
  readonly received_at: string;
}

/** Of the instants between two moments: how many there were, how many have a row, and how late the rows came. */
const instants = (rows: readonly Row[], from: number, to: number) => {
  const late = rows
    .filter(({ scheduled_for: due }) => due !== null && Date.parse(due) > from && Date.parse(due) <= to)
    .map(({ scheduled_for: due, received_at: made }) => Date.parse(made) - Date.parse(due ?? ""))
    .toSorted((a, b) => a - b);
  const expected = triggers * (Math.floor(to / INSTANT_MS) - Math.floor(from / INSTANT_MS));
  return {
    expected,
    rows: late.length,
    median_ms: late[late.length >> 1] ?? null,
    longest_ms: late.at(-1) ?? null,
  };
};

/** Sends one request ten times a second, whatever the result of the last one. */
const ask = (url: string) => {
  const times: number[] = [];
  const answers = new Map<string, number>();
  const timer = setInterval(() => {
    const asked = performance.now();
    void fetch(url, { headers: { authorization: `Bearer ${TOKEN}` }, signal: AbortSignal.timeout(30_000) })
      .then(
        async (answer) => {
          await answer.text();
          if (answer.ok) times.push(performance.now() - asked);
          return String(answer.status);
        },
        () => "none",
      )
      .then((status) => answers.set(status, (answers.get(status) ?? 0) + 1));
  }, 100);
  return () => {
    clearInterval(timer);
    const sorted = times.toSorted((a, b) => a - b);
    const at = (part: number) => Math.round(sorted[Math.floor(sorted.length * part)] ?? Number.NaN);
    return { answers: Object.fromEntries(answers), median_ms: at(0.5), p95_ms: at(0.95) };
  };
};

const countOf = async (life: Life, projectId: string, status: string): Promise<number> => {
  const all = await life.everyPage<{ readonly status: string }>(
    `/v1/projects/${projectId}/sessions`,
    "sessions",
  );
  return all.filter((session) => session.status === status).length;
};

const installation = await Installation.open();
const group = makeGroup();
try {
  const first = await installation.start(SETTINGS);
  const calm = await first.project(installation.sample);
  const { id: cron } = await first.call("POST", "/v1/projects", {
    name: "cron",
    repository: { kind: "hosted", import_from: await installation.repository(manifest) },
  });
  await createAll(first, calm, live);
  while ((await countOf(first, calm, "running")) < live) await delay(500);
  const [session] = await first.everyPage<{ readonly id: string }>(
    `/v1/projects/${calm}/sessions`,
    "sessions",
  );
  await first.end("SIGKILL");

  const begun = performance.now();
  const life = await installation.start(SETTINGS, "plain", (child) => group.add(child.pid ?? 0));
  const readyMs = Math.round(performance.now() - begun);
  // oxlint-disable-next-line no-restricted-properties -- beside instants of the service
  const readyAt = Date.now();
  process.stderr.write(`ready after ${readyMs} ms\n`);
  const asked = ask(`${life.url}/v1/projects/${calm}/sessions/${session?.id ?? ""}`);
  const [soon, later] = LOOKS_MS;
  await delay(later);
  const answers = asked();
  const rows = await life.everyPage<Row>(`/v1/projects/${String(cron)}/fires`, "fires");
  const settled = {
    running: await countOf(life, calm, "running"),
    failed: await countOf(life, calm, "failed"),
  };
  const figures = {
    ready_ms: readyMs,
    first_30_s: instants(rows, readyAt, readyAt + soon),
    next_90_s: instants(rows, readyAt + soon, readyAt + later),
    answers,
    settled,
  };
  process.stderr.write(`${JSON.stringify(figures)}\n`);
  const createdAt = performance.now();
  const { id: crowd } = await life.call("POST", "/v1/projects", {
    name: "crowd",
    repository: { kind: "hosted", import_from: installation.sample },
  });
  await createAll(life, String(crowd), boots);
  const createdMs = Math.round(performance.now() - createdAt);
  while ((await countOf(life, String(crowd), "provisioning")) > 0) await delay(2000);
  const ended = {
    created_ms: createdMs,
    ended_ms: Math.round(performance.now() - createdAt),
    running: await countOf(life, String(crowd), "running"),
    failed: await countOf(life, String(crowd), "failed"),
  };
  await life.end("SIGKILL");
  process.stdout.write(`${JSON.stringify({ ...figures, boots: ended })}\n`);
} finally {
  await installation.close();
  await delay(1000);
  group.remove();
}

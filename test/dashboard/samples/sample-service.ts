/** The service as its operator sees it, with several things wrong. */

const ago = (now: number, seconds: number) => new Date(now - seconds * 1000).toISOString();

const NODE = "5b9e7d7c-0a43-4a0e-93f1-2d1f6a4a8c11";
const DEAD = "91c0a3f2-77aa-4c31-9f21-3d0c64b2a910";

export const sampleDoctor = (now: number) => ({
  at: ago(now, 40),
  provider: "local",
  usable: true,
  problem: null,
  findings: [
    { subject: "memory", how: "kernel", detail: "cgroup v2, 2 GiB" },
    { subject: "processes", how: "kernel", detail: "cgroup v2, 512" },
    { subject: "disk", how: "watcher", detail: "measured each second, 8 GiB" },
    { subject: "system calls", how: "not at all", detail: "there is no seccomp filter for this processor" },
  ],
});

const duty = (name: string, about: string, rest: Readonly<Record<string, unknown>>) => ({
  name,
  about,
  period_ms: 30_000,
  took_ms: 14,
  failed: false,
  failures: 0,
  ...rest,
});

export const sampleService = (now: number) => ({
  version: "0.1.0",
  runtime_version: "24.21.0",
  node_id: NODE,
  started_at: ago(now, 90_000),
  problems: [
    {
      code: "node_dead",
      message: `Node ${DEAD} has been silent for 7 minutes. It had 2 sandboxes.`,
      remedy:
        "Start the service on that machine again. Its sessions have failed. Those whose saved work it has wait for it; the others can be restarted.",
    },
    {
      code: "duty_failed",
      message: "The last round of orphans crashed.",
      remedy: "Look in the log for work=orphans. The next round comes as usual.",
    },
  ],
  database: { version: "18.4", size_bytes: 31_457_280, connections: 12, connections_max: 100 },
  nodes: [
    { id: NODE, url: "http://10.0.0.1:8080", dead_at: null, sandboxes: 3 },
    { id: DEAD, url: "http://10.0.0.2:8080", dead_at: ago(now, 420), sandboxes: 2 },
  ],
  scheduler: { ticked_at: ago(now, 20), late: false, scheduled: 3 },
  queues: {
    fires: { waiting: 1, oldest_at: ago(now, 30) },
    commands: { waiting: 0, oldest_at: null },
  },
  ownerless_sessions: 0,
  stale_manifests: 0,
  sandboxes: {
    provider: "local",
    summary: "bubblewrap, as root, cgroup v2",
    booting: 1,
    waiting: 0,
    doctor: null,
  },
  boots: {
    since: ago(now, 86_400),
    started: 40,
    failures: [{ code: "clone_failed", count: 1 }],
    waited: { count: 40, p50_ms: 2, p95_ms: 310 },
    booted: { count: 39, p50_ms: 1720, p95_ms: 2950 },
  },
  actors: [
    {
      kind: "session",
      id: "01a22401-b49a-7374-a38c-f97b3c5ec5c6",
      state: "running",
      event: "SANDBOX_ACTIVE",
      commands: ["record", "notify"],
      at: ago(now, 4),
    },
    {
      kind: "trigger",
      id: "0190f3b2-0000-7000-8000-000000000001/nightly",
      state: "waiting",
      event: "TICK",
      commands: [],
      at: ago(now, 40),
    },
  ],
  duties: [
    duty("scheduler", "sets the timers of cron triggers", { last_run_at: ago(now, 20), period_ms: 60_000 }),
    duty("recovery", "finishes what a crash interrupted", { last_run_at: ago(now, 9) }),
    duty("orphans", "removes sandboxes without a record", {
      last_run_at: ago(now, 12),
      failed: true,
      failures: 2,
    }),
    duty("unclaimed", "removes unclaimed repositories", { last_run_at: null, took_ms: null }),
  ],
});

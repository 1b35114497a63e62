/** Examples of the operator's operations. */
import { BEGAN, LATER } from "./records.ts";

export const examination = {
  at: LATER,
  provider: "local",
  usable: true,
  problem: null,
  findings: [
    { subject: "memory", how: "kernel", detail: "cgroup v2, 2 GiB" },
    { subject: "disk", how: "watcher", detail: "measured each second, 8 GiB" },
  ],
};

export const serviceState = {
  version: "0.1.0",
  runtime_version: "24.21.0",
  node_id: "5b9e7d7c-0a43-4a0e-93f1-2d1f6a4a8c11",
  started_at: BEGAN,
  problems: [
    {
      code: "scheduler_late",
      message: "The scheduler has not run for two intervals, so cron triggers may be late.",
      remedy: "Look in the log for the scheduler, and at the load of the machine and its database.",
    },
  ],
  database: { version: "18.4", size_bytes: 31_457_280, connections: 12, connections_max: 100 },
  nodes: [
    { id: "5b9e7d7c-0a43-4a0e-93f1-2d1f6a4a8c11", url: "http://127.0.0.1:8080", dead_at: null, sandboxes: 1 },
  ],
  scheduler: { ticked_at: LATER, late: true, scheduled: 3 },
  queues: { fires: { waiting: 1, oldest_at: BEGAN }, commands: { waiting: 0, oldest_at: null } },
  ownerless_sessions: 0,
  stale_manifests: 0,
  sandboxes: {
    provider: "local",
    summary: "bubblewrap, seccomp, cgroup v2",
    booting: 0,
    waiting: 0,
    doctor: examination,
  },
  boots: {
    since: BEGAN,
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
      commands: ["record"],
      at: LATER,
    },
  ],
  duties: [
    {
      name: "recovery",
      about: "finishes what a crash interrupted",
      period_ms: 30_000,
      last_run_at: LATER,
      took_ms: 14,
      failed: false,
      failures: 0,
    },
  ],
};

/** What the examples of the operator's operations say by hand. */
import { BEGAN } from "./records.ts";

export const examination = {
  provider: "local",
  usable: true,
  findings: [
    { subject: "memory", how: "kernel", detail: "cgroup v2, 2 GiB" },
    { subject: "disk", how: "watcher", detail: "measured each second, 8 GiB" },
  ],
};

const NODE = "5b9e7d7c-0a43-4a0e-93f1-2d1f6a4a8c11";

export const serviceState = {
  version: "0.1.0",
  runtime_version: "24.21.0",
  node_id: NODE,
  problems: [
    {
      code: "scheduler_late",
      message: "The scheduler has not run for two intervals, so cron triggers may be late.",
      remedy: "Look in the log for the scheduler, and at the load of the machine and its database.",
    },
  ],
  database: { version: "18.4", size_bytes: 31_457_280, connections: 12, connections_max: 100 },
  nodes: [{ id: NODE, url: "http://127.0.0.1:8080", sandboxes: 1 }],
  scheduler: { late: true, scheduled: 3 },
  queues: { fires: { oldest_at: BEGAN }, commands: { waiting: 0 } },
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
    started: 40,
    failures: [{ code: "clone_failed" }],
    waited: { count: 40, p50_ms: 2, p95_ms: 310 },
    booted: { count: 39, p50_ms: 1720, p95_ms: 2950 },
  },
  actors: [{ kind: "session", state: "running", event: "SANDBOX_ACTIVE", commands: ["record"] }],
  duties: [
    {
      name: "recovery",
      about: "finishes what a crash interrupted",
      period_ms: 30_000,
      took_ms: 14,
      failures: 0,
    },
  ],
};

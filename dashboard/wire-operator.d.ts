/** The fields of `GET /v1/operator` that the page reads (api.md 9). Instants are ISO 8601 strings. */

export interface Service {
  version: string;
  runtime_version: string;
  node_id: string;
  started_at: string;
  problems: { code: string; message: string; remedy: string }[];
  database: { version: string; size_bytes: number; connections: number; connections_max: number };
  nodes: { id: string; url: string | null; dead_at: string | null; sandboxes: number }[];
  scheduler: { ticked_at: string | null; late: boolean; scheduled: number };
  queues: { fires: Backlog; commands: Backlog };
  ownerless_sessions: number;
  stale_manifests: number;
  sandboxes: {
    provider: string;
    summary: string;
    booting: number;
    waiting: number;
    doctor: Examination | null;
  };
  boots: {
    since: string;
    started: number;
    failures: { code: string; count: number }[];
    waited: Spread | null;
    booted: Spread | null;
  };
  duties: {
    name: string;
    about: string;
    period_ms: number;
    last_run_at: string | null;
    took_ms: number | null;
    failed: boolean;
    failures: number;
  }[];
}

export interface Backlog {
  waiting: number;
  oldest_at: string | null;
}

export interface Spread {
  count: number;
  p50_ms: number;
  p95_ms: number;
}

export interface Examination {
  at: string;
  provider: string;
  usable: boolean;
  problem: string | null;
  findings: { subject: string; how: string; detail: string }[];
}

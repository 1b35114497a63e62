import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api";
import { RequiredPrivilege, Authorized } from "./access.ts";
import { Conflict } from "./errors.ts";
import { Instant } from "./schemas.ts";

const nullable = Schema.NullOr;

const Spread = Schema.Struct({ count: Schema.Finite, p50_ms: Schema.Finite, p95_ms: Schema.Finite });
const Backlog = Schema.Struct({ waiting: Schema.Finite, oldest_at: nullable(Instant) });

export const DoctorWire = Schema.Struct({
  at: Instant,
  provider: Schema.String,
  usable: Schema.Boolean.annotate({ description: "Whether a real sandbox started." }),
  problem: nullable(Schema.String),
  findings: Schema.Array(
    Schema.Struct({
      subject: Schema.String,
      how: Schema.Literals(["kernel", "gvisor", "watcher", "cluster", "not at all"]),
      detail: Schema.String,
    }),
  ),
}).annotate({ identifier: "SandboxExamination" });

const Resumed = Schema.Struct({
  was_paused: Schema.Boolean.annotate({ description: "False: it was not paused. Nothing changed." }),
});

export const ServiceWire = Schema.Struct({
  version: Schema.String,
  runtime_version: Schema.String,
  node_id: Schema.String.annotate({
    description: "The node that answers. `duties` and `sandboxes` are its own.",
  }),
  started_at: Instant,
  problems: Schema.Array(
    Schema.Struct({ code: Schema.String, message: Schema.String, remedy: Schema.String }),
  ).annotate({ description: "Present problems, each with its remedy. Most urgent first." }),
  database: Schema.Struct({
    version: Schema.String,
    size_bytes: Schema.Finite,
    connections: Schema.Finite,
    connections_max: Schema.Finite,
  }),
  nodes: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      url: nullable(Schema.String),
      dead_at: nullable(Instant),
      sandboxes: Schema.Finite,
    }),
  ),
  scheduler: Schema.Struct({
    ticked_at: nullable(Instant),
    late: Schema.Boolean,
    scheduled: Schema.Finite,
  }),
  queues: Schema.Struct({ fires: Backlog, commands: Backlog }),
  ownerless_sessions: Schema.Finite.annotate({
    description: "Live sessions that no part of the service works on. Recovery ends them.",
  }),
  stale_manifests: Schema.Finite,
  sandboxes: Schema.Struct({
    provider: Schema.String,
    summary: Schema.String,
    booting: Schema.Finite,
    waiting: Schema.Finite,
    doctor: nullable(DoctorWire).annotate({ description: "The last examination since this process began." }),
  }),
  boots: Schema.Struct({
    since: Instant,
    started: Schema.Finite,
    failures: Schema.Array(Schema.Struct({ code: Schema.String, count: Schema.Finite })),
    waited: nullable(Spread).annotate({ description: "From the sandbox's record to its place to boot." }),
    booted: nullable(Spread).annotate({ description: "From its place to a ready daemon." }),
  }),
  actors: Schema.Array(
    Schema.Struct({
      kind: Schema.String,
      id: Schema.String,
      state: Schema.String,
      event: Schema.String.annotate({ description: "The newest event that it took." }),
      commands: Schema.Array(Schema.String).annotate({ description: "What that event ordered." }),
      at: Instant,
    }),
  ).annotate({
    description: "The actors of all nodes that moved within the last hour, the newest first, at most 50.",
  }),
  duties: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      about: Schema.String,
      period_ms: Schema.Finite,
      last_run_at: nullable(Instant),
      took_ms: nullable(Schema.Finite),
      failed: Schema.Boolean,
      failures: Schema.Finite,
    }),
  ),
}).annotate({ identifier: "ServiceState" });

/** The service itself, for its operator (api.md 9). */
export class OperatorGroup extends HttpApiGroup.make("operator")
  .add(
    HttpApiEndpoint.get("show", "/operator", { success: ServiceWire }).annotate(
      RequiredPrivilege,
      "operate_service",
    ),
    HttpApiEndpoint.post("resume", "/operator/resume", { success: Resumed }).annotate(
      RequiredPrivilege,
      "operate_service",
    ),
    HttpApiEndpoint.post("examine", "/operator/doctor", { success: DoctorWire, error: Conflict }).annotate(
      RequiredPrivilege,
      "operate_service",
    ),
  )
  .middleware(Authorized)
  .prefix("/v1") {}

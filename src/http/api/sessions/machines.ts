import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api";
import { page } from "../endpoints.ts";
import { RequiredPrivilege, Authorized } from "../access.ts";
import { BadRequest, NotFound } from "../errors.ts";
import { Instant, numberParams, pageQuery, sessionParams } from "../schemas.ts";
import { triggerParams } from "../triggers/triggers.ts";

const nullable = Schema.NullOr;
const names = Schema.Array(Schema.String);

const Definition = Schema.Struct({
  name: Schema.String,
  initial: Schema.String,
  states: Schema.Array(Schema.Struct({ name: Schema.String, final: Schema.Boolean, text: Schema.String })),
  arrows: Schema.Array(
    Schema.Struct({
      from: Schema.String,
      event: Schema.String,
      to: Schema.String,
      guard: nullable(Schema.String).annotate({
        description:
          "The name of the condition. Null: always. Conditions are tried in the order of this list.",
      }),
      commands: names,
    }),
  ),
}).annotate({ identifier: "MachineDefinition" });

const NextWire = Schema.Struct({
  event: Schema.String,
  to: nullable(Schema.String),
  text: Schema.String,
  at: nullable(Instant).annotate({ description: "The instant that decides, if one is known." }),
  commands: names,
}).annotate({ identifier: "NextStep" });

export const PendingWire = Schema.Struct({
  command: Schema.String,
  text: Schema.String,
  since: Instant,
  attempts: Schema.Finite.annotate({ description: "How often the command crashed." }),
  last_error: nullable(Schema.String),
}).annotate({ identifier: "PendingCommand" });

export const TransitionWire = Schema.Struct({
  number: Schema.Finite.annotate({ description: "Rises with each transition, with gaps." }),
  at: Instant,
  event: Schema.String,
  text: Schema.String,
  from: nullable(Schema.String),
  to: Schema.String,
  detail: nullable(Schema.String),
  commands: names,
  duration_ms: nullable(Schema.Finite).annotate({
    description:
      "How long the actor had been in `from`. Null at its beginning, and if it is not known any more.",
  }),
}).annotate({ identifier: "Transition" });

export const MachineWire = page({
  machine: nullable(Schema.String).annotate({
    description: "The name of its definition. Null: a webhook trigger, which keeps no state.",
  }),
  id: Schema.String,
  state: nullable(Schema.String),
  since: nullable(Instant),
  why: Schema.Array(Schema.String).annotate({ description: "Sentences that explain the present state." }),
  next: Schema.Array(NextWire).annotate({ description: "What can happen from here." }),
  pending: Schema.Array(PendingWire).annotate({
    description: "Commands that are under way, the oldest first.",
  }),
  transitions: Schema.Array(TransitionWire),
}).annotate({ identifier: "Machine" });

const query = pageQuery;
const success = MachineWire;
const error = [BadRequest, NotFound] as const;

const machine = <
  const Name extends string,
  const Path extends `/${string}`,
  Params extends Schema.Struct.Fields,
>(
  name: Name,
  path: Path,
  params: Params,
) =>
  HttpApiEndpoint.get(name, path, { params, query, success, error }).annotate(
    RequiredPrivilege,
    "read_project",
  );

/** State machines: their definitions, and why an actor is in its state. */
export class MachinesGroup extends HttpApiGroup.make("machines")
  .add(
    HttpApiEndpoint.get("list", "/machines", {
      success: Schema.Struct({ machines: Schema.Array(Definition) }),
    }).annotate(RequiredPrivilege, "know_itself"),
    HttpApiEndpoint.get("account", "/account/machine", { query, success, error }).annotate(
      RequiredPrivilege,
      "see_queue",
    ),
    machine("session", "/projects/:pid/sessions/:sid/machine", sessionParams),
    machine("sandbox", "/projects/:pid/sessions/:sid/sandbox/machine", sessionParams),
    machine("conversation", "/projects/:pid/sessions/:sid/conversation/machine", sessionParams),
    machine("trigger", "/projects/:pid/triggers/:slug/machine", triggerParams),
    machine("changeRequest", "/projects/:pid/change-requests/:number/machine", numberParams),
  )
  .middleware(Authorized)
  .prefix("/v1") {}

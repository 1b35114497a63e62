import * as Schema from "effect/Schema";
import * as Tuple from "effect/Tuple";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { page, show } from "../../http/api/endpoints.ts";
import { BuildFailure } from "../../domain/environment/build-failure.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { BadRequest, Conflict, NotFound } from "../../http/api/errors.ts";
import { Instant, pageQuery, projectParams, Uuid } from "../../http/api/schemas.ts";

const nullable = Schema.NullOr;

/** Paths are those of the repository. `context: ""` is the whole repository. */
const sourceFields = {
  context: Schema.String,
  target: nullable(Schema.String),
  args: Schema.Record(Schema.String, Schema.String),
  secrets: Schema.Array(Schema.String).annotate({
    description: "Names of the project's secrets that steps can mount.",
  }),
  devcontainer: nullable(Schema.String).annotate({
    description: "The devcontainer.json that says so. Null: platform.toml does.",
  }),
  base: nullable(Schema.String).annotate({
    description:
      "The registry's image that a devcontainer.json names. It is used as it is, and the build reads nothing else.",
  }),
  commit: Schema.String,
  key: Schema.String.annotate({
    description: "Equal keys build equal images. A commit that changes nothing in the context keeps the key.",
  }),
};

/** A failure by its code, with a sentence for people. */
const FailureWire = BuildFailure.mapMembers(
  Tuple.map(
    Schema.fieldsAssign({
      message: Schema.String.annotate({ description: "A sentence that says what failed, and where." }),
    }),
  ),
).annotate({ identifier: "EnvironmentBuildFailure" });

export const BuildWire = Schema.Struct({
  id: Uuid,
  project_id: Uuid,
  node_id: Schema.String.annotate({ description: "The node that builds it, and has its image." }),
  status: Schema.Literals(["queued", "resolving", "building", "exporting", "ready", "failed", "cancelled"]),
  cause: Schema.Literals(["manifest", "session", "asked", "refresh"]).annotate({
    description:
      "Why it was begun: the manifest changed, a session needs it, somebody asked, or its base images may be old.",
  }),
  requested_by: nullable(Uuid).annotate({ description: "The user who asked for it. Null for other causes." }),
  dockerfile: Schema.String,
  ...sourceFields,
  tries: Schema.Finite.annotate({
    description:
      "How often it was begun. If the service ends during a build, its next start begins it again.",
  }),
  step: nullable(
    Schema.Struct({ step: Schema.Finite, line: Schema.Finite, instruction: Schema.String }),
  ).annotate({
    description:
      "The step that began last. `step` counts from 1 over all stages; `line` is that of the Dockerfile.",
  }),
  image: nullable(Schema.Struct({ digest: Schema.String, bytes: Schema.Finite, files: Schema.Finite })),
  failure: nullable(FailureWire),
  created_at: Instant,
  begun_at: nullable(Instant).annotate({
    description: "When it was last begun. Null while it waits for its place on the node.",
  }),
  ended_at: nullable(Instant),
}).annotate({ identifier: "EnvironmentBuild" });

const DevcontainerWire = Schema.Struct({
  path: Schema.String,
  used: Schema.Boolean.annotate({
    description: "False: the file is at its usual place, but platform.toml does not name it.",
  }),
  problem: nullable(Schema.String).annotate({
    description: "Why a file that is not used could not be used. Null: it could.",
  }),
  variables: Schema.Record(Schema.String, Schema.String).annotate({
    description: "Variables that the agent gets.",
  }),
  commands: Schema.Array(Schema.String).annotate({
    description: "The lifecycle commands that `setup` consists of, in their order.",
  }),
  ignored: Schema.Array(Schema.String).annotate({
    description: "Fields that have no effect, of those that a person may expect to have one.",
  }),
}).annotate({ identifier: "Devcontainer" });

const BaseWire = Schema.Struct({
  reference: Schema.String.annotate({ description: "With registry and tag." }),
  built_digest: nullable(Schema.String).annotate({
    description: "The digest when the image was built. Null: the registry did not say.",
  }),
  digest: nullable(Schema.String).annotate({
    description:
      "The digest now. If it differs from `built_digest`, sessions are stale until the next build is ready.",
  }),
  looked_up_at: nullable(Instant).annotate({ description: "When the registry said so. Null: it never did." }),
  problem: nullable(Schema.String).annotate({
    description: "Why the last look failed. Null: it did not.",
  }),
  due_at: nullable(Instant).annotate({ description: "The next look is not before." }),
}).annotate({ identifier: "EnvironmentBase" });

const EnvironmentWire = Schema.Struct({
  kind: Schema.Literals(["machine", "image", "dockerfile", "devcontainer"]).annotate({
    description:
      "What the sandboxes of the project see: the node's own files, an operator's image, or the image of a build. With `devcontainer`, a devcontainer.json says what is built.",
  }),
  image: nullable(Schema.String),
  setup: nullable(Schema.String).annotate({
    description:
      "The command that prepares each new sandbox's checkout. A session uses that of its own commit.",
  }),
  dockerfile: nullable(Schema.Struct({ path: Schema.String, ...sourceFields })).annotate({
    description: "The source of the build. With `base`, `path` is that of the devcontainer.json.",
  }),
  devcontainer: nullable(DevcontainerWire),
  builder: nullable(Schema.String).annotate({
    description: "What builds on this node. Null: nothing does, and Dockerfiles have no effect.",
  }),
  current: nullable(BuildWire).annotate({
    description: "The newest build of this Dockerfile on the node that answers.",
  }),
  image_of: nullable(BuildWire).annotate({
    description:
      "The build on whose image a new sandbox on this node would boot now. Null: no image exists. The sandbox would wait for a build, or fail if the build has failed.",
  }),
  bases: Schema.Array(BaseWire).annotate({
    description:
      "The tags from which that image was made, and what they stand for now. Empty without base images in registries, and for builds of former releases.",
  }),
  waiting: Schema.Struct({
    wanted: Schema.Finite.annotate({
      description: "How many sandboxes the manifest keeps ready for sessions, on each node.",
    }),
    ready: Schema.Finite.annotate({ description: "How many are ready, on all nodes." }),
    for_triggers: Schema.Finite.annotate({
      description: "How many of these are ready because a cron trigger fires soon.",
    }),
    possible: Schema.Boolean.annotate({
      description:
        "False: the operator lets no sandbox wait on the node that answers (`PLATFORM_WARM_MEMORY_MB`).",
    }),
  }),
}).annotate({ identifier: "Environment" });

const LOG_PIECES_MAX = 200;
export const LOG_PIECES_DEFAULT = 50;
/** Numbers are stored as 32 bits. */
const NUMBER_MAX = 2 ** 31 - 1;

const logQuery = {
  after: Schema.optionalKey(
    Schema.FiniteFromString.check(
      Schema.isInt(),
      Schema.isBetween({ minimum: 0, maximum: NUMBER_MAX }),
    ).annotate({ description: "The number of the last piece that the reader has. 0: none." }),
  ),
  limit: Schema.optionalKey(
    Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: LOG_PIECES_MAX })),
  ),
};

const LogWire = Schema.Struct({
  pieces: Schema.Array(Schema.Struct({ number: Schema.Finite, text: Schema.String })).annotate({
    description: "In their order. A piece may end in the middle of a line.",
  }),
  complete: Schema.Boolean.annotate({ description: "The build is over, and nothing follows these pieces." }),
}).annotate({ identifier: "EnvironmentBuildLog" });

const buildParams = { ...projectParams, bid: Uuid };

/** The environment of a project's sandboxes, and its builds (api.md 11). */
export class EnvironmentsGroup extends HttpApiGroup.make("environments")
  .add(
    show("get", "/", { params: projectParams, success: EnvironmentWire, privilege: "read_project" }),
    HttpApiEndpoint.post("warm", "/warm", {
      params: projectParams,
      success: Schema.Struct({
        possible: Schema.Boolean.annotate({
          description: "False: no sandbox waits on the node that answers.",
        }),
      }).pipe(HttpApiSchema.status(202)),
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "build_environment"),
    HttpApiEndpoint.get("builds", "/builds", {
      params: projectParams,
      query: pageQuery,
      success: page({ builds: Schema.Array(BuildWire) }),
      error: [BadRequest, NotFound],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("build", "/builds", {
      params: projectParams,
      success: BuildWire.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "build_environment"),
    show("getBuild", "/builds/:bid", { params: buildParams, success: BuildWire, privilege: "read_project" }),
    HttpApiEndpoint.get("log", "/builds/:bid/log", {
      params: buildParams,
      query: logQuery,
      success: LogWire,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("cancel", "/builds/:bid/cancel", {
      params: buildParams,
      success: BuildWire.pipe(HttpApiSchema.status(202)),
      error: NotFound,
    }).annotate(RequiredPrivilege, "build_environment"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid/environment") {}

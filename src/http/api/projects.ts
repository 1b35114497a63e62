import * as Schema from "effect/Schema";
import { PROVIDER_KINDS, PROVIDER_OWNERS } from "../../domain/sandbox/account-provider.ts";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { listAll, page, show } from "./endpoints.ts";
import {
  CredentialRequest,
  RepositoryRequest,
  RepositorySource,
} from "../../domain/repository/repository.ts";
import { PERMISSIONS } from "../../domain/runtimes/runtime.ts";
import { Usage } from "../../domain/conversation/conversation.ts";
import { OfferedModel } from "../../domain/conversation/steering.ts";
import { PROJECT_STATUSES } from "../../domain/project/deletion.ts";
import { DEFAULT_ROLES, MERGE_ROLES } from "../../domain/person/role.ts";
import { APPROVALS_MAX } from "../../domain/repository/merge.ts";
import { CONNECTION_STEPS } from "../../domain/repository/connection.ts";
import { RequiredPrivilege, Authorized } from "./access.ts";
import { BadRequest, Conflict, Forbidden, NotFound, Unprocessable } from "./errors.ts";
import { Instant, LacksWire, modelPrice, projectParams, nameText, text, Uuid } from "./schemas.ts";
import { TriggerListing } from "./triggers/triggers.ts";

export const ProjectWire = Schema.Struct({
  id: Uuid,
  account_id: Uuid,
  name: Schema.String,
  status: Schema.Literals(PROJECT_STATUSES),
  deletes_at: Schema.NullOr(Instant).annotate({
    description: "When a deleted project is gone. Null: it is not deleted.",
  }),
  repository: RepositorySource,
  default_branch: Schema.String,
  triggers_paused: Schema.Boolean,
  default_role: Schema.NullOr(Schema.Literals(DEFAULT_ROLES)).annotate({
    description: "The role of the account's other people in the project. Null: none.",
  }),
  merge_role: Schema.Literals(MERGE_ROLES).annotate({
    description: "The lowest role that may merge a change request.",
  }),
  approvals_required: Schema.Finite.annotate({
    description:
      "How many people must approve a change request's newest commit before it is merged. The person who opened it does not count. 0: approvals are information.",
  }),
  manifest: Schema.Struct({
    commit: Schema.NullOr(Schema.String),
    synced_at: Schema.NullOr(Instant),
    error: Schema.NullOr(Schema.String),
  }),
  created_at: Instant,
  updated_at: Instant,
}).annotate({ identifier: "Project" });

export const CreateProject = Schema.Struct({
  name: nameText(200),
  repository: RepositoryRequest,
  default_branch: Schema.optionalKey(text(244)),
});

export const PatchProject = Schema.Struct({
  name: Schema.optionalKey(nameText(200)),
  status: Schema.optionalKey(Schema.Literals(["active", "archived"])),
  triggers_paused: Schema.optionalKey(Schema.Boolean),
  default_role: Schema.optionalKey(Schema.NullOr(Schema.Literals(DEFAULT_ROLES))),
  merge_role: Schema.optionalKey(Schema.Literals(MERGE_ROLES)),
  approvals_required: Schema.optionalKey(
    Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: APPROVALS_MAX })),
  ),
  default_branch: Schema.optionalKey(text(244)),
});

/** The longest span of days that one request reads. */
export const USAGE_DAYS_MAX = 366;

const DAY = /^2\d{3}-\d{2}-\d{2}$/;
/** A day of the calendar, in UTC. */
const Day = Schema.String.annotate({ format: "date" }).check(
  Schema.makeFilter((day: string) =>
    DAY.test(day) && new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day) === true
      ? undefined
      : "must be a day like 2026-01-31",
  ),
);

const DayOfModel = Schema.Struct({
  day: Schema.String.annotate({ format: "date" }),
  model: Schema.String,
  ...Usage.fields,
  counted: Schema.Boolean.annotate({
    description:
      "The service counted these tokens as the calls passed to a model provider of the account. False: the agent's runtime reported them.",
  }),
  untold_calls: Schema.Finite.annotate({
    description: "Calls that were counted whose answer named no tokens, such as one that broke off.",
  }),
  estimated_tokens: Schema.Finite.annotate({
    description: "Beside the others: of counted calls whose answer broke off, or named none.",
  }),
});

const UsageWire = Schema.Struct({
  from: Schema.String.annotate({ format: "date" }),
  to: Schema.String.annotate({ format: "date" }),
  days: Schema.Array(DayOfModel),
  total: Usage,
}).annotate({ identifier: "ProjectUsage" });

const SetupWire = Schema.Struct({
  repository: Schema.Struct({
    url: Schema.String.annotate({ description: "The git address of the repository at this service." }),
    branch: Schema.String,
    commit: Schema.NullOr(Schema.String),
    empty: Schema.Boolean.annotate({ description: "Whether the repository still waits for its first push." }),
  }),
  model: Schema.Struct({
    required: Schema.Boolean.annotate({ description: "Whether a session without a model is refused." }),
    model: Schema.NullOr(Schema.String).annotate({
      description:
        "The model of a session that names none. Null if the repository chooses it, or without any.",
    }),
    source: Schema.NullOr(Schema.Literals(["gateway", "secret", "repository", ...PROVIDER_OWNERS])),
  }),
  providers: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      secrets: Schema.Array(Schema.String).annotate({
        description: "The secrets that may hold the provider's key. One of them is enough.",
      }),
      model: Schema.String,
      configured: Schema.Boolean,
    }),
  ),
}).annotate({ identifier: "ProjectSetup" });

const AgentChoice = Schema.Struct({
  name: Schema.String,
  runtime: Schema.NullOr(Schema.String).annotate({ description: "Null if the agent cannot start." }),
  model: Schema.NullOr(Schema.String).annotate({ description: "Null: the project's, or the runtime's own." }),
  mode: Schema.NullOr(Schema.String),
  effort: Schema.NullOr(Schema.String).annotate({
    description: "How hard its model thinks. Null: the model's own.",
  }),
  permissions: Schema.NullOr(Schema.Literals(PERMISSIONS)).annotate({
    description: "Null: the runtime decides.",
  }),
  fallback: Schema.Array(Schema.String).annotate({
    description:
      "The agents with whose models its turns go on if its own model refuses, the first to try first.",
  }),
  problem: Schema.NullOr(Schema.String).annotate({ description: "Why the agent cannot start." }),
}).annotate({ identifier: "AgentChoice" });

const RuntimeWire = Schema.Struct({
  name: Schema.String,
  takes_command: Schema.Boolean.annotate({ description: "Whether an agent of it names its program." }),
  models: Schema.NullOr(Schema.Literals(["platform", "own"])).annotate({
    description: "`platform`: `provider/model`. `own`: its own names. Null: no model can be chosen.",
  }),
  provider_models: Schema.Array(Schema.String).annotate({
    description: "Models of the account's own providers that it can use, as `provider/model`.",
  }),
  modes: Schema.NullOr(Schema.Array(Schema.String)).annotate({
    description: "Null: they are known when it runs.",
  }),
  plan_mode: Schema.NullOr(Schema.String).annotate({
    description: "The mode in which it plans, and waits for a person's approval. Null: it has none.",
  }),
  command_files: Schema.NullOr(Schema.String).annotate({
    description:
      "The files of a repository that are commands of it: a regular expression of their paths, whose group is the command's name. Null: none that is known. A running session says all its commands.",
  }),
  efforts: Schema.Boolean.annotate({
    description:
      "Whether people can choose how hard its models think. A running session's models name their `efforts`.",
  }),
  permissions: Schema.Array(Schema.Literals(PERMISSIONS)),
  instructions: Schema.Boolean,
  conversation: Schema.Boolean.annotate({ description: "Whether people can talk to it." }),
  lacks: LacksWire,
}).annotate({ identifier: "Runtime" });

const SessionOptionsWire = Schema.Struct({
  default_branch: Schema.String,
  branches: Schema.Array(Schema.String).annotate({
    description: "At most 200, in order of name. Branches of sessions are left out.",
  }),
  agents: Schema.Array(Schema.String).annotate({
    description: "The agents that the default branch defines, at most 200. `default` needs no definition.",
  }),
  agent_choices: Schema.Array(AgentChoice).annotate({
    description: "`default`, and the agents that the default branch defines, with their runtimes.",
  }),
  runtimes: Schema.Array(RuntimeWire).annotate({
    description: "What the installation offers. The first one is that of agents that name none.",
  }),
  providers: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      kind: Schema.Literals(PROVIDER_KINDS),
      owner: Schema.Literals(PROVIDER_OWNERS),
      models: Schema.Array(Schema.String),
      unused: Schema.NullOr(Schema.Literals(["secret", "person", "project"])).annotate({
        description:
          "Why sessions do not use it: a secret of the project has a key of the same name, or a narrower owner has a provider of this name. Null: they use it.",
      }),
    }),
  ).annotate({
    description:
      "The providers of models that the caller's sessions may use: her own, the project's, the account's.",
  }),
  default_model: Schema.NullOr(Schema.String).annotate({
    description: "The model of a session that names none. Null if the repository chooses it, or without any.",
  }),
  models: Schema.Array(Schema.String).annotate({
    description:
      "The default, those of the account's own providers, one for each provider with a key, and those of recent sessions. Others can be named, too.",
  }),
  model_choices: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      context: OfferedModel.fields.context,
      price: modelPrice,
    }),
  ).annotate({ description: "The same models, with what the service knows of each." }),
}).annotate({ identifier: "SessionOptions" });

const PathsWire = Schema.Struct({
  commit: Schema.String,
  paths: Schema.Array(Schema.String).annotate({
    description: "The first 20,000, in the order of their bytes. Submodules are left out.",
  }),
  total: Schema.Finite.annotate({ description: "How many files the commit has." }),
}).annotate({ identifier: "Paths" });

export const CheckRepository = Schema.Struct({
  repository: RepositoryRequest,
  default_branch: Schema.optionalKey(text(244)),
});

const CheckWire = Schema.Struct({
  usable: Schema.Boolean.annotate({ description: "Whether no step about the repository failed." }),
  default_branch: Schema.NullOr(Schema.String),
  steps: Schema.Array(
    Schema.Struct({
      step: Schema.Literals([...CONNECTION_STEPS, "webhook"]),
      outcome: Schema.Literals(["passed", "failed", "unknown"]).annotate({
        description: "`unknown`: only its first use will show it.",
      }),
      message: Schema.String,
      advice: Schema.NullOr(Schema.String).annotate({ description: "The remedy, as a sentence." }),
    }),
  ).annotate({ description: "In the order in which they were tried. A step that fails is the last one." }),
}).annotate({ identifier: "RepositoryCheck" });

/** Projects and their repositories (api.md 2). */
export class ProjectsGroup extends HttpApiGroup.make("projects")
  .add(
    listAll("list", "/projects", {
      success: page({ projects: Schema.Array(ProjectWire) }),
      privilege: "read_project",
    }),
    HttpApiEndpoint.post("create", "/projects", {
      payload: CreateProject,
      success: ProjectWire.pipe(HttpApiSchema.status(201)),
      error: [BadRequest, Forbidden, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "create_project"),
    show("get", "/projects/:pid", { params: projectParams, success: ProjectWire, privilege: "read_project" }),
    HttpApiEndpoint.patch("update", "/projects/:pid", {
      params: projectParams,
      payload: PatchProject,
      success: ProjectWire,
      error: [NotFound, Conflict, Unprocessable, Forbidden],
    }).annotate(RequiredPrivilege, "govern_project"),
    HttpApiEndpoint.delete("delete", "/projects/:pid", {
      params: projectParams,
      success: ProjectWire.pipe(HttpApiSchema.status(202)),
      error: NotFound,
    }).annotate(RequiredPrivilege, "delete_project"),
    HttpApiEndpoint.post("restore", "/projects/:pid/restore", {
      params: projectParams,
      success: ProjectWire,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "delete_project"),
    HttpApiEndpoint.put("replaceCredential", "/projects/:pid/repository/credential", {
      params: projectParams,
      payload: CredentialRequest,
      success: ProjectWire,
      error: [BadRequest, NotFound, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "govern_project"),
    HttpApiEndpoint.delete("removeCredential", "/projects/:pid/repository/credential", {
      params: projectParams,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "govern_project"),
    HttpApiEndpoint.post("checkRepository", "/repository-checks", {
      payload: CheckRepository,
      success: CheckWire,
      error: [BadRequest, Unprocessable],
    }).annotate(RequiredPrivilege, "create_project"),
    HttpApiEndpoint.post("checkConnection", "/projects/:pid/repository/check", {
      params: projectParams,
      success: CheckWire,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_project"),
    HttpApiEndpoint.get("usage", "/projects/:pid/usage", {
      params: projectParams,
      query: { from: Schema.optionalKey(Day), to: Schema.optionalKey(Day) },
      success: UsageWire,
      error: [BadRequest, NotFound],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("setup", "/projects/:pid/setup", {
      params: projectParams,
      success: SetupWire,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_project"),
    HttpApiEndpoint.get("sessionOptions", "/projects/:pid/session-options", {
      params: projectParams,
      success: SessionOptionsWire,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("paths", "/projects/:pid/paths", {
      params: projectParams,
      query: { ref: Schema.optionalKey(text(244)) },
      success: PathsWire,
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("sync", "/projects/:pid/sync", {
      params: projectParams,
      success: TriggerListing,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "try_triggers"),
  )
  .middleware(Authorized)
  .prefix("/v1") {}

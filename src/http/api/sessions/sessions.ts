import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { remove, show } from "../endpoints.ts";
import { LastTurn } from "../../../domain/session/last-turn.ts";
import { STEERING_ACTS, type SteeringAct } from "../../../domain/connector/own-credential.ts";
import { STOP_SAVES } from "../../../domain/save/order.ts";
import { Restored, Saved } from "../../../domain/save/saved.ts";
import { ACTIVITIES } from "../../../domain/session/session-activity.ts";
import { SANDBOX_STATUSES, SESSION_STATUSES, STOP_REASONS } from "../../../domain/session/session.ts";
import { PROMPT_LIMIT_BYTES } from "../../../domain/trigger/prompt.ts";
import {
  isInside,
  WorkspaceChanges,
  WorkspaceDirectory,
  WorkspaceFile,
} from "../../../domain/session/workspace.ts";
import { RequiredPrivilege, Authorized } from "../access.ts";
import { TurnWire, UsageWire } from "./conversation.ts";
import {
  BadRequest,
  Conflict,
  Forbidden,
  GatewayTimeout,
  NotFound,
  TooMany,
  Unavailable,
  Unprocessable,
} from "../errors.ts";
import {
  comparisonFields,
  diffQuery,
  Instant,
  Metadata,
  pageQuery,
  projectParams,
  sessionParams,
  nameText,
  text,
  textOfBytes,
  Uuid,
  Warning,
} from "../schemas.ts";

const nullable = Schema.NullOr;

/** What a terminal of the session keeps (docs/use/terminal.md). */
const TerminalOffer = Schema.Struct({
  limit: Schema.Finite.annotate({ description: "How many terminals run in a session at a time." }),
  kept_ms: Schema.Finite.annotate({
    description: "How long a terminal waits after its connection was lost.",
  }),
  kept_bytes: Schema.Finite.annotate({ description: "How much of its last output it keeps meanwhile." }),
});

export const SessionWire = Schema.Struct({
  id: Uuid,
  project_id: Uuid,
  account_id: Uuid,
  status: Schema.Literals(SESSION_STATUSES),
  base_ref: Schema.String,
  base_commit: nullable(Schema.String),
  branch_name: Uuid,
  name: nullable(Schema.String).annotate({
    description:
      "A person or a trigger gave it, or else the agent's runtime, as its own title of the conversation. Null: it has no name yet.",
  }),
  agent_name: Schema.String,
  agent_model: nullable(Schema.String),
  initial_prompt: nullable(Schema.String),
  metadata: Schema.Record(Schema.String, Schema.Unknown),
  trigger_slug: nullable(Schema.String),
  fire_id: nullable(Uuid),
  parent_session_id: nullable(Uuid).annotate({
    description: "The session whose agent started this one. It may be deleted since.",
  }),
  created_by: Uuid,
  failure: nullable(Schema.Struct({ code: Schema.String, message: Schema.String, at: Instant })),
  stop_reason: nullable(Schema.Literals(STOP_REASONS)),
  saved: Schema.NullOr(Saved).annotate({
    description:
      "The last save of unpushed work, also while it goes on. Saves are made at the end of each turn, at intervals, and before the sandbox ends.",
  }),
  unsaved: nullable(
    Schema.Struct({
      since: Instant,
      tries: Schema.Finite.annotate({ description: "How often the service tried to save it." }),
      next_try_at: Instant,
    }),
  ).annotate({
    description:
      "The session is idle, and its sandbox stays because its work cannot be saved whole. Null: it can, as far as is known.",
  }),
  restored: Schema.NullOr(Restored).annotate({
    description:
      "What the current or last sandbox brought back of the saved work. Null: the restart did not ask for it, or the sandbox has not answered yet.",
  }),
  last_turn: nullable(LastTurn),
  turn: TurnWire.annotate({ description: "The state of the agent's turn." }),
  usage: UsageWire.annotate({ description: "Tokens and cost of the whole conversation." }),
  pending_approvals: Schema.Finite.annotate({
    description: "How many calls of the agent wait for a person's approval.",
  }),
  activity: Schema.Literals(ACTIVITIES).annotate({
    description:
      "The state for people, one at a time. `queued`: its restart waits for a place. `needs_you`: `waits_for` says for what. `failed`: `failure` says why, or else the error of `last_turn`. `ready_for_review`: at rest or asleep, with an open change request or unmerged work. `asleep`: stopped, and can go on. `done`: its change request was merged or closed.",
  }),
  waits_for: nullable(
    Schema.Struct({
      kind: Schema.Literals(["question", "permission", "plan", "approval", "work_unsaved"]),
      id: nullable(Uuid).annotate({
        description:
          "Of the conversation's request, or of the approval. Null with a question, permission or plan: the session stopped meanwhile (`stop_reason`), and the answer is a message, which starts it again.",
      }),
      text: Schema.String,
    }),
  ).annotate({ description: "What waits longest for a person." }),
  last_sentence: nullable(Schema.String).annotate({
    description: "The first sentence of the agent's last message, as plain text of at most 200 characters.",
  }),
  changes: nullable(
    Schema.Struct({
      files: Schema.Finite,
      additions: Schema.Finite,
      deletions: Schema.Finite,
      head_commit: Schema.String.annotate({ description: "The branch's commit." }),
    }),
  ).annotate({
    description: "What its branch adds to its base, as of the last push. Null: nothing was pushed.",
  }),
  change_request: nullable(
    Schema.Struct({
      id: Uuid,
      number: Schema.Finite,
      title: Schema.String,
      status: Schema.Literals(["open", "merged", "closed"]),
      changes_asked_by: nullable(Schema.String).annotate({
        description:
          "The name of the person who asks for changes of the open request, as her newest verdict.",
      }),
      comments: Schema.Finite.annotate({
        description: "How many unresolved threads of the open request other people than its opener began.",
      }),
    }),
  ).annotate({ description: "Its newest change request." }),
  person: nullable(Schema.Struct({ id: Uuid, name: Schema.String })).annotate({
    description: "Who began it. Null: a trigger did.",
  }),
  archived: Schema.Boolean.annotate({
    description:
      "A person put it away. It comes back with its next turn. Never while it works or waits for a person.",
  }),
  unread: Schema.Boolean.annotate({
    description:
      "In a list: whether a turn has ended, it failed, or it began to wait for a person since the caller last looked at it.",
  }),
  found: Schema.optionalKey(Schema.Struct({ item_id: Uuid, at: Instant, text: Schema.String })).annotate({
    description:
      "In a list with `search`: the newest message or answer that has the words, with the sentence around them. Absent: its name has them.",
  }),
  created_at: Instant,
  updated_at: Instant,
  running_at: nullable(Instant),
  stopped_at: nullable(Instant),
}).annotate({ identifier: "Session" });

const OwnCredentialsWire = Schema.Struct({
  connectors: Schema.Array(Schema.String).annotate({
    description: "The project's connectors that use a person's own credential.",
  }),
  subscription: Schema.Boolean.annotate({
    description:
      "Whether the own subscription of the session's person is in its sandbox. Its calls of models are not counted.",
  }),
  suspended: Schema.NullOr(
    Schema.Struct({
      session_id: Uuid.annotate({ description: "The session that was steered: this one, or one above it." }),
      by: Schema.Struct({ id: Uuid, name: Schema.String }),
      act: Schema.Literals(Object.keys(STEERING_ACTS) as SteeringAct[]),
      words: Schema.String.annotate({ description: "The act, in words that follow the person's name." }),
      at: Instant,
    }),
  ).annotate({ description: "The first act of another person. Null: the own credentials work." }),
}).annotate({ identifier: "OwnCredentials" });

/** A session at its start, with warnings about missing secrets. */
const StartedSession = Schema.Struct({
  ...SessionWire.fields,
  warnings: Schema.Array(Warning).annotate({
    description: "Possible problems of the session, such as required secrets without a value.",
  }),
}).annotate({ identifier: "StartedSession" });

export const SandboxWire = Schema.Struct({
  id: Uuid,
  session_id: Uuid,
  provider: Schema.String,
  node_id: Schema.String.annotate({ description: "The node on which it runs." }),
  image: nullable(Schema.String).annotate({
    description:
      "The image whose files the sandbox sees (`[environment] image`). Null: it sees the image of a build or the node's own files, or has not booted yet.",
  }),
  environment: nullable(Schema.Struct({ build_id: Uuid, stale: Schema.Boolean })).annotate({
    description:
      "The build whose image the sandbox sees, or for which it waits. `stale`: it is the image of an earlier Dockerfile, because that of the newest one is not ready. Null: the project has no Dockerfile, or the sandbox has not booted yet.",
  }),
  status: Schema.Literals(SANDBOX_STATUSES),
  failure: nullable(Schema.Struct({ code: Schema.String, message: Schema.String })),
  created_at: Instant,
  waited: Schema.Boolean.annotate({ description: "It was started before the session, and waited for it." }),
  boot_started_at: nullable(Instant).annotate({
    description:
      "When the boot started. Null while the sandbox waits for the build of its environment, or for a place: a node boots a limited number at once.",
  }),
  active_at: nullable(Instant),
  ended_at: nullable(Instant),
}).annotate({ identifier: "Sandbox" });

const SessionChanges = Schema.Struct({
  base_commit: nullable(Schema.String).annotate({
    description: "The commit at which the session's branch began.",
  }),
  head_commit: nullable(Schema.String).annotate({
    description: "The branch's newest commit. Null before the branch exists, and after its deletion.",
  }),
  ...comparisonFields,
}).annotate({ identifier: "SessionChanges" });

const TurnSaves = Schema.Struct({
  turns: Schema.Array(
    Schema.Struct({
      id: Uuid.annotate({ description: "The turn's id, as `turn_id` of the conversation's items." }),
      at: Instant.annotate({ description: "When the save was made." }),
    }),
  ).annotate({
    description:
      "The turns whose saves are kept, oldest first: at most the last 50. Where saves reach a limit, the oldest of these go first. A new session can begin from each.",
  }),
}).annotate({ identifier: "TurnSaves" });

export const CreateSession = Schema.Struct({
  base_ref: Schema.optionalKey(Schema.String),
  from: Schema.optionalKey(
    Schema.Struct({
      session_id: Uuid.annotate({
        description:
          "A session of the same project. The new session's branch begins at the pushed commit of its newest save, and the sandbox has what was saved beside that. It needs the right to fetch saved work, stands in place of `base_ref`, and does not wait in the queue. The metadata of the new session say it as `begun_from`: `{session_id, turn_id?, title, at}`. Its agent gets the conversation of that session up to there. 409 `nothing_saved`: there is no such save.",
      }),
      turn_id: Schema.optionalKey(Uuid).annotate({
        description: "The save at the end of this turn, one of `GET …/saves`, in place of the newest one.",
      }),
    }),
  ),
  agent_name: Schema.optionalKey(Schema.String),
  agent_model: Schema.optionalKey(Schema.String),
  effort: Schema.optionalKey(
    text(32).annotate({
      description:
        "How hard the model thinks, in the words of the agent's runtime, such as `low` or `high`. Without it, the agent's. It needs a prompt, which is then the conversation's first message: `initial_prompt` of the session is null.",
    }),
  ),
  mode: Schema.optionalKey(
    text(64).annotate({
      description:
        "How the agent begins, one of the `modes` of its runtime. In `plan_mode` of the runtime it plans first, and a person approves the plan. Without it, as the agent does. It needs a prompt, as `effort` does.",
    }),
  ),
  initial_prompt: Schema.optionalKey(textOfBytes(PROMPT_LIMIT_BYTES)),
  attachments: Schema.optionalKey(
    Schema.Array(Uuid).annotate({
      description:
        "Files for the agent, at most 10 and 25 MiB together: ids of your uploads to this project. The prompt and the files are then the conversation's first message, which waits with the session at the cap. `initial_prompt` of the session is null. Without a name, the session has the first sentence of the prompt as its name.",
    }),
  ),
  name: Schema.optionalKey(nameText(200)),
  metadata: Schema.optionalKey(Metadata),
});

/** A session that waits for a free one. */
export const QueuedSession = Schema.Struct({
  status: Schema.Literal("queued"),
  queue_id: Uuid.annotate({ description: "The id of its fire, which says what became of it." }),
  position: Schema.Finite.annotate({ description: "Its place in the account's queue, from 1." }),
  expires_at: Instant,
}).annotate({ identifier: "QueuedSession" });

/** Also a field of a message, which restarts a session that has ended. */
export const restoreSaved = Schema.optionalKey(Schema.Boolean).annotate({
  description:
    "Whether the new sandbox brings the session's saved work back: unpushed commits of the session branch as commits, other changes as uncommitted files. Default: false, and the sandbox has what was pushed.",
});

const StopSession = Schema.Struct({
  save: Schema.optionalKey(Schema.Literals(STOP_SAVES)).annotate({
    description:
      "`try` (the default): unpushed work is saved for a while, then the sandbox ends. `require`: if not everything could be saved by then, the answer is 409 `not_saved`, and the session runs on. `skip`: the sandbox ends at once, and `saved` says that changes since the last save are lost.",
  }),
});

/** The sizes of a project's saved work. */
const SavesPage = Schema.Struct({
  bytes: Schema.Finite.annotate({ description: "All of them together." }),
  sessions: Schema.Array(
    Schema.Struct({
      id: Uuid,
      name: nullable(Schema.String),
      status: Schema.Literals(SESSION_STATUSES),
      bytes: Schema.Finite,
    }),
  ).annotate({ description: "Largest first. Sessions that are being deleted are not among them." }),
  away: Schema.Array(Schema.String).annotate({
    description: "Nodes that cannot be reached now. The saved work that they have is not counted.",
  }),
}).annotate({ identifier: "SavesPage" });

const RestartSession = Schema.Struct({ restore_saved: restoreSaved });

const PatchSession = Schema.Struct({
  name: Schema.optionalKey(nameText(200)),
  metadata: Schema.optionalKey(Metadata),
  archived: Schema.optionalKey(Schema.Boolean),
});

/** The activities of a list, as names between commas. */
const activityList = Schema.String.check(
  Schema.makeFilter((names: string) =>
    names.split(",").every((name) => ACTIVITIES.some((activity) => activity === name))
      ? undefined
      : `must have names between commas: ${ACTIVITIES.join(", ")}`,
  ),
);

/** What a list of sessions may be narrowed to. */
export const listQuery = {
  ...pageQuery,
  status: Schema.optionalKey(Schema.Literals(SESSION_STATUSES)),
  activity: Schema.optionalKey(
    activityList.annotate({
      description: `Sessions with one of these activities, as names between commas: ${ACTIVITIES.join(", ")}.`,
    }),
  ),
  turn: Schema.optionalKey(
    TurnWire.fields.state.annotate({
      description:
        "Live sessions whose agent's turn has this state. `requires_action`: the agent waits for a person. These include idle sessions whose work cannot be saved, and sessions, also ended ones, with a call that waits for an approval that you may give.",
    }),
  ),
  trigger: Schema.optionalKey(text(64).annotate({ description: "The slug of the trigger that started it." })),
  started_by: Schema.optionalKey(Schema.Literals(["person", "trigger"])),
  created_by: Schema.optionalKey(Uuid),
  archived: Schema.optionalKey(Schema.Literals(["true", "false"])).annotate({
    description: "Only archived sessions, or only others. Absent: both.",
  }),
  parent_session_id: Schema.optionalKey(
    Uuid.annotate({ description: "Sessions that the agent of this session started." }),
  ),
  search: Schema.optionalKey(
    text(200).annotate({
      description:
        "A part of its name. Without a name: of its trigger's slug, or else of the first 200 characters of its prompt. Or words whose beginnings are all in one message of a person or the agent, or in one answer of a person to a request (`found`).",
    }),
  ),
};

export const SessionPage = Schema.Struct({
  sessions: Schema.Array(SessionWire),
  next_cursor: nullable(Schema.String).annotate({
    description:
      "Where the list continues. A list with a filter looks at 10,000 sessions at a time: a page may have fewer sessions than its limit and still continue.",
  }),
});

/** Which work of a session: what its branch has, or what was saved besides. */
const workQuery = {
  of: Schema.optionalKey(Schema.Literals(["branch", "saved"])).annotate({
    description:
      "`branch` (the default): the pushed work. `saved`: what the saved work adds to the session branch; nothing without it.",
  }),
  save: Schema.optionalKey(Uuid).annotate({
    description:
      "With `of=saved`: the id of an entry of `saved.earlier`, to see that one. Absent: the last save.",
  }),
};

/** Absent: the whole workspace. */
const workspaceQuery = {
  path: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((path: string) =>
        isInside(path)
          ? undefined
          : "must be a relative path of at most 4096 bytes, such as src/app.ts, without `..` and not in .git",
      ),
    ),
  ),
};

const PORT_MAX = 65_535;

const CreatePreview = Schema.Struct({
  port: Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: PORT_MAX })),
});

/** Sessions (api.md 3). The relay and the live streams of a session are raw routes (http/relay/relay.ts, http/live/events.ts). */
export class SessionsGroup extends HttpApiGroup.make("sessions")
  .add(
    HttpApiEndpoint.post("create", "/", {
      params: projectParams,
      query: {
        queue: Schema.optionalKey(
          Schema.Literals(["true", "false"]).annotate({
            description:
              "`true`: at the account's cap, the session waits in its queue, and the answer is 202. Default: 429. A session that an agent starts never waits.",
          }),
        ),
      },
      payload: CreateSession,
      success: [
        StartedSession.pipe(HttpApiSchema.status(201)),
        QueuedSession.pipe(HttpApiSchema.status(202)),
      ],
      error: [BadRequest, NotFound, Conflict, Unprocessable, TooMany, Unavailable],
    }).annotate(RequiredPrivilege, "start_session"),
    HttpApiEndpoint.get("list", "/", {
      params: projectParams,
      query: listQuery,
      success: SessionPage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    show("get", "/:sid", { params: sessionParams, success: SessionWire, privilege: "read_project" }),
    HttpApiEndpoint.patch("update", "/:sid", {
      params: sessionParams,
      payload: PatchSession,
      success: SessionWire,
      error: NotFound,
    }).annotate(RequiredPrivilege, "name_session"),
    HttpApiEndpoint.post("see", "/:sid/seen", {
      params: sessionParams,
      success: HttpApiSchema.NoContent,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("stop", "/:sid/stop", {
      params: sessionParams,
      // Without a body, nothing is wished.
      payload: [StopSession, Schema.Null],
      success: SessionWire,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "stop_session"),
    show("ownCredentials", "/:sid/own-credentials", {
      params: sessionParams,
      success: OwnCredentialsWire,
      privilege: "read_project",
    }),
    HttpApiEndpoint.post("giveOwnCredentials", "/:sid/own-credentials/give-back", {
      params: sessionParams,
      success: HttpApiSchema.NoContent,
      error: [Forbidden, NotFound],
    }).annotate(RequiredPrivilege, "give_back_credentials"),
    HttpApiEndpoint.post("restart", "/:sid/restart", {
      params: sessionParams,
      // Without a body, nothing is wished.
      payload: [RestartSession, Schema.Null],
      success: StartedSession.pipe(HttpApiSchema.status(202)),
      error: [NotFound, Conflict, TooMany, Unavailable],
    }).annotate(RequiredPrivilege, "restart_session"),
    remove("delete", "/:sid", { params: sessionParams, privilege: "discard_work" }),
    show("turnSaves", "/:sid/saves", {
      params: sessionParams,
      success: TurnSaves,
      privilege: "read_saved_work",
    }),
    remove("deleteSave", "/:sid/saves/:id", {
      params: { ...sessionParams, id: Uuid },
      privilege: "delete_save",
    }),
    show("sandbox", "/:sid/sandbox", {
      params: sessionParams,
      success: SandboxWire,
      privilege: "read_project",
    }),
    HttpApiEndpoint.get("changes", "/:sid/changes", {
      params: sessionParams,
      query: workQuery,
      success: SessionChanges,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("diff", "/:sid/diff", {
      params: sessionParams,
      query: { ...diffQuery, ...workQuery },
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; charset=utf-8" })),
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("workspaceChanges", "/:sid/workspace/changes", {
      params: sessionParams,
      success: WorkspaceChanges,
      error: [NotFound, Conflict, GatewayTimeout],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("workspaceDiff", "/:sid/workspace/diff", {
      params: sessionParams,
      query: workspaceQuery,
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; charset=utf-8" })),
      error: [BadRequest, NotFound, Conflict, GatewayTimeout],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("workspaceFiles", "/:sid/workspace/files", {
      params: sessionParams,
      query: workspaceQuery,
      success: Schema.Union([WorkspaceDirectory, WorkspaceFile]),
      error: [BadRequest, NotFound, Conflict, GatewayTimeout],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("ports", "/:sid/ports", {
      params: sessionParams,
      success: Schema.Struct({ ports: Schema.Array(Schema.Finite) }),
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "enter_port"),
    HttpApiEndpoint.get("terminal", "/:sid/terminal", {
      params: sessionParams,
      success: TerminalOffer,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "open_terminal"),
    HttpApiEndpoint.post("preview", "/:sid/preview", {
      params: sessionParams,
      payload: CreatePreview,
      success: Schema.Struct({ url: Schema.String, expires_at: Instant }).pipe(HttpApiSchema.status(201)),
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "enter_port"),
  )
  .prefix("/v1/projects/:pid/sessions")
  .add(
    HttpApiEndpoint.get("listAll", "/v1/sessions", {
      query: listQuery,
      success: SessionPage,
    }).annotate(RequiredPrivilege, "read_project"),
  )
  .add(
    show("saves", "/v1/projects/:pid/saves", {
      params: projectParams,
      success: SavesPage,
      privilege: "read_saved_work",
    }),
  )
  .middleware(Authorized) {}

/** Handlers of api/sessions/sessions.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type * as Schema from "effect/Schema";
import { HttpServerResponse } from "effect/http";
import { HttpApiBuilder } from "effect/http-api";
import { auditedAsk, auditedChange, unlessSame } from "../../services/audit.ts";
import { Admitter } from "../../services/triggers/admission.ts";
import { Actors } from "../../services/actors.ts";
import { Directory } from "../../services/directory.ts";
import { newUuid } from "../../services/entropy.ts";
import { callingPerson } from "../callers/person.ts";
import { requireModel } from "../../services/projects/models.ts";
import { requireCounted } from "../../services/projects/counted-models.ts";
import { logMissingSecrets } from "../../services/projects/required-secrets.ts";
import {
  baseCommit,
  noDefaultBranch,
  requireAgent,
  UnknownBaseRef,
} from "../../services/projects/repository.ts";
import { AGENT_NAME_RULE, DEFAULT_AGENT, isAgentName } from "../../domain/sandbox/agent.ts";
import type { Saved } from "../../domain/save/saved.ts";
import { parseBaseRef } from "../../domain/repository/git-ref.ts";
import { type BegunFrom, begunFrom, keepsBegunFrom, withBegunFrom } from "../../domain/session/begun.ts";
import { isArchived, isUnread, newsAt } from "../../domain/session/session-news.ts";
import { ACTIVITIES, oldestWait, sessionActivity } from "../../domain/session/session-activity.ts";
import { promptTitle } from "../../domain/session/title.ts";
import type { RequestWish, SessionWish } from "../../store/ports/triggers/admissions.ts";
import { Sandboxes, type Sandbox } from "../../store/ports/sessions/sandboxes.ts";
import type { Page } from "../../store/ports/page.ts";
import {
  Sessions,
  type NewSession,
  type Session,
  type SessionRequest,
  type ShownSession,
} from "../../store/ports/sessions/sessions.ts";
import type { Project } from "../../store/ports/projects/projects.ts";
import { lackAt, findLack, listReader } from "../callers/access.ts";
import type { Privilege } from "../../domain/person/privileges.ts";
import { parentSession } from "../callers/agent-rules.ts";
import { Caller, type RequestCaller } from "../api/access.ts";
import {
  type CreateSession,
  type listQuery,
  SandboxWire,
  SessionsGroup,
  type SessionPage,
  type SessionWire,
} from "../api/sessions/sessions.ts";
import { badRequest, notFound, Unprocessable } from "../api/errors.ts";
import {
  capReached,
  childrenFull,
  gitFailed,
  limitNeedsProvider,
  projectInactive,
  unknownModel,
} from "../answers/refusals.ts";
import { giveOwnCredentials, shownOwnCredentials } from "../steps/own-credentials.ts";
import { withApiErrors, typedResponse, projectFor, requireProject, sessionFor } from "../steps/answers.ts";
import { Limits } from "../limits.ts";
import { queuedWire, queueFull, requestFor } from "../steps/sessions/queued-session.ts";
import { makePreview } from "../relay/preview.ts";
import { terminalOffer } from "../relay/terminal.ts";
import { checkModelName } from "../steps/sessions/model-names.ts";
import { restartSession, type RestartWish } from "../steps/sessions/restarting.ts";
import { deleteSave, projectSaves, turnSaves } from "../steps/sessions/saves.ts";
import { claimUploads, firstMessage } from "../steps/sessions/first-message.ts";
import { forgetWork, workFrom } from "../steps/sessions/session-from.ts";
import { requireDiscard, stopSession } from "../steps/sessions/stopping.ts";
import { sessionChanges, sessionDiff } from "../steps/sessions/session-changes.ts";
import { sessionPorts } from "../steps/sessions/session-ports.ts";
import {
  readWorkspaceChanges,
  readWorkspaceDiff,
  readWorkspaceFiles,
} from "../steps/sessions/session-workspace.ts";
import { sessionWarnings } from "../steps/warnings.ts";
import { conversationStateWire } from "../steps/sessions/conversation-wire.ts";
import { instant, pageRequest, sessionWire, wireForm } from "../steps/wire.ts";
import { Platform } from "../api/platform.ts";

type Wish = typeof CreateSession.Type;

interface Beginning {
  readonly id: string;
  /** The saved work of another session. */
  readonly work: {
    readonly base: string | null;
    readonly saved: Saved;
    readonly begunFrom: BegunFrom;
  } | null;
}

/** Refuses metadata that name another beginning than the service does (domain/session/begun.ts). */
const checkMetadata = (metadata: Wish["metadata"], begun: BegunFrom | null) =>
  metadata === undefined || keepsBegunFrom(metadata, begun)
    ? Effect.void
    : badRequest("metadata", "must leave begun_from out: the service says there where a session began");

/**
 * Checks a request against the rules for names and against the repository. Writes nothing (api.md 3: no row in any of
 * these).
 */
const draft = Effect.fnUntraced(function* (project: Project, wish: Wish, { id, work }: Beginning) {
  yield* checkMetadata(wish.metadata, null);
  const baseRef = work?.base ?? wish.base_ref ?? project.defaultBranch;
  const parsed = parseBaseRef(baseRef);
  if (Result.isFailure(parsed)) return yield* badRequest("base_ref", parsed.failure.message);
  const agentName = wish.agent_name ?? DEFAULT_AGENT;
  if (!isAgentName(agentName)) return yield* badRequest("agent_name", AGENT_NAME_RULE);
  const commit = yield* baseCommit({ projectId: project.id }, baseRef).pipe(
    Effect.mapError((error) =>
      error._tag === "UnknownBaseRef" && baseRef === project.defaultBranch
        ? new UnknownBaseRef({ baseRef, message: noDefaultBranch(baseRef) })
        : error,
    ),
  );
  const agent = yield* requireAgent({ projectId: project.id, commit, name: agentName });
  const agentModel = wish.agent_model ?? null;
  if (agentModel !== null) yield* checkModelName(agent, "agent_model", agentModel);
  const personId = yield* callingPerson;
  yield* requireModel(project, { commit, agent, agentModel, personId });
  const { attachments = [], initial_prompt: text = null, effort, mode } = wish;
  const first =
    attachments.length === 0 && effort === undefined && mode === undefined
      ? null
      : yield* firstMessage(project, { text: text ?? "", attachments, agent, effort, mode });
  const caller = yield* Caller;
  const parent = yield* parentSession(caller);
  const { bootTimeoutMs } = yield* Limits;
  const now = yield* Clock.currentTimeMillis;
  const session: NewSession = {
    id,
    projectId: project.id,
    accountId: project.accountId,
    baseRef,
    baseCommit: commit,
    name: wish.name ?? (first && promptTitle(first.text)),
    agentName,
    agentModel,
    initialPrompt: first === null ? text : null,
    firstMessage: first,
    metadata: withBegunFrom(wish.metadata ?? {}, work?.begunFrom ?? null),
    triggerSlug: null,
    createdBy: caller.user.id,
    // A child acts as its parent does. Today only a session that acts for a person may start one (access.ts).
    origin: caller.origin === "trigger" ? "trigger" : "session",
    ...parent,
    bootDeadlineAt: now + bootTimeoutMs,
    ...(work !== null && { saved: work.saved }),
  };
  const facts = { ...session, parentSessionId: session.parentSessionId ?? null };
  yield* requireCounted(facts, { commit, agent, agentModel, personId });
  return session;
});

/** Why an admission makes no session, as the audit record says it. */
const NOT_ADMITTED: Readonly<Record<string, string>> = {
  refused: "session_cap_reached",
  queue_full: "queue_full",
  inactive: "project_inactive",
};

/** @param mayWait whether it waits at the cap. An agent's session never does. */
export const create = Effect.fnUntraced(function* (projectId: string, wish: Wish, mayWait = false) {
  const project = yield* projectFor(yield* Caller, projectId);
  if (project.status !== "active") return yield* projectInactive(project);
  const id = yield* newUuid;
  const { from } = wish;
  if (from === undefined) return yield* beginSession(project, wish, { id, work: null, mayWait });
  if (wish.base_ref !== undefined)
    return yield* badRequest("base_ref", "must be absent where `from` says where the session begins");
  const work = yield* workFrom(projectId, from, id);
  return yield* beginSession(project, wish, { id, work, mayWait: false }).pipe(
    Effect.onError(() => forgetWork(projectId, id)),
  );
});

const beginSession = Effect.fnUntraced(function* (
  project: Project,
  wish: Wish,
  { mayWait, ...beginning }: Beginning & { readonly mayWait: boolean },
) {
  const session = yield* draft(project, wish, beginning).pipe(
    Effect.catchTags({
      UnknownBaseRef: ({ message }) => new Unprocessable({ error: message, code: "unknown_base_ref" }),
      UnknownAgent: ({ message }) => new Unprocessable({ error: message, code: "unknown_agent" }),
      BrokenAgent: ({ message }) => new Unprocessable({ error: message, code: "invalid_agent" }),
      LimitNeedsProvider: ({ message }) => limitNeedsProvider(message),
      UnknownModel: ({ message }) => unknownModel(message),
      NoModel: ({ message }) => new Unprocessable({ error: message, code: "no_model" }),
      GitError: (error) => gitFailed(error),
    }),
  );
  const now = yield* Clock.currentTimeMillis;
  const row = {
    action: "session.created",
    target: session.id,
    changes: { base_ref: session.baseRef },
  } as const;
  const request: SessionWish | RequestWish =
    mayWait && session.parentSessionId === undefined
      ? yield* requestFor(session, now)
      : { kind: "session", session, fire: null, projectVersion: null, now };
  yield* claimUploads(request);
  const admission = yield* (yield* Admitter)
    .admit(project.accountId, request)
    .pipe(auditedAsk(row, ({ outcome }: { readonly outcome: string }) => NOT_ADMITTED[outcome] ?? null));
  if (admission.outcome === "refused") return yield* capReached(admission);
  if (admission.outcome === "children_full") return yield* childrenFull(admission);
  if (admission.outcome === "queue_full") return yield* queueFull(admission);
  if (admission.outcome === "inactive") return yield* projectInactive(project);
  if (admission.outcome === "queued") return yield* queuedWire(project.accountId, admission);
  return yield* startWarnings(session);
});

const sandboxForm = wireForm(SandboxWire);
const showSandbox = ({ environment, warmRecipe, ...sandbox }: Sandbox) =>
  sandboxForm({
    ...sandbox,
    environment: environment && { buildId: environment.buildId, stale: environment.isStale },
    waited: warmRecipe !== null,
  });

const shownWire = (session: ShownSession) => ({
  ...sessionWire(session),
  ...conversationStateWire(session, session.conversation),
  pending_approvals: session.pendingApprovals,
  activity: sessionActivity(session),
  waits_for: oldestWait(session),
  last_sentence: session.conversation?.lastSentence ?? null,
  changes: changesWire(session),
  change_request: changeRequestWire(session),
  archived: isArchived(session),
  ...(session.hit && {
    found: { item_id: session.hit.itemId, at: instant(session.hit.at), text: session.hit.text },
  }),
  unread: isUnread(session, session.seenAt ?? null),
  // A trigger acts for the person who manages it, who did not begin the session.
  person: session.triggerSlug === null ? { id: session.createdBy, name: session.creatorName } : null,
});

const changesWire = ({ changes }: ShownSession) =>
  changes && {
    files: changes.files,
    additions: changes.additions,
    deletions: changes.deletions,
    head_commit: changes.head,
  };

const changeRequestWire = ({ changeRequest: request }: ShownSession) =>
  request && {
    id: request.id,
    number: request.number,
    title: request.title,
    status: request.status,
    changes_asked_by: request.changesAskedBy,
    comments: request.comments,
  };

const reread = Effect.fnUntraced(function* (id: string) {
  const session = yield* (yield* Sessions).shown(id);
  return session === null ? yield* notFound("session") : shownWire(session);
});

/** The session with the state of its conversation, which was read with the caller or is read now. */
const shownOne = Effect.fnUntraced(function* (session: Session | ShownSession | null) {
  if (session === null) return yield* notFound("session");
  return "conversation" in session ? shownWire(session) : yield* reread(session.id);
});

/** The session that begins to boot, with its warnings. */
const startWarnings = Effect.fnUntraced(function* ({ id, projectId }: Pick<Session, "id" | "projectId">) {
  const entry = (yield* Directory).known(projectId);
  yield* logMissingSecrets(entry, { session: id });
  return { ...(yield* reread(id)), warnings: sessionWarnings(entry) };
});

type SessionPath = { readonly pid: string; readonly sid: string };

export const restart = Effect.fnUntraced(function* (params: SessionPath, wish: RestartWish) {
  return yield* startWarnings(yield* restartSession(params, wish));
});

export const remove = Effect.fnUntraced(function* (params: SessionPath) {
  const caller = yield* Caller;
  const session = yield* sessionFor(caller, params);
  yield* requireDiscard(caller, session);
  const actors = yield* Actors;
  yield* actors.session(session.id, { type: "delete.requested" }).pipe(
    Effect.catchTag("CapReached", Effect.die),
    auditedAsk({ action: "session.delete", target: session.id }, () => null),
  );
});

/** The clock of a sandbox may be ahead. News that a person has seen is none to her all the same. */
const seenUntil = Effect.fnUntraced(function* ({ id }: Session | ShownSession) {
  const now = yield* Clock.currentTimeMillis;
  const view = yield* (yield* Sessions).shown(id);
  return view === null ? now : Math.max(now, newsAt(view));
});

/** A program that reads the list for a person, such as her agent, has not seen the session for her. */
const see = Effect.fnUntraced(function* (params: SessionPath) {
  const caller = yield* Caller;
  const session = yield* sessionFor(caller, params);
  if (caller.origin !== "user") return;
  const mark = { userId: caller.user.id, at: yield* seenUntil(session) };
  yield* (yield* Sessions).see(session.id, mark);
});

export const update = Effect.fnUntraced(function* (
  params: SessionPath,
  change: {
    readonly name?: string;
    readonly metadata?: Readonly<Record<string, unknown>>;
    readonly archived?: boolean;
  },
) {
  const session = yield* sessionFor(yield* Caller, params);
  const now = yield* Clock.currentTimeMillis;
  const sessions = yield* Sessions;
  const beginning = begunFrom(session);
  yield* checkMetadata(change.metadata, beginning);
  const { archived, metadata, ...texts } = change;
  const archivedAt = archived === true ? yield* seenUntil(session) : null;
  const wish = {
    ...texts,
    ...(metadata !== undefined && { metadata: withBegunFrom(metadata, beginning) }),
    ...(archived !== undefined && { archivedAt }),
    now,
  };
  const rename = sessions.rename(session.id, wish).pipe(
    auditedChange({
      target: session.id,
      read: Effect.map(
        sessions.get(session.id),
        (row) => row && { name: row.name, archived: (row.archivedAt ?? null) !== null },
      ),
      say: (changes) => {
        const row = { action: "session.updated", target: session.id, changes } as const;
        // Metadata are a program's own texts, and not on record.
        return metadata === undefined ? unlessSame(row) : row;
      },
    }),
  );
  return yield* shownOne(yield* rename);
});

/** @param mayApprove whether the caller may approve calls: see SessionFilter */
const listRequest = (
  { activity, ...query }: Schema.Struct.Type<typeof listQuery>,
  { mayApprove, reader }: { readonly mayApprove: boolean; readonly reader: string },
): SessionRequest => ({
  ...pageRequest(query),
  reader,
  status: query.status ?? null,
  ...(activity !== undefined && {
    activities: ACTIVITIES.filter((each) => activity.split(",").includes(each)),
  }),
  turn: query.turn,
  mayApprove,
  triggerSlug: query.trigger,
  startedBy: query.started_by,
  createdBy: query.created_by,
  parentSessionId: query.parent_session_id,
  ...(query.archived !== undefined && { archived: query.archived === "true" }),
  search: query.search,
});

/** Whether the caller has the privilege in the project of the request's path. */
const mayHere = (caller: RequestCaller, privilege: Privilege): boolean =>
  findLack(caller, privilege) === null &&
  caller.reached !== undefined &&
  lackAt(privilege, caller.reached) === null;

const pageAnswer = ({ items, nextCursor }: Page<ShownSession>) =>
  typedResponse<typeof SessionPage.Encoded>({
    sessions: items.map(shownWire),
    next_cursor: nextCursor,
  });

const listAll = Effect.fnUntraced(function* (query: Schema.Struct.Type<typeof listQuery>) {
  const caller = yield* Caller;
  const { accountId, projectId } = caller;
  const sessions = yield* Sessions;
  const request = listRequest(query, {
    mayApprove: findLack(caller, "approve_call") === null,
    reader: caller.user.id,
  });
  const page =
    projectId === null
      ? sessions.listForReader({ accountId, userId: listReader(caller) }, request)
      : sessions.list(projectId, request);
  return pageAnswer(yield* page);
});

export const sessionsHandlers = HttpApiBuilder.group(Platform.add(SessionsGroup), "sessions", (handlers) =>
  handlers
    .handle("create", ({ params, payload, query }) =>
      withApiErrors(
        Effect.map(create(params.pid, payload, query.queue === "true"), (session) =>
          session.status === "queued" ? HttpServerResponse.jsonUnsafe(session, { status: 202 }) : session,
        ),
      ),
    )
    .handle("list", ({ params, query }) =>
      withApiErrors(
        Effect.gen(function* () {
          const caller = yield* Caller;
          yield* requireProject(caller, params.pid);
          const request = listRequest(query, {
            mayApprove: mayHere(caller, "approve_call"),
            reader: caller.user.id,
          });
          return pageAnswer(yield* (yield* Sessions).list(params.pid, request));
        }),
      ),
    )
    .handle("listAll", ({ query }) => withApiErrors(listAll(query)))
    .handle("get", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          const session = yield* shownOne(yield* sessionFor(yield* Caller, params));
          return typedResponse<typeof SessionWire.Encoded>(session);
        }),
      ),
    )
    .handle("update", ({ params, payload }) => withApiErrors(update(params, payload)))
    .handle("see", ({ params }) => withApiErrors(see(params)))
    .handle("stop", ({ params, payload }) =>
      withApiErrors(Effect.flatMap(stopSession(params, payload ?? {}), ({ id }) => reread(id))),
    )
    .handle("turnSaves", ({ params }) => withApiErrors(turnSaves(params)))
    .handle("deleteSave", ({ params }) => withApiErrors(deleteSave(params)))
    .handle("saves", ({ params }) => withApiErrors(projectSaves(params.pid)))
    .handle("ownCredentials", ({ params }) => withApiErrors(shownOwnCredentials(params)))
    .handle("giveOwnCredentials", ({ params }) => withApiErrors(giveOwnCredentials(params)))
    .handle("restart", ({ params, payload }) => withApiErrors(restart(params, payload ?? {})))
    .handle("delete", ({ params }) => withApiErrors(remove(params)))
    .handle("changes", ({ params, query }) => withApiErrors(sessionChanges(params, query)))
    .handle("diff", ({ params, query }) => withApiErrors(sessionDiff(params, query)))
    .handle("workspaceChanges", ({ params }) => withApiErrors(readWorkspaceChanges(params)))
    .handle("workspaceDiff", ({ params, query }) => withApiErrors(readWorkspaceDiff(params, query)))
    .handle("workspaceFiles", ({ params, query }) => withApiErrors(readWorkspaceFiles(params, query)))
    .handle("ports", ({ params }) => withApiErrors(sessionPorts(params)))
    .handle("terminal", ({ params }) => withApiErrors(terminalOffer(params)))
    .handle("preview", ({ params, payload }) => withApiErrors(makePreview(params, payload.port)))
    .handle("sandbox", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          const session = yield* sessionFor(yield* Caller, params);
          const sandbox = yield* (yield* Sandboxes).newest(session.id);
          return sandbox === null ? yield* notFound("sandbox of this session") : showSandbox(sandbox);
        }),
      ),
    ),
);

/** Handlers of api/sessions/messages.ts: what people say to the agent, by the session's conversation actor. */
import { isDeepStrictEqual } from "node:util";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { HttpServerResponse } from "effect/http";
import { HttpApiBuilder } from "effect/http-api";
import { Actors } from "../../services/actors.ts";
import { AGENT_NAME_RULE, isAgentName } from "../../domain/sandbox/agent.ts";
import {
  attachmentIds,
  contentText,
  type Author,
  type FilePart,
  type ProposedPlan,
} from "../../domain/conversation/conversation.ts";
import { isClosed } from "../../domain/conversation/growing.ts";
import { knownFacts } from "../../domain/model/known-models.ts";
import { isLive } from "../../domain/session/session.ts";
import { PLAN_APPROVED, QUEUE_MAX, type RequestAnswer } from "../../domain/conversation/steering.ts";
import type { ConversationEvent } from "../../machines/conversation-events.ts";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider } from "../../sandbox/port.ts";
import { knownAgent, takesMessages } from "../../services/projects/agents.ts";
import { requireChosenProvider } from "../../services/projects/models.ts";
import { usableModels } from "../../services/projects/account-models.ts";
import { credentialOwner } from "../../services/connectors/own-credentials.ts";
import type { Agent } from "../../domain/agents/agents.ts";
import { withLink } from "../../services/answered.ts";
import { newUuid } from "../../services/entropy.ts";
import { serviceContext } from "../../services/sessions/service-context.ts";
import { Conversations, type Item, type Turn } from "../../store/ports/sessions/conversations.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import { Sandboxes } from "../../store/ports/sessions/sandboxes.ts";
import { Sessions, type Session } from "../../store/ports/sessions/sessions.ts";
import { Caller } from "../api/access.ts";
import { badRequest, Conflict, notFound, TooMany, Unavailable } from "../api/errors.ts";
import { noteSteering } from "../callers/steering.ts";
import { requireFewBytes, requireKnown } from "../steps/sessions/attached-files.ts";
import { refuseSecrets } from "../steps/sessions/message-secrets.ts";
import { takesNoMessages, unknownModel } from "../answers/refusals.ts";
import { withApiErrors, ensureConversation, sessionFor } from "../steps/answers.ts";
import { answerWire, itemWire } from "../steps/sessions/conversation-wire.ts";
import { checkEffort, checkModelName } from "../steps/sessions/model-names.ts";
import { restartSession, type RestartWish } from "../steps/sessions/restarting.ts";
import { MessagesGroup, type PostMessage } from "../api/sessions/messages.ts";
import { lackedBy } from "../../domain/runtimes/runtime.ts";
import { Platform } from "../api/platform.ts";

type SessionPath = { readonly pid: string; readonly sid: string };
type ItemPath = SessionPath & { readonly id: string };

/** The session of the path, whose runtime takes messages. */
const conversing = Effect.fnUntraced(function* (params: SessionPath) {
  const session = yield* sessionFor(yield* Caller, params);
  if (!(yield* takesMessages(session.projectId, session.agentName))) return yield* takesNoMessages();
  yield* ensureConversation(session.id);
  return session;
});

const tell = Effect.fnUntraced(function* (sessionId: string, event: ConversationEvent) {
  return yield* (yield* Actors)
    .conversation(sessionId, event)
    .pipe(Effect.catchTag("CapReached", Effect.die));
});

const toAuthor = ({ user }: Principal): Author => ({
  kind: "user",
  userId: user.id,
  name: user.name,
  triggerSlug: null,
  fireId: null,
});

const refuseSecretsIn = (projectId: string, texts: readonly string[]) =>
  refuseSecrets(projectId, "The text", (value) => texts.some((text) => text.includes(value)));

const checkModel = Effect.fnUntraced(function* (session: Session, agent: Agent, agentModel: string) {
  yield* checkModelName(agent, "model", agentModel);
  yield* requireChosenProvider(session, { agent, agentModel }).pipe(
    Effect.catchTag("UnknownModel", ({ message }) => unknownModel(message)),
  );
});

const checkWish = Effect.fnUntraced(function* (
  session: Session,
  { text, attachments = [], model, agent, effort }: typeof PostMessage.Type,
) {
  if (text === undefined && attachments.length === 0)
    return yield* badRequest("text", "must be given, unless the message has attachments");
  if (new Set(attachments).size < attachments.length)
    return yield* badRequest("attachments", "must name each attachment once");
  if (model !== undefined || effort !== undefined) {
    const own = yield* Effect.option(knownAgent(session.projectId, session.agentName));
    if (own._tag === "Some" && model !== undefined) yield* checkModel(session, own.value, model);
    if (own._tag === "Some" && effort !== undefined) yield* checkEffort(own.value, effort);
  }
  if (agent !== undefined && !isAgentName(agent)) return yield* badRequest("agent", AGENT_NAME_RULE);
});

/** The named attachments, as parts of the message. */
const findFiles = Effect.fnUntraced(function* (sessionId: string, ids: readonly string[]) {
  const heads = yield* (yield* Conversations).attachmentHeads(sessionId, ids);
  yield* requireKnown(
    ids,
    heads,
    "must be an attachment of this session; one that no message has is removed after 6 hours",
  );
  yield* requireFewBytes(heads);
  return heads.map(({ id, name, media_type }): FilePart => ({
    type: "file",
    name,
    media_type,
    attachment_id: id,
  }));
});

/** Whether the item is this message, posted before. */
const isSame = (item: Item, wish: typeof PostMessage.Type, userId: string): boolean =>
  item.kind === "message" &&
  item.author?.userId === userId &&
  contentText(item.content) === (wish.text ?? "") &&
  isDeepStrictEqual(attachmentIds(item.content), wish.attachments ?? []) &&
  item.model === (wish.model ?? null) &&
  item.agent === (wish.agent ?? null) &&
  item.effort === wish.effort;

const idTaken = () =>
  new Conflict({
    error: "The conversation has another message with this id. Use a new id.",
    code: "id_taken",
  });

const findItem = Effect.fnUntraced(function* (sessionId: string, id: string, what: string) {
  return (yield* (yield* Conversations).item(sessionId, id)) ?? (yield* notFound(what));
});

const queueFull = () =>
  new TooMany({
    error: `The queue is full: ${QUEUE_MAX} messages wait. Cancel one, or wait until the agent has taken one.`,
    code: "queue_full",
    details: { limit: QUEUE_MAX },
  });

/** Whether a session goes on without a restart. */
const isAwake = ({ status, ending }: Session): boolean => isLive(status) && ending === null;

/**
 * A message to a session that has ended, or is about to stop, starts it again. The message waits until its new sandbox
 * runs.
 */
const wake = Effect.fnUntraced(function* (session: Session, params: SessionPath, wish: RestartWish) {
  if (isAwake(session)) return;
  // Another request may have restarted it meanwhile.
  yield* restartSession(params, wish).pipe(
    Effect.catchIf(
      (error) => error instanceof Conflict && error.code === "not_restartable",
      () => Effect.void,
    ),
  );
});

/** 201 once the message and the command to send it are committed. */
export const post = Effect.fnUntraced(function* (params: SessionPath, wish: typeof PostMessage.Type) {
  const caller = yield* Caller;
  const session = yield* conversing(params);
  yield* checkWish(session, wish);
  const { item } = yield* Conversations;
  const former = yield* item(session.id, wish.id);
  if (former !== null)
    return isSame(former, wish, caller.user.id) ? { message: former, isNew: false } : yield* idTaken();
  yield* refuseSecretsIn(session.projectId, [wish.text ?? ""]);
  const files = yield* findFiles(session.id, wish.attachments ?? []);
  yield* noteSteering(caller, session, "instruct_agent");
  yield* wake(session, params, wish);
  const { accepted } = yield* tell(session.id, {
    type: "message.posted",
    messageId: wish.id,
    isUrgent: wish.delivery === "interrupt",
    message: {
      author: toAuthor(caller),
      text: wish.text ?? "",
      files,
      model: wish.model ?? null,
      agent: wish.agent ?? null,
      ...(wish.effort !== undefined && { effort: wish.effort }),
    },
  });
  // The session may have begun to stop since it was looked at.
  const now = yield* (yield* Sessions).get(session.id);
  if (accepted && isAwake(session) && now !== null) yield* Effect.ignore(wake(now, params, wish));
  const message = yield* item(session.id, wish.id);
  // A second request with the same id may have been first.
  if (message === null) return yield* queueFull();
  return isSame(message, wish, caller.user.id) ? { message, isNew: accepted } : yield* idTaken();
});

export const cancel = Effect.fnUntraced(function* (params: ItemPath) {
  const session = yield* conversing(params);
  const message = yield* findItem(session.id, params.id, "message");
  if (message.kind !== "message" || message.role !== "user") return yield* notFound("message");
  yield* tell(session.id, { type: "message.cancelled", messageId: message.id });
  // The record decides: the agent of a sandbox that was lost a moment ago may have had the message.
  const { status } = yield* findItem(session.id, params.id, "message");
  if (status === "cancelled") return;
  return yield* new Conflict({
    error: "The agent has the message already, or is about to get it. Interrupt the agent instead.",
    code: "already_sent",
  });
});

/**
 * A request or a turn of the agent is shown a moment before the conversation's actor hears of it. An answer or a stop of that
 * moment is told again until then.
 */
const UNTIL_HEARD = { schedule: Schedule.spaced("100 millis"), times: 50 };

export const interrupt = Effect.fnUntraced(function* (params: SessionPath) {
  const session = yield* conversing(params);
  const { get } = yield* Conversations;
  let target: Turn | undefined;
  const interruption = Effect.gen(function* () {
    const { accepted } = yield* tell(session.id, { type: "interrupt.requested" });
    if (accepted) return { accepted, isShown: false };
    const turn = (yield* get(session.id))?.turn;
    target ??= turn;
    // A later turn is not meant.
    return { accepted, isShown: turn?.state === "running" && turn.since === target?.since };
  });
  const { accepted } = yield* Effect.repeat(interruption, {
    ...UNTIL_HEARD,
    while: ({ isShown }) => isShown,
  });
  return { interrupted: accepted };
});

export const resume = Effect.fnUntraced(function* (params: SessionPath) {
  const session = yield* conversing(params);
  yield* tell(session.id, { type: "queue.resumed" });
});

type GivenAnswer =
  | { readonly choice: "once" | "always" | "reject"; readonly message?: string }
  | { readonly answers: readonly (readonly string[])[] }
  | { readonly approve: true; readonly mode?: string };

const wordsIn = (reply: GivenAnswer): readonly string[] => {
  if ("answers" in reply) return reply.answers.flat();
  return "choice" in reply && reply.message !== undefined ? [reply.message] : [];
};

/** The approval of a plan in the machine's form. */
const approving = Effect.fnUntraced(function* (plan: ProposedPlan | undefined, mode: string | undefined) {
  const modes = (plan?.modes ?? []).map(({ id }) => id);
  const choice = mode ?? modes[0];
  if (choice === undefined)
    return yield* badRequest("approve", "must be left out, because the request is no plan");
  if (modes.includes(choice)) return { approve: true as const, mode: choice };
  return yield* badRequest("mode", `must be one of: ${modes.join(", ")}`);
});

/** The answer in the machine's form, if it fits the request. */
const fitting = Effect.fnUntraced(function* ({ request }: Item, reply: GivenAnswer) {
  if (request?.kind === "plan" && !("approve" in reply))
    return yield* badRequest("approve", "must be given; to have the plan changed, send a message");
  if ("approve" in reply) return yield* approving(request?.plan, reply.mode);
  const answer: RequestAnswer =
    "choice" in reply ? { choice: reply.choice, message: reply.message ?? null } : reply;
  if (request === null) return answer;
  if (request.kind === "permission" && !("choice" in answer))
    return yield* badRequest("choice", "must be given, because the request asks for a permission");
  if (request.kind === "question") {
    if (!("answers" in answer))
      return yield* badRequest("answers", "must be given, because the request asks a question");
    const { length } = request.questions;
    if (answer.answers.length !== length)
      return yield* badRequest("answers", `must have one list for each of the ${length} questions`);
  }
  return answer;
});

/** Its turn ended first, as when its session went to sleep. */
const UNANSWERED = "The agent's turn ended before an answer came. Answer with a message.";

/** Of several answers the first one wins. The others learn who gave it. */
const alreadySettled = (item: Item) =>
  new Conflict({
    error:
      item.status === "interrupted" && item.answer === null
        ? UNANSWERED
        : `The request is settled already${item.answer?.by == null ? "" : ` by ${item.answer.by.name}`}.`,
    code: "request_settled",
    details: { status: item.status, answer: answerWire(item.answer) },
  });

const isWaiting = ({ status, answer: given }: Item): boolean => !isClosed(status) && given === null;

/** Gives the actor an answer until it takes it, or until the request has an answer or is closed. */
const give = (sessionId: string, event: Extract<ConversationEvent, { type: "answer.given" }>) =>
  Effect.repeat(
    Effect.gen(function* () {
      const { accepted } = yield* tell(sessionId, event);
      return { accepted, request: yield* findItem(sessionId, event.requestId, "request") };
    }),
    { ...UNTIL_HEARD, while: ({ accepted, request }) => !accepted && isWaiting(request) },
  );

const notYet = () =>
  new Unavailable({
    error: "The session cannot pass the answer on now. Answer again in a moment.",
    code: "runtime_not_ready",
  });

/** The message with which an approved plan goes back to an agent whose turn has ended, in the mode in which it works. */
const approvedPlan = Effect.fnUntraced(function* (author: Author, agent: string) {
  const messageId = yield* newUuid;
  return { messageId, message: { author, text: PLAN_APPROVED, files: [], model: null, agent } };
});

export const answer = Effect.fnUntraced(function* (params: ItemPath, reply: GivenAnswer) {
  const session = yield* conversing(params);
  const requestItem = yield* findItem(session.id, params.id, "request");
  if (requestItem.kind !== "request") return yield* notFound("request");
  if (!isWaiting(requestItem)) return yield* alreadySettled(requestItem);
  yield* refuseSecretsIn(session.projectId, wordsIn(reply));
  const fits = yield* fitting(requestItem, reply);
  const caller = yield* Caller;
  yield* noteSteering(caller, session, "settle_request");
  const begins =
    "approve" in fits && requestItem.request?.plan?.in_turn !== true
      ? yield* approvedPlan(toAuthor(caller), fits.mode)
      : null;
  // An approval that begins a turn is a message.
  if (begins !== null) yield* wake(session, params, {});
  const { accepted, request } = yield* give(session.id, {
    type: "answer.given",
    requestId: requestItem.id,
    answer: fits,
    by: toAuthor(caller),
    ...(begins !== null && { begins }),
  });
  // The session may have begun to stop since it was looked at.
  const now = yield* (yield* Sessions).get(session.id);
  if (accepted && begins !== null && isAwake(session) && now !== null)
    yield* Effect.ignore(wake(now, params, {}));
  if (isWaiting(request)) return yield* notYet();
  // The request may be closed before the actor knows it. Then no answer is kept.
  return accepted && request.answer !== null
    ? { request: itemWire(request) }
    : yield* alreadySettled(request);
});

const notRunning = () =>
  new Conflict({
    error: "The session is not running. Its models are known while it runs.",
    code: "session_not_running",
  });

const models = Effect.fnUntraced(function* (params: SessionPath) {
  const session = yield* conversing(params);
  const sandbox = yield* (yield* Sandboxes).newest(session.id);
  if (session.status !== "running" || sandbox?.status !== "active") return yield* notRunning();
  const daemon = yield* DaemonClient;
  const link = yield* withLink(yield* SandboxProvider, sandbox.id);
  const context = yield* (yield* serviceContext)(sandbox.id, session.id);
  const offers = yield* daemon.models(link, context);
  const agent = yield* Effect.option(knownAgent(session.projectId, session.agentName));
  const { id, accountId, projectId, origin, createdBy } = session;
  const personId = yield* credentialOwner({ id, origin, createdBy });
  const { providers } = yield* usableModels({ accountId, projectId, personId });
  const modelOptions = offers.models.map((model) => ({ ...knownFacts(model.id, providers), ...model }));
  return {
    ...offers,
    models: modelOptions,
    lacks: agent._tag === "Some" ? lackedBy(agent.value.runtime) : [],
  };
});

const unreachable = () =>
  Effect.fail(
    new Unavailable({
      error: "The agent runtime does not answer now. Try again in a moment.",
      code: "runtime_not_ready",
    }),
  );

export const messagesHandlers = HttpApiBuilder.group(Platform.add(MessagesGroup), "messages", (handlers) =>
  handlers
    .handle("post", ({ params, payload }) =>
      withApiErrors(
        Effect.map(post(params, payload), ({ message, isNew }) =>
          HttpServerResponse.jsonUnsafe({ message: itemWire(message) }, { status: isNew ? 201 : 200 }),
        ),
      ),
    )
    .handle("cancel", ({ params }) => withApiErrors(cancel(params)))
    .handle("interrupt", ({ params }) => withApiErrors(interrupt(params)))
    .handle("resume", ({ params }) => withApiErrors(resume(params)))
    .handle("answer", ({ params, payload }) => withApiErrors(answer(params, payload)))
    .handle("models", ({ params }) =>
      withApiErrors(
        models(params).pipe(
          Effect.catchTags({
            DaemonUnreachable: unreachable,
            SandboxError: unreachable,
            NoConversation: () => Effect.fail(takesNoMessages()),
          }),
        ),
      ),
    ),
);

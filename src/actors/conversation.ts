/**
 * Makes happen what the conversation machine decides: messages, interrupts and answers go to the daemon of the session's
 * sandbox. The actor's id is the session's. Reports of the runtime come back through actors/conversations/follower.ts.
 *
 *  A message of another person than the session's suspends that one's own credentials again when it goes out: she may have given them
 *  back while it waited (domain/connector/own-credential.ts O1).
 *
 *  A call is repeated until the daemon answers or the sandbox has ended. Each may be repeated: the runtime has a message
 *  once, an interrupt names its turn, and a request is answered once.
 */
import * as Effect from "effect/Effect";
import type { AttachmentHead } from "../domain/conversation/attachment.ts";
import { attachmentIds, contentText } from "../domain/conversation/conversation.ts";
import { isClosed } from "../domain/conversation/growing.ts";
import type { SandboxStatus } from "../domain/session/session.ts";
import type { MessageHandedOver, OutgoingMessage } from "../domain/conversation/steering.ts";
import { conversation, type ConversationCommand } from "../machines/conversation.ts";
import type { ConversationEvent } from "../machines/conversation-events.ts";
import { DaemonClient, DaemonUnreachable, type NoConversation } from "../sandbox/daemon.ts";
import { SandboxProvider, type DaemonLink, type SandboxError } from "../sandbox/port.ts";
import { withLink } from "../services/answered.ts";
import { makeSteered } from "../services/connectors/own-credentials.ts";
import { serviceContext } from "../services/sessions/service-context.ts";
import { Conversations, type Item } from "../store/ports/sessions/conversations.ts";
import type { StoreError } from "../store/ports/journal.ts";
import { Sessions } from "../store/ports/sessions/sessions.ts";
import { Sandboxes } from "../store/ports/sessions/sandboxes.ts";
import { actorLayer, type EntityOptions } from "./cluster.ts";
import { startActor, type ActorLimits, type Handlers } from "./host.ts";
import { backoff } from "../ground/backoff.ts";

export const CONVERSATION_LIMITS: ActorLimits = { mailbox: 64, restarts: { restarts: 5, withinMs: 30_000 } };

/** The conversation entities. The first reader or writer of a conversation opens its row. */
export const conversationActors = (options: EntityOptions) =>
  actorLayer(
    "conversation",
    Effect.fnUntraced(function* (id: string) {
      const { memory } = yield* Conversations;
      const handlers = yield* makeHandlers(id);
      return yield* startActor({ id, machine: conversation, memory, handlers, ...CONVERSATION_LIMITS });
    }),
    { ...options, again: null },
  );

const LIVE: ReadonlySet<SandboxStatus> = new Set(["provisioning", "active"]);
/** A message that waits for a setup command (docs/use/setup.md) must not wait much longer. */
const AGAIN = backoff("250 millis", "2 seconds");

const NOT_SUPPORTED = {
  code: "not_supported",
  message: "This session's agent runtime takes no messages.",
};
const crashFailure = (reason: string) => ({
  code: "internal_error",
  message: `The service could not send the message: ${reason}`,
});

/** Attachments are kept as long as their message. */
const INCOMPLETE = {
  code: "attachment_gone",
  message: "A file of this message is not kept any more. Attach it again, and send a new message.",
};
/** The daemon asks for attachments that it got just now. */
const ASKS_AGAIN = new DaemonUnreachable({ message: "the daemon asked for the same attachments again" });

const outgoing = (item: Item, attachments: readonly AttachmentHead[]): OutgoingMessage => ({
  id: item.id,
  sent_at: item.sentAt ?? item.createdAt,
  text: contentText(item.content),
  ...(attachments.length > 0 && { attachments }),
  model: item.model,
  agent: item.agent,
  ...(item.effort !== undefined && { effort: item.effort }),
});

type Settled = Exclude<MessageHandedOver, { readonly outcome: "incomplete" }>;

/** Hands a message over, together with the attachments that the daemon has not got. */
const handing = (
  {
    conversations,
    daemon,
  }: { readonly conversations: Conversations["Service"]; readonly daemon: DaemonClient["Service"] },
  sessionId: string,
  message: OutgoingMessage,
) =>
  Effect.fnUntraced(function* (link: DaemonLink, context: string) {
    const answer = yield* daemon.hand(link, context, message);
    if (answer.outcome !== "incomplete") return answer;
    for (const id of answer.attachments) {
      const attachment = yield* conversations.attachment(sessionId, id);
      if (attachment === null) return { outcome: "refused", error: INCOMPLETE } satisfies Settled;
      yield* daemon.attach(link, context, { id, content: attachment.content });
    }
    const again = yield* daemon.hand(link, context, message);
    return again.outcome === "incomplete" ? yield* ASKS_AGAIN : again;
  });

/** @returns a function that notes who steers the session with a message (own-credential.ts O1). */
const makeSteering = Effect.fnUntraced(function* (sessionId: string) {
  const sessions = yield* Sessions;
  const notifySteered = yield* makeSteered;
  return Effect.fnUntraced(function* ({ author }: Item) {
    if (author?.kind !== "user" || author.userId === null) return;
    const session = yield* sessions.get(sessionId);
    if (session !== null) yield* notifySteered(session, { id: author.userId, name: author.name }, "message");
  });
});

/** Its sandbox is asked again until it has given the subscription up. */
const STAYS = new DaemonUnreachable({ message: "the own subscription may still be in the sandbox" });

type SendMessage = Extract<ConversationCommand, { type: "sendMessage" }>;

const toEvent = ({ messageId, sandboxId }: SendMessage, answer: Settled | null): ConversationEvent => {
  const about = { messageId, sandboxId };
  switch (answer?.outcome) {
    case undefined:
      return { type: "message.refused", ...about, error: NOT_SUPPORTED };
    case "accepted":
      return { type: "message.accepted", ...about, turn: answer.turn };
    case "busy":
      return { type: "message.deferred", ...about, turn: answer.turn };
    case "refused":
      return { type: "message.refused", ...about, error: answer.error };
  }
};

type Call<A> = (
  link: DaemonLink,
  context: string,
) => Effect.Effect<A, DaemonUnreachable | NoConversation | SandboxError | StoreError>;

/** @returns a function that calls the daemon of a sandbox of this session. */
const makeCaller = Effect.fnUntraced(function* (sessionId: string) {
  const sandboxes = yield* Sandboxes;
  const provider = yield* SandboxProvider;
  const sign = yield* serviceContext;
  /** The answer; null if the sandbox has ended, or has no conversation. */
  return <A>(sandboxId: string, call: Call<A>): Effect.Effect<A | null | "ended", StoreError> => {
    const once = Effect.gen(function* () {
      const sandbox = yield* sandboxes.get(sandboxId);
      if (sandbox === null || !LIVE.has(sandbox.status)) return "ended" as const;
      const link = yield* withLink(provider, sandboxId);
      return yield* call(link, yield* sign(sandboxId, sessionId));
    });
    return once.pipe(
      Effect.catchTag("NoConversation", () => Effect.succeed(null)),
      Effect.tapErrorTag("DaemonUnreachable", ({ message }) =>
        Effect.logDebug("a sandbox did not take what a person said; trying again", {
          sandbox: sandboxId,
          message,
        }),
      ),
      Effect.retry({
        while: (error) => error._tag === "DaemonUnreachable" || error._tag === "SandboxError",
        schedule: AGAIN,
      }),
      // The schedule is endless, so the retry never ends with these two.
      Effect.catchTags({ DaemonUnreachable: Effect.die, SandboxError: Effect.die }),
    );
  };
});

const makeHandlers = Effect.fnUntraced(function* (id: string) {
  const conversations = yield* Conversations;
  const daemon = yield* DaemonClient;
  const call = yield* makeCaller(id);
  const steers = yield* makeSteering(id);
  const handlers: Handlers<ConversationEvent, ConversationCommand> = {
    sendMessage: {
      // A message goes out after the former one was accepted, or its sandbox has ended
      // (machines/conversation.ts M2, M3).
      supersedes: ["sendMessage"],
      perform: (command) =>
        Effect.gen(function* () {
          const item = yield* conversations.item(id, command.messageId);
          if (item === null || (isClosed(item.status) && item.status !== "accepted"))
            return toEvent(command, {
              outcome: "refused",
              error: crashFailure("it is not in the conversation"),
            });
          // The agent of a former sandbox had it, and its answer was lost with that sandbox. No turn runs again by itself.
          if (item.status === "accepted" && item.sandboxId !== null && item.sandboxId !== command.sandboxId)
            return toEvent(command, { outcome: "accepted", turn: 0 });
          const ids = attachmentIds(item.content);
          const attachments = yield* conversations.attachmentHeads(id, ids);
          if (attachments.length < new Set(ids).size)
            return toEvent(command, { outcome: "refused", error: INCOMPLETE });
          const hand = handing({ conversations, daemon }, id, outgoing(item, attachments));
          const answer = yield* call(command.sandboxId, (link, context) =>
            steers(item).pipe(
              Effect.catchTag("SubscriptionStays", () => Effect.fail(STAYS)),
              Effect.andThen(hand(link, context)),
            ),
          );
          // The machine hears of the sandbox's end by itself.
          return answer === "ended" ? undefined : toEvent(command, answer);
        }),
      gaveUp: (command, reason) => toEvent(command, { outcome: "refused", error: crashFailure(reason) }),
    },
    interruptTurn: {
      supersedes: ["interruptTurn"],
      perform: ({ sandboxId, turn }) =>
        Effect.as(
          call(sandboxId, (link, context) => daemon.interrupt(link, context, { turn })),
          undefined,
        ),
    },
    answerRequest: {
      perform: ({ sandboxId, requestId, answer }) =>
        Effect.gen(function* () {
          const item = yield* conversations.item(id, requestId);
          const native = item?.nativeId ?? null;
          if (native === null) return undefined;
          yield* call(sandboxId, (link, context) =>
            daemon.answer(link, context, { request_id: native, answer }),
          );
          return undefined;
        }),
    },
  };
  return handlers;
});

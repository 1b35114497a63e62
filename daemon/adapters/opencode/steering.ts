/** Steers opencode's agent session: prompts, messages, interrupts, answers. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type * as Latch from "effect/Latch";
import * as Schema from "effect/Schema";
import * as Semaphore from "effect/Semaphore";
import type { ItemError } from "../../../src/domain/conversation/conversation.ts";
import type {
  OfferedModel,
  OutgoingMessage,
  RequestAnswer,
  RuntimeOffers,
} from "../../../src/domain/conversation/steering.ts";
import { OWN_EFFORT } from "../../../src/domain/sandbox/agent.ts";
import { HttpFailure } from "../../http/client.ts";
import {
  CALL_TIMEOUT_MS,
  NOT_ALLOWED,
  unknownEffort,
  type AdapterSteering,
  type AgentSession,
  type Handover,
  type RuntimeAdapter,
  type Sight,
  NO_LAST,
} from "../adapter.ts";
import { commandIn, toCommands } from "../commands.ts";
import { openSession, type OpencodeApi } from "./api.ts";
import type { OpencodeConversation } from "./conversation.ts";
import { isAbort, turnError, type RuntimeError } from "../turn-errors.ts";
import { fileParts } from "./files.ts";
import { isRestored } from "./ids.ts";
import { NOTE } from "./items.ts";
import { readAtRest, readRequests } from "./listing.ts";
import { handAgain, handOver, lastChoice, nativeMessageId, promptBody, type Prompt } from "./messages.ts";
import { restoreHistory } from "./restore.ts";

const Agents = Schema.Array(
  Schema.Struct({
    name: Schema.String,
    mode: Schema.optionalKey(Schema.String),
    hidden: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
    description: Schema.optionalKey(Schema.NullOr(Schema.String)),
  }),
);
const Model = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  limit: Schema.optionalKey(Schema.Struct({ context: Schema.optionalKey(Schema.Finite) })),
  variants: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown))),
  capabilities: Schema.optionalKey(
    Schema.Struct({
      toolcall: Schema.optionalKey(Schema.Boolean),
      output: Schema.optionalKey(Schema.Struct({ text: Schema.optionalKey(Schema.Boolean) })),
    }),
  ),
});
const Providers = Schema.Struct({
  providers: Schema.Array(Schema.Struct({ id: Schema.String, models: Schema.Record(Schema.String, Model) })),
});
const Commands = Schema.Array(
  Schema.Struct({
    name: Schema.String,
    description: Schema.optionalKey(Schema.NullOr(Schema.String)),
  }),
);
const Config = Schema.Struct({ model: Schema.optionalKey(Schema.String) });
const Records = Schema.Array(Schema.Unknown);
const Heads = Schema.Array(Schema.Struct({ info: Schema.Struct({ id: Schema.String }) }));
const Question = Schema.Struct({ id: Schema.String, questions: Records });
const decodeQuestion = Schema.decodeUnknownOption(Question);

/** spec.md 2.4: the agent that needs no file of its own. */
const DEFAULT_AGENT = "default";
/** opencode's own default. */
const OWN_AGENT = "build";
/** How long a message waits for the listener. After that it is sent anyway. */
const FOLLOWED_WITHIN = "10 seconds";

/** The answers to an agent that asks where no person answers. */
const DECIDE = {
  unattended: "No person can answer. Decide yourself, continue, and state your assumptions in your answer.",
  expired:
    "No person answered in time. Decide yourself, continue, and state your assumptions in your answer.",
} as const;

const WORKS = new HttpFailure({ status: null, message: "the agent runtime works on something else" });

/** @param id `provider/model` */
const knownModel = (
  id: string,
  own: string,
  { name = own, limit, variants, capabilities: can }: typeof Model.Type,
) => ({
  id,
  name,
  /** opencode has 0 where it does not know. */
  size: limit?.context ?? 0,
  efforts: Object.keys(variants ?? {}),
  ...(can?.output?.text !== undefined && { writes_text: can.output.text }),
  ...(can?.toolcall !== undefined && { calls_tools: can.toolcall }),
});

const toOfferedModel = ({ efforts, size, ...model }: ReturnType<typeof knownModel>): OfferedModel => ({
  ...model,
  ...(efforts.length > 0 && { efforts: [OWN_EFFORT, ...efforts] }),
  ...(size > 0 && { context: size }),
});

type Body = readonly [path: string, body: object];

/** The answer to a request that no person answers. `count`: how many questions a question has. Null means a permission. */
const declining = (id: string, count: number | null, why: keyof typeof DECIDE): Body =>
  count === null
    ? // A refusal without a message would end the turn.
      [`/permission/${id}/reply`, { reply: "reject", message: NOT_ALLOWED[why] }]
    : [`/question/${id}/reply`, { answers: Array.from({ length: count }, () => [DECIDE[why]]) }];

export interface OpencodeSteeringParts {
  readonly api: OpencodeApi;
  readonly conversation: OpencodeConversation;
  /** Open while events are received. */
  readonly followed: Latch.Latch;
}

export class OpencodeSteering implements AdapterSteering {
  readonly #api: OpencodeApi;
  readonly #conversation: OpencodeConversation;
  readonly #followed: Latch.Latch;
  /** Two calls at once would make two agent sessions. */
  readonly #opening = Semaphore.makeUnsafe(1);
  /** The agent session that got the last message. */
  #session: string | null = null;
  /** opencode's ids of what it got from here, by ours. */
  readonly #natives = new Map<string, string>();
  /** The last message, and its agent session. */
  #last: { readonly session: string; readonly prompt: Prompt } | null = null;
  /** When the prompt was sent first. */
  #promptMs: number | null = null;
  /** When the briefing was sent first. */
  #briefedMs: number | null = null;
  /** The last error since the last message, by agent session. */
  readonly #faults = new Map<string, ItemError>();
  /** Agent sessions whose turn a person ends. */
  readonly #stopped = new Set<string>();

  constructor({ api, conversation, followed }: OpencodeSteeringParts) {
    this.#api = api;
    this.#conversation = conversation;
    this.#followed = followed;
  }

  /** opencode has told an error of a session. */
  noteError(session: string, error: RuntimeError): void {
    if (!isAbort(error)) this.#faults.set(session, turnError(error));
  }

  noteStopped(session: string): void {
    this.#stopped.add(session);
  }

  /** Whether a person has ended the turn that ends now. */
  wasStopped(session: string): boolean {
    return this.#stopped.delete(session);
  }

  /**
   * Hands the prompt over as a message. If the agent session already has a message that was not sent from here, it got the
   * prompt in a former life of the daemon (api.md 7).
   */
  readonly deliver: RuntimeAdapter["deliverPrompt"] = (prompt) =>
    Effect.gen({ self: this }, function* () {
      const agent = yield* this.#agentOf(prompt);
      if (agent === null && prompt.agentName !== DEFAULT_AGENT)
        return { refused: `the agent runtime has no agent "${prompt.agentName}"` };
      const session = yield* this.#open(prompt);
      if (this.#promptMs === null && (yield* this.#isTouched(session))) return "accepted" as const;
      // A turn may fail within a millisecond, so listening for its events starts first.
      yield* Effect.timeoutOption(this.#followed.await, FOLLOWED_WITHIN);
      this.#promptMs ??= yield* Clock.currentTimeMillis;
      const { sessionId: id, text, model } = prompt;
      const effort = yield* this.#beginning(prompt);
      const command = yield* this.#commandOf(text);
      const outgoing = { id, sentMs: this.#promptMs, text, more: [], agent, model, effort, ...command };
      this.#handing(session, outgoing);
      const handover = yield* handOver(this.#handingTo(session), outgoing);
      if (handover.outcome === "busy") return yield* WORKS;
      // A turn that the runtime could not begin has told its error.
      const isRefused = handover.outcome === "refused" && !this.#faults.has(session);
      return isRefused ? { refused: handover.error.message } : ("accepted" as const);
    });

  readonly restore: NonNullable<RuntimeAdapter["restore"]> = (session, history) => {
    const unknown = { agent: OWN_AGENT, model: session.model };
    const choice = Effect.gen({ self: this }, function* () {
      const agent = yield* this.#agentOf(session);
      const model = session.model ?? (yield* this.#configured);
      return { agent: agent ?? OWN_AGENT, model };
    }).pipe(
      Effect.orElseSucceed(() => unknown),
      Effect.timeoutOrElse({ duration: CALL_TIMEOUT_MS, orElse: () => Effect.succeed(unknown) }),
    );
    return Effect.flatMap(choice, (modelAndAgent) =>
      restoreHistory(this.#api, { title: session.sessionId, history, ...modelAndAgent }),
    );
  };

  /**
   * Gives the agent a message without a turn, unless its session already has one. A call whose answer comes too late is
   * repeated, and opencode still has the message once (S1 of `messages.ts`).
   */
  readonly tell: RuntimeAdapter["tell"] = (briefing) =>
    Effect.gen({ self: this }, function* () {
      const session = yield* this.#open(briefing);
      if (yield* this.#isTouched(session)) return;
      const agent = yield* this.#agentOf(briefing);
      const { sessionId, model, text, note, effort = null } = briefing;
      this.#briefedMs ??= yield* Clock.currentTimeMillis;
      const prompt = { id: `${sessionId}/briefing`, sentMs: this.#briefedMs, text: "", agent, model, effort };
      // Synthetic text goes to the model, and is no message of a person.
      const more = [{ type: "text", text, synthetic: true, metadata: { [NOTE]: note } }] as const;
      yield* this.#api.post(`/session/${session}/message`, {
        noReply: true,
        ...promptBody({ ...prompt, more }),
      });
    });

  readonly hand: AdapterSteering["hand"] = (target, message, files) =>
    Effect.gen({ self: this }, function* () {
      const error = yield* this.#faultOf(message);
      if (error !== null) return { outcome: "refused", error } satisfies Handover;
      const session = yield* this.#open(target);
      const handing = this.#handingTo(session);
      // opencode would go on with its default agent, or with the model of that agent.
      const last = yield* lastChoice(handing);
      const agent = message.agent ?? last?.agent ?? (yield* this.#agentOf(target));
      const model =
        message.model ?? last?.model ?? target.model ?? (last === null ? null : yield* this.#configured);
      yield* Effect.timeoutOption(this.#followed.await, FOLLOWED_WITHIN);
      const { id, sent_at: sentMs, text, effort: wish } = message;
      const before = last === null ? yield* this.#beginning({ ...target, model }) : last.effort;
      const effort = wish === undefined ? before : wish === OWN_EFFORT ? null : wish;
      const usedModel = model ?? (yield* this.#configured);
      const efforts = effort === null ? [] : yield* this.#effortsOf(usedModel);
      const isTaken = effort !== null && efforts.includes(effort);
      if (wish !== undefined && effort !== null && !isTaken)
        return { outcome: "refused", error: unknownEffort(effort, usedModel, efforts) } satisfies Handover;
      const more = yield* fileParts(files);
      const command = yield* this.#commandOf(text);
      const prompt = { id, sentMs, text, more, agent, model, effort: isTaken ? effort : null, ...command };
      this.#handing(session, prompt);
      return yield* handOver(handing, prompt);
    });

  readonly again: AdapterSteering["again"] = (_, { model, mode, effort: wish }) =>
    Effect.gen({ self: this }, function* () {
      if (this.#last === null) return { outcome: "refused", error: NO_LAST } satisfies Handover;
      const { session, prompt } = this.#last;
      const effort = wish ?? prompt.effort;
      const isTaken = effort !== null && (yield* this.#effortsOf(model)).includes(effort);
      const newPrompt = { ...prompt, model, agent: mode ?? prompt.agent, effort: isTaken ? effort : null };
      this.#handing(session, newPrompt);
      return yield* handAgain(this.#handingTo(session), newPrompt);
    });

  readonly look: AdapterSteering["look"] = (sessionId, messageId) =>
    Effect.gen({ self: this }, function* (): Effect.fn.Return<Sight, HttpFailure> {
      const session = this.#session ?? this.#conversation.root ?? (yield* this.#open({ sessionId }));
      if ((yield* this.#api.busySessions).includes(session)) return { isBusy: true };
      const messages = yield* Effect.catch(
        readAtRest(this.#api, this.#conversation, { id: session, title: sessionId }),
        (failure) => (failure.status === 404 ? Effect.succeed("gone" as const) : Effect.fail(failure)),
      );
      if (messages === "busy") return { isBusy: true };
      if (messages === "gone") {
        // Somebody has deleted the agent session. The next message gets a new one.
        this.#session = null;
        return { isBusy: false, hasBegun: true };
      }
      const native = this.#natives.get(messageId ?? "");
      // A prompt that a former daemon has handed over.
      if (native === undefined) return { isBusy: false, hasBegun: true };
      const isAnswered = messages.some(({ info }) => info.role === "assistant" && info.parentID === native);
      return { isBusy: false, hasBegun: isAnswered || this.#faults.has(session) };
    });

  readonly interrupt = (sessionId: string): Effect.Effect<void, HttpFailure> =>
    Effect.gen({ self: this }, function* () {
      const session = this.#session ?? this.#conversation.root ?? (yield* this.#open({ sessionId }));
      this.noteStopped(session);
      yield* this.#api.post(`/session/${session}/abort`);
    });

  readonly answer = (requestId: string, answer: RequestAnswer): Effect.Effect<boolean, HttpFailure> =>
    Effect.gen({ self: this }, function* () {
      if (this.#conversation.over.has(requestId)) return false;
      const id = encodeURIComponent(requestId);
      if ("answers" in answer) {
        const { answers } = answer;
        const text = answers.map((choices) => choices.join(", ")).join("\n");
        return yield* this.#answer(requestId, text, [`/question/${id}/reply`, { answers }]);
      }
      if ("choice" in answer) {
        const { choice: reply, message } = answer;
        const body = { reply, ...(message !== null && { message }) };
        return yield* this.#answer(requestId, reply, [`/permission/${id}/reply`, body]);
      }
      // The runtime itself proposes no plan.
      if ("approve" in answer || answer.declined === "message") return false;
      if (!requestId.startsWith("que_"))
        return yield* this.#answer(requestId, "reject", declining(id, null, answer.declined));
      const open = (yield* readRequests(this.#api, "question")) ?? [];
      const questions = open.flatMap((one) => {
        const question = decodeQuestion(one);
        return question._tag === "Some" && question.value.id === requestId ? [question.value] : [];
      })[0];
      if (questions === undefined) return false;
      const body = declining(id, questions.questions.length, answer.declined);
      return yield* this.#answer(requestId, DECIDE[answer.declined], body);
    });

  readonly offers = (target: AgentSession): Effect.Effect<RuntimeOffers, HttpFailure> =>
    Effect.gen({ self: this }, function* () {
      const session = yield* this.#open(target);
      const last = yield* lastChoice({ calls: this.#api, session, fault: () => null });
      const usedModel = last === null ? target.model : last.model;
      const effort = last === null ? (target.effort ?? null) : last.effort;
      const agents = (yield* this.#agents).map(({ name, description = null }) => ({ name, description }));
      return {
        models: (yield* this.#models).map(toOfferedModel),
        agents,
        default_model: usedModel ?? (yield* this.#configured),
        ...(effort !== null && { default_effort: effort }),
        commands: toCommands(yield* this.#commands),
      };
    });

  readonly modes = (): readonly string[] => [];

  /** Null if opencode has no agent of that name. */
  #agentOf({ agentName }: Pick<AgentSession, "agentName">): Effect.Effect<string | null, HttpFailure> {
    return Effect.map(
      this.#api.get("/agent", Agents),
      (agents) => agents.find(({ name }) => name === agentName)?.name ?? null,
    );
  }

  /** Agents that a person may choose. */
  get #agents() {
    return Effect.map(this.#api.get("/agent", Agents), (agents) =>
      agents.filter(({ mode, hidden }) => mode !== "subagent" && hidden !== true),
    );
  }

  /** Prompts and skills that the repository or a server of tools has are among them. */
  get #commands() {
    return this.#api.get("/command", Commands);
  }

  /** The command that a message begins with, if opencode has it. */
  #commandOf(text: string): Effect.Effect<Pick<Prompt, "command">, HttpFailure> {
    const command = commandIn(text);
    if (command === null) return Effect.succeed({});
    return Effect.map(this.#commands, (commands) =>
      commands.some(({ name }) => name === command.name) ? { command } : {},
    );
  }

  get #configured() {
    return Effect.map(this.#api.get("/config", Config), ({ model = null }) => model);
  }

  /** @returns how many tokens the context of each model can hold, by `provider/model`. opencode has 0 where it does not know. */
  get contextSizes(): Effect.Effect<ReadonlyMap<string, number>, HttpFailure> {
    return Effect.map(
      this.#models,
      (models) => new Map(models.flatMap(({ id, size }) => (size > 0 ? [[id, size] as const] : []))),
    );
  }

  get #models() {
    return Effect.map(this.#api.get("/config/providers", Providers), ({ providers }) =>
      providers.flatMap(({ id: provider, models }) =>
        Object.entries(models).map(([id, model]) => knownModel(`${provider}/${id}`, id, model)),
      ),
    );
  }

  /** @param model null: not known */
  #effortsOf(model: string | null): Effect.Effect<readonly string[], HttpFailure> {
    return Effect.map(this.#models, (models) => models.find(({ id }) => id === model)?.efforts ?? []);
  }

  /** The session's effort, for its first message. People are told if its model does not take it. */
  #beginning({
    effort,
    model,
  }: Pick<AgentSession, "effort" | "model">): Effect.Effect<string | null, HttpFailure> {
    return Effect.gen({ self: this }, function* () {
      if (effort === undefined || effort === OWN_EFFORT) return null;
      const usedModel = model ?? (yield* this.#configured);
      const efforts = yield* this.#effortsOf(usedModel);
      if (efforts.includes(effort)) return effort;
      this.#conversation.note("effort", unknownEffort(effort, usedModel, efforts).message);
      return null;
    });
  }

  /** What opencode may keep silent about: an agent or a model that it does not have. */
  #faultOf({ agent, model }: OutgoingMessage): Effect.Effect<ItemError | null, HttpFailure> {
    return Effect.gen({ self: this }, function* () {
      if (agent !== null) {
        const names = (yield* this.#agents).map(({ name }) => name);
        if (!names.includes(agent))
          return {
            code: "unknown_agent",
            message: `There is no agent "${agent}" in this session. Choose one of: ${names.join(", ")}.`,
          };
      }
      if (model === null || (yield* this.#models).some(({ id }) => id === model)) return null;
      return {
        code: "unknown_model",
        message:
          `There is no model "${model}" in this session. Choose another one, ` +
          "or add its provider to the repository's opencode.json.",
      };
    });
  }

  #open({ sessionId }: Pick<AgentSession, "sessionId">): Effect.Effect<string, HttpFailure> {
    return this.#opening.withPermit(
      Effect.map(openSession(this.#api, sessionId), ({ id }) => {
        this.#session = id;
        return id;
      }),
    );
  }

  /** Whether it has a message beside those of former sandboxes. */
  #isTouched(session: string): Effect.Effect<boolean, HttpFailure> {
    return Effect.map(this.#api.get(`/session/${session}/message?limit=1`, Heads), (newest) =>
      newest.some(({ info }) => !isRestored(info.id)),
    );
  }

  #handingTo(session: string) {
    return { calls: this.#api, session, fault: () => this.#faults.get(session) ?? null };
  }

  /** The session gets a message now. */
  #handing(session: string, prompt: Prompt): void {
    const { id, text, command } = prompt;
    const native = nativeMessageId(prompt);
    this.#last = { session, prompt };
    this.#faults.delete(session);
    this.#stopped.delete(session);
    this.#natives.set(id, native);
    this.#conversation.handedOver(native, id, command === undefined ? null : text);
  }

  /** @param text the answer as the conversation shows it */
  #answer(requestId: string, text: string, body: Body): Effect.Effect<boolean, HttpFailure> {
    const { given } = this.#conversation;
    given.set(requestId, text);
    return Effect.tap(this.#reply(body), (isTaken) =>
      Effect.sync(() => (isTaken ? undefined : given.delete(requestId))),
    );
  }

  /** False: opencode has no such request, or not of this kind. */
  #reply([path, body]: Body): Effect.Effect<boolean, HttpFailure> {
    return Effect.catch(Effect.as(this.#api.post(path, body), true), (failure) =>
      failure.status === 404 || failure.status === 400 ? Effect.succeed(false) : Effect.fail(failure),
    );
  }
}

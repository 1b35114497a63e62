/**
 * Any agent that speaks the Agent Client Protocol over its standard input and output, e.g. `opencode acp`.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { BoundedMap } from "../../../src/ground/bounded-map.ts";
import type { ItemError } from "../../../src/domain/conversation/conversation.ts";
import type { OutgoingMessage, RuntimeOffers } from "../../../src/domain/conversation/steering.ts";
import { OWN_EFFORT } from "../../../src/domain/sandbox/agent.ts";
import { modelId } from "../../../src/domain/sandbox/model.ts";
import type { AttachedFile } from "../../agent/attachments.ts";
import type { HttpFailure } from "../../http/client.ts";
import { AcpAgent, type AcpAgentOptions, type OpenSession } from "./agent.ts";
import type { ChoiceWish } from "./choices.ts";
import { promptBlocks, shownContent } from "./prompt.ts";
import {
  unknownEffort,
  type AdapterSteering,
  type AgentSession,
  type Briefing,
  type Handover,
  type RuntimeAdapter,
  NO_LAST,
} from "../adapter.ts";
import { opencodeDefaults, opencodeSettings } from "../opencode/opencode.ts";

/** How long a message waits until the agent is followed. After that it is sent anyway. */
const FOLLOWED_WITHIN = "10 seconds";
/** How many messages are remembered as handed over. The service repeats only its newest one. */
const TAKEN_KEPT = 256;
/** spec.md 2.4: the agent that needs no choice. */
const DEFAULT_AGENT = "default";

export const acpAdapter = (options: AcpAgentOptions): RuntimeAdapter => {
  const agent = new AcpAgent(options);
  const steering = new AcpSteering(agent);
  return {
    steering,
    // opencode reads its settings here in both of its modes. Other agents do not look at them.
    ...opencodeSettings,
    // Every agent gets the instructions with its first message.
    defaults: (models) => opencodeDefaults({ ...models, instructions: null }),
    ahead: null,
    talk: (pipes) => agent.connect(pipes),
    lost: agent.lost,
    hasHttp: false,
    probe: agent.probe,
    open: agent.open,
    deliverPrompt: steering.deliver,
    restore: options.keepsRecord === true ? () => Effect.sync(() => agent.recalled) : null,
    record:
      options.keepsRecord === true
        ? { present: () => agent.recorded, recall: (one) => agent.recall(one) }
        : null,
    tell: steering.tell,
    follow: (_, observers) => agent.follow(observers),
    isBusy: Effect.sync(() => agent.isBusy),
    abort: agent.stop,
  };
};

/** People name a model of an account's provider as `provider/model`. A runtime that is pointed to the provider knows the model alone. */
const ownName = (model: string, table: AgentSession["table"] | undefined): string =>
  model.startsWith(`${table?.provider ?? ""}/`) ? modelId(model) : model;

type Texts = Pick<OutgoingMessage, "id" | "text">;

class AcpSteering implements AdapterSteering {
  readonly #agent: AcpAgent;
  /** The last message, with what the agent got before its text. */
  #last: (Texts & { readonly files: readonly AttachedFile[]; before: readonly string[] | null }) | null =
    null;
  /** Our ids of messages that the agent has got. */
  readonly #taken = new BoundedMap<string, true>(TAKEN_KEPT);
  /** What the last message chose. */
  #chosen: ChoiceWish = { model: null, agent: null, effort: null };
  /** The model does not have the session's effort. */
  #hasNoEffort = false;
  /** Whether the agent has itself left the mode that plans, because its plan was approved. */
  #hasLeftPlan = false;
  /** What the agent hears with its next message. */
  #briefing: string | null = null;

  constructor(agent: AcpAgent) {
    this.#agent = agent;
  }

  readonly deliver: RuntimeAdapter["deliverPrompt"] = ({ text, ...wanted }) =>
    Effect.gen({ self: this }, function* () {
      const { sessionId: id, agentName } = wanted;
      if (this.#taken.has(id)) return "accepted" as const;
      const session = yield* this.#agent.session;
      const isNeeded = agentName !== DEFAULT_AGENT && wanted.table?.isOptional !== true;
      if (isNeeded && !session.choices.has("mode", agentName))
        return { refused: `the agent runtime has no agent "${agentName}"` };
      yield* this.#followed;
      const message = { id, text, model: null, agent: null };
      const handover = yield* this.#hand(session, message, { wanted, files: [] });
      if (handover.outcome !== "refused") return "accepted" as const;
      this.#taken.set(id, true);
      const item = { messageId: id, content: shownContent(text, []), model: null };
      this.#agent.fail(item, handover.error);
      return "accepted" as const;
    });

  /** The protocol has no message without a turn. So the agent hears it with the next message. */
  readonly tell: RuntimeAdapter["tell"] = ({ text, note, agentName, model, table, effort }: Briefing) =>
    Effect.gen({ self: this }, function* () {
      const { choices } = yield* this.#agent.session;
      yield* this.#followed;
      if (this.#briefing !== null || this.#taken.size > 0) return;
      this.#briefing = text;
      this.#chosen = {
        model: model === null ? null : ownName(model, table),
        agent: choices.has("mode", agentName) ? agentName : null,
        effort: effort ?? null,
      };
      this.#agent.conversation.note(note);
    });

  readonly hand: AdapterSteering["hand"] = (target, message, files) =>
    Effect.gen({ self: this }, function* () {
      if (this.#taken.has(message.id)) return { outcome: "accepted" } satisfies Handover;
      if (this.#agent.isBusy) return { outcome: "busy" } satisfies Handover;
      const session = yield* this.#agent.session;
      yield* this.#followed;
      return yield* this.#hand(session, message, { wanted: target, files });
    });

  readonly again: AdapterSteering["again"] = (target, { model, mode, effort }) =>
    Effect.gen({ self: this }, function* () {
      const session = yield* this.#agent.session;
      yield* this.#followed;
      if (this.#last === null) return { outcome: "refused", error: NO_LAST } satisfies Handover;
      const { id, text, files } = this.#last;
      if (effort !== undefined) this.#chosen = { ...this.#chosen, effort };
      return yield* this.#hand(
        session,
        { id, text, model, agent: mode },
        { wanted: target, files, isAgain: true },
      );
    });

  readonly look: AdapterSteering["look"] = (_, messageId) =>
    // Without its process, an agent neither works nor rests.
    Effect.map(this.#agent.session, () =>
      this.#agent.isBusy
        ? { isBusy: true }
        : { isBusy: false, hasBegun: messageId === null || this.#taken.has(messageId) },
    );

  readonly interrupt = (): Effect.Effect<void, HttpFailure> => Effect.asVoid(this.#agent.stop);

  readonly answer: AdapterSteering["answer"] = (requestId, answer) =>
    Effect.sync(() => {
      const isAnswered = this.#agent.answer(requestId, answer);
      if (isAnswered && "approve" in answer) {
        this.#hasLeftPlan = true;
        this.#chosen = { ...this.#chosen, agent: null };
      }
      return isAnswered;
    });

  readonly modes = (): readonly string[] => this.#agent.modes;

  readonly offers = (session: AgentSession): Effect.Effect<RuntimeOffers, HttpFailure> =>
    Effect.map(this.#agent.session, ({ choices }) => choices.offers(this.#wanted(session).model));

  #hand(
    session: OpenSession,
    message: Pick<OutgoingMessage, "id" | "text" | "model" | "agent" | "effort">,
    {
      wanted,
      files,
      isAgain = false,
    }: { readonly wanted: AgentSession; readonly files: readonly AttachedFile[]; readonly isAgain?: boolean },
  ): Effect.Effect<Handover, HttpFailure> {
    return Effect.gen({ self: this }, function* () {
      const { id, text } = message;
      const last = isAgain && this.#last !== null ? this.#last : { id, text, files, before: null };
      this.#last = last;
      const before = this.#wanted(wanted, session);
      const model = message.model === null ? before.model : ownName(message.model, wanted.table);
      const choice = {
        model,
        agent: message.agent ?? before.agent,
        effort: message.effort ?? before.effort,
      };
      // The runtime need not list the models of the account's provider. It refuses those that it does not take.
      const isProviders = message.model !== null && model !== message.model;
      const error =
        session.choices.fault({ ...choice, model: isProviders ? null : model }) ??
        (yield* this.#choose(session, choice)) ??
        (yield* this.#chooseEffort(session, choice, message.effort !== undefined));
      if (error !== null) return { outcome: "refused", error } satisfies Handover;
      const untold = [
        this.#instructions(wanted, session),
        this.#briefing,
        this.#agent.untoldRejections,
      ].filter((one) => one !== null);
      // A command is read at the beginning of a message only. The next message brings what the agent has not heard.
      const isAlone = untold.length > 0 && session.choices.isCommand(text);
      last.before ??= isAlone ? [] : untold;
      const blocks = yield* promptBlocks([...last.before, text], files, session.capabilities);
      this.#chosen = choice;
      if (!isAlone) {
        this.#briefing = null;
        this.#agent.rejectionsTold();
      }
      this.#taken.set(id, true);
      const item = { messageId: id, content: shownContent(text, files), model: session.choices.model };
      if (!isAlone) session.isInstructed = true;
      this.#agent.prompt(session, { ...item, isAgain }, blocks);
      return { outcome: "accepted" } satisfies Handover;
    });
  }

  /** What a message without a choice gets. A session's agent that does not exist is no choice. */
  #wanted({ model, agentName, table, effort }: AgentSession, session?: OpenSession): ChoiceWish {
    const isOffered = session?.choices.has("mode", agentName) === true;
    const own = isOffered && !this.#hasLeftPlan ? agentName : null;
    const startModel = model === null ? null : ownName(model, table);
    const ownEffort = this.#hasNoEffort ? null : (effort ?? null);
    return {
      model: this.#chosen.model ?? startModel,
      agent: this.#chosen.agent ?? own,
      effort: this.#chosen.effort ?? ownEffort,
    };
  }

  /** The protocol has no place for them. So the agent gets them with its session's first message, unless it reads them by itself. */
  #instructions({ table, agentName }: AgentSession, session: OpenSession): string | null {
    if (table === undefined || session.isInstructed) return null;
    const readsItself = table.isOptional && table.isOwnFile && session.choices.has("mode", agentName);
    return readsItself ? null : table.instructions();
  }

  #choose(session: OpenSession, choice: ChoiceWish): Effect.Effect<ItemError | null, HttpFailure> {
    return Effect.gen(function* () {
      // An agent may bring its own model, so it comes first.
      return (
        (yield* choose(session, "mode", choice.agent)) ?? (yield* choose(session, "model", choice.model))
      );
    });
  }

  /** The efforts are those of the model that is chosen by now. A model that does not take the one of before decides itself. */
  #chooseEffort(
    session: OpenSession,
    { effort, model }: ChoiceWish,
    isNew: boolean,
  ): Effect.Effect<ItemError | null, HttpFailure> {
    const { choices } = session;
    if (effort === null || choices.has("effort", effort)) return choose(session, "effort", effort);
    const error = unknownEffort(effort, model ?? choices.model, choices.efforts);
    if (isNew) return Effect.succeed(error);
    return Effect.sync(() => {
      if (this.#chosen.effort === null && !this.#hasNoEffort && effort !== OWN_EFFORT)
        this.#agent.conversation.note(error.message);
      this.#hasNoEffort = true;
      return null;
    });
  }

  get #followed(): Effect.Effect<void> {
    return Effect.asVoid(Effect.timeoutOption(this.#agent.whenFollowed, FOLLOWED_WITHIN));
  }
}

const REFUSED = { model: "unknown_model", mode: "unknown_agent", effort: "unknown_effort" } as const;
const decodeOptions = Schema.decodeUnknownOption(
  Schema.Struct({ configOptions: Schema.Array(Schema.Unknown) }),
);

/** Makes the agent's session take one choice. @returns why it does not. Null if it does */
const choose = (
  { wire, id, choices }: OpenSession,
  kind: "model" | "mode" | "effort",
  value: string | null,
): Effect.Effect<ItemError | null, HttpFailure> =>
  Effect.gen(function* () {
    const call = choices.call(id, kind, value);
    if (call === null || value === null) return null;
    const answer = yield* Effect.result(wire.call(call.method, call.params));
    if (Result.isFailure(answer)) {
      if (answer.failure._tag !== "AgentRefusal") return yield* answer.failure;
      const message = `The agent runtime did not accept "${value}": ${answer.failure.message}`;
      return { code: REFUSED[kind], message };
    }
    choices.chosen(kind, value);
    const options = decodeOptions(answer.success);
    if (options._tag === "Some") choices.options(options.value.configOptions);
    return null;
  });

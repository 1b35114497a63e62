/** The models and agents that an agent process offers, and how one of them is chosen. */
import * as Schema from "effect/Schema";
import type { ItemError } from "../../../src/domain/conversation/conversation.ts";
import type { RuntimeOffers } from "../../../src/domain/conversation/steering.ts";
import { modelsInWords } from "../../../src/domain/sandbox/model.ts";
import { commandIn, toCommands } from "../commands.ts";

const optional = Schema.optionalKey;
const Text = optional(Schema.NullOr(Schema.String));
const Option = Schema.Struct({ value: Schema.String, name: Text, description: Text });
const Group = Schema.Struct({ options: Schema.Array(Option) });
const ConfigOption = Schema.Struct({
  id: Schema.String,
  category: Text,
  currentValue: Schema.String,
  options: Schema.Array(Schema.Union([Option, Group])),
});
const decodeConfigOption = Schema.decodeUnknownOption(ConfigOption);

/** What an agent answers when a session begins. Older agents have `modes` and `models` in place of options. */
const Offered = Schema.Struct({
  configOptions: optional(Schema.NullOr(Schema.Array(Schema.Unknown))),
  modes: optional(
    Schema.NullOr(
      Schema.Struct({
        currentModeId: Schema.String,
        availableModes: Schema.Array(Schema.Struct({ id: Schema.String, description: Text })),
      }),
    ),
  ),
  models: optional(
    Schema.NullOr(
      Schema.Struct({
        currentModelId: Schema.String,
        availableModels: Schema.Array(Schema.Struct({ modelId: Schema.String, name: Text })),
      }),
    ),
  ),
});
const decodeOffered = Schema.decodeUnknownOption(Offered);

type Kind = "model" | "mode" | "effort";
/** The protocol's categories of options. An agent without categories names its options so. */
const KINDS: ReadonlyMap<string, Kind> = new Map([
  ["model", "model"],
  ["mode", "mode"],
  ["thought_level", "effort"],
  ["effort", "effort"],
]);

/** One thing that can be chosen. */
interface Choice {
  /** Null if it is not known. */
  readonly current: string | null;
  readonly entries: readonly { readonly id: string; readonly name: string; readonly about: string | null }[];
  /** The call that chooses. */
  readonly call: (sessionId: string, value: string) => { readonly method: string; readonly params: object };
}

/** A model, an agent and an effort. If null, the present one stays. */
export interface ChoiceWish {
  readonly model: string | null;
  readonly agent: string | null;
  readonly effort: string | null;
}

export class AcpChoices {
  readonly #choices = new Map<Kind, Choice>();
  #commands: NonNullable<RuntimeOffers["commands"]> = [];

  /** @param answer the agent's answer to the call that began the session */
  constructor(answer: unknown) {
    const offer = decodeOffered(answer);
    if (offer._tag === "None") return;
    const { configOptions, modes, models } = offer.value;
    if (modes)
      this.#choices.set("mode", {
        current: modes.currentModeId,
        entries: modes.availableModes.map(({ id, description }) => ({
          id,
          name: id,
          about: description ?? null,
        })),
        call: (sessionId, modeId) => ({ method: "session/set_mode", params: { sessionId, modeId } }),
      });
    if (models)
      this.#choices.set("model", {
        current: models.currentModelId,
        entries: models.availableModels.map(({ modelId: id, name }) => ({
          id,
          name: name ?? id,
          about: null,
        })),
        call: (sessionId, modelId) => ({ method: "session/set_model", params: { sessionId, modelId } }),
      });
    if (configOptions) this.options(configOptions);
  }

  /** The agent tells its options again. Which efforts there are depends on its model. */
  options(list: readonly unknown[]): void {
    this.#choices.delete("effort");
    for (const one of list) {
      const option = decodeConfigOption(one);
      if (option._tag === "None") continue;
      const { id: configId, category, currentValue: current, options } = option.value;
      const kind = KINDS.get(category ?? configId);
      if (kind === undefined) continue;
      this.#choices.set(kind, {
        current,
        entries: options
          .flatMap((entry) => ("options" in entry ? entry.options : [entry]))
          .map(({ value, name, description }) => ({
            id: value,
            name: name ?? value,
            about: description ?? null,
          })),
        call: (sessionId, value) => ({
          method: "session/set_config_option",
          params: { sessionId, configId, value },
        }),
      });
    }
  }

  /** The agent tells its commands. */
  commands(list: Parameters<typeof toCommands>[0]): void {
    this.#commands = toCommands(list);
  }

  /** Whether the agent reads this text as one of its commands, if nothing stands before it. */
  isCommand(text: string): boolean {
    const name = commandIn(text)?.name;
    return this.#commands.some((one) => one.name === name);
  }

  /** The agent says, or has accepted, that this one is chosen. */
  chosen(kind: Kind, current: string): void {
    const choice = this.#choices.get(kind);
    if (choice !== undefined) this.#choices.set(kind, { ...choice, current });
  }

  /** The present one is not known any more. */
  left(kind: Kind): void {
    const choice = this.#choices.get(kind);
    if (choice !== undefined) this.#choices.set(kind, { ...choice, current: null });
  }

  /** The modes that it offers, the present one first. */
  get modes(): readonly string[] {
    const { current, entries = [] } = this.#choices.get("mode") ?? {};
    const ids = entries.map(({ id }) => id);
    return ids.toSorted((one, other) => Number(other === current) - Number(one === current));
  }

  /** The present mode. Null if the agent does not say. */
  get mode(): string | null {
    return this.#choices.get("mode")?.current ?? null;
  }

  /** `provider/model`. Null if the agent does not say. */
  get model(): string | null {
    return this.#choices.get("model")?.current ?? null;
  }

  /** The efforts that its present model takes. */
  get efforts(): readonly string[] {
    return this.#choices.get("effort")?.entries.map(({ id }) => id) ?? [];
  }

  /** The present effort. Null if the agent does not say. */
  get effort(): string | null {
    return this.#choices.get("effort")?.current ?? null;
  }

  has(kind: Kind, id: string): boolean {
    return this.#choices.get(kind)?.entries.some((entry) => entry.id === id) ?? false;
  }

  /** Why the agent cannot take this model or agent. Null if it can. */
  fault({ model, agent }: Pick<ChoiceWish, "model" | "agent">): ItemError | null {
    if (agent !== null && !this.has("mode", agent)) {
      const names = this.#choices.get("mode")?.entries.map(({ id }) => id) ?? [];
      return {
        code: "unknown_agent",
        message:
          `There is no agent "${agent}" in this session. ` +
          (names.length === 0
            ? "The agent runtime offers no choice of agents."
            : `Choose one of: ${names.join(", ")}.`),
      };
    }
    // The present one may have been set when the agent started, and not be listed.
    if (model === null || this.model === model || this.has("model", model)) return null;
    const ids = this.#choices.get("model")?.entries.map(({ id }) => id) ?? [];
    return {
      code: "unknown_model",
      message:
        `There is no model "${model}" in this session. ` +
        (ids.length === 0
          ? "The agent runtime offers no choice of models."
          : `Choose one of: ${modelsInWords(ids)}.`),
    };
  }

  /** The call that leads from the present choice to the wanted one. Null if none is needed, or possible. */
  call(sessionId: string, kind: Kind, value: string | null) {
    const choice = this.#choices.get(kind);
    if (choice === undefined || value === null || (kind !== "model" && choice.current === value)) return null;
    return choice.call(sessionId, value);
  }

  /** @param chosenModel the model of the next message. Null means the agent's present one */
  offers(chosenModel: string | null): RuntimeOffers {
    const models = this.#choices.get("model")?.entries ?? [];
    const agents = this.#choices.get("mode")?.entries ?? [];
    const model = chosenModel ?? this.model;
    const { efforts, effort } = this;
    return {
      // It tells those of its present model alone.
      models: models.map(({ id, name }) =>
        id === model && efforts.length > 0 ? { id, name, efforts } : { id, name },
      ),
      agents: agents.map(({ id, about }) => ({ name: id, description: about })),
      default_model: model,
      ...(effort !== null && { default_effort: effort }),
      ...(this.#commands.length > 0 && { commands: this.#commands }),
    };
  }
}

/**
 * The project's secrets in the agent runtime's environment: first those of the launch file, then the changes of `POST
 * /platform/env` (api.md 5 and 7). A change takes effect at the runtime's next start.
 *
 *  E1 A change is applied as a whole or not at all. A refusal contains no value.
 *  E2 A revision that is already applied, or older, changes nothing. So a repeated change counts once, and an older one
 *     cannot replace a newer value (threats.md A02).
 */
import { isRecord } from "../../src/ground/record.ts";
import {
  checkSecretName,
  checkSecretSet,
  checkSecretValue,
  type SecretIssue,
} from "../../src/domain/secret/secret.ts";
import { cutText } from "../../src/domain/text.ts";
import { invalid, type ControlRefusal } from "../http/answer.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import type { Settings } from "../settings.ts";

/**
 * The body of `POST /platform/env`. Null removes a variable; names that it omits stay unchanged. With `after_turn` it
 * is refused while a turn is in progress, because the restart would interrupt it.
 */
export interface EnvChange {
  readonly revision: string;
  readonly env: ReadonlyMap<string, string | null>;
  readonly afterTurn: boolean;
}

const FIELDS: ReadonlySet<string> = new Set(["revision", "env", "after_turn"]);

/** `changed` are the names whose value changed. `revision` is the one in force. */
export interface EnvChanged {
  readonly changed: readonly string[];
  readonly revision: string;
}

const REVISION = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;
const NUMBER = /^\d+$/;
/** The longest name that a refusal quotes. */
const MAX_QUOTED = 80;

export class AgentEnv {
  #values: ReadonlyMap<string, string>;
  #revision: string | null;
  readonly #redactor: Redactor;

  constructor({ launch, injected }: Settings, redactor: Redactor) {
    this.#values = new Map(Object.entries(launch.agentEnv));
    this.#revision = injected["PLATFORM_PROJECT_SECRETS_REVISION"] ?? null;
    this.#redactor = redactor;
  }

  /** The secrets by name. */
  get secrets(): Record<string, string> {
    return Object.fromEntries(this.#values);
  }

  /** The platform's own variables about the secrets. Before the first change, the injected ones are valid. */
  get variables(): Record<string, string> {
    if (this.#revision === null) return {};
    return {
      PLATFORM_PROJECT_SECRET_NAMES: [...this.#values.keys()].toSorted().join(","),
      PLATFORM_PROJECT_SECRETS_REVISION: this.#revision,
    };
  }

  change({ revision, env }: Omit<EnvChange, "afterTurn">): EnvChanged | ControlRefusal {
    if (this.#revision !== null && !isNewer(revision, this.#revision))
      return { changed: [], revision: this.#revision };
    const next = new Map(this.#values);
    for (const [name, value] of env) {
      if (value === null) next.delete(name);
      else next.set(name, value);
    }
    const tooLarge = checkSecretSet(
      [...next].map(([name, value]) => ({ name, valueBytes: Buffer.byteLength(value) })),
    );
    if (tooLarge !== null) return refusal("env", tooLarge);
    const changedNames = [...env.keys()].filter((name) => next.get(name) !== this.#values.get(name));
    for (const value of next.values()) this.#redactor.add(value);
    this.#values = next;
    this.#revision = revision;
    return { changed: changedNames.toSorted(), revision };
  }
}

const isNewer = (revision: string, present: string): boolean =>
  NUMBER.test(revision) && NUMBER.test(present) ? BigInt(revision) > BigInt(present) : revision !== present;

const refusal = (path: string, { code, message }: SecretIssue): ControlRefusal =>
  invalid(path, message, code);

/** Reads the body without a schema: its keys are checked as sent, before any of them becomes a property. */
export const readEnvChange = (body: unknown): EnvChange | ControlRefusal => {
  if (!isRecord(body)) return invalid("", "must be an object with revision and env");
  const unknown = Object.keys(body).find((field) => !FIELDS.has(field));
  if (unknown !== undefined) return invalid(cutText(unknown, MAX_QUOTED), "unknown field");
  const { revision, env, after_turn: afterTurn = false } = body;
  if (typeof revision !== "string" || !REVISION.test(revision))
    return invalid("revision", "must be a string of up to 128 letters, digits and . _ + -");
  if (typeof afterTurn !== "boolean") return invalid("after_turn", "must be true or false");
  if (!isRecord(env)) return invalid("env", "must be an object of variables by name");
  const read = new Map<string, string | null>();
  for (const [name, value] of Object.entries(env)) {
    const wrong = wrongWith(name, value);
    if (wrong !== null) return refusal(`env.${cutText(name, MAX_QUOTED)}`, wrong);
    read.set(name, value as string | null);
  }
  return { revision, env: read, afterTurn };
};

const wrongWith = (name: string, value: unknown): SecretIssue | null => {
  const badName = checkSecretName(name);
  // A secret that was set before its name was forbidden can be removed.
  if (value === null) return badName?.code === "unsafe_name" ? null : badName;
  if (badName !== null) return badName;
  if (typeof value === "string") return checkSecretValue(value);
  return {
    code: "invalid_value",
    message: "The value of a variable must be a string, or null to remove it.",
  };
};

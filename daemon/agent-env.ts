/**
 * The project's secrets as the agent runtime has them: what the launch file brought, then what `POST /platform/env`
 * changed (api.md 5 and 7). A change holds from the runtime's next start on.
 *
 *  E1 A change is taken whole or not at all, and a refused one names no value.
 *  E2 A revision that is here already, or the number of an older one, changes nothing: what is sent twice counts once,
 *     and what was sent before cannot take a newer value back (threats.md A02).
 */
import { checkSecretName, checkSecretSet, checkSecretValue, type SecretIssue } from "../src/domain/secret.ts";
import { cutText } from "../src/domain/text.ts";
import { invalid, type Refused } from "./answer.ts";
import type { Redactor } from "./logs/redact.ts";
import type { Settings } from "./settings.ts";

/**
 * The body of `POST /platform/env`: null takes a variable away, names that are not in it stay as they are. With `after_turn`
 * it is refused while a turn is in progress, which the restart would cut.
 */
export interface EnvChange {
  readonly revision: string;
  readonly env: ReadonlyMap<string, string | null>;
  readonly afterTurn: boolean;
}

const FIELDS: ReadonlySet<string> = new Set(["revision", "env", "after_turn"]);

/** `changed` are the names whose value is another now; `revision` is the one that holds. */
export interface EnvChanged {
  readonly changed: readonly string[];
  readonly revision: string;
}

const REVISION = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;
const NUMBER = /^\d+$/;
/** Of a name that is quoted in a refusal. */
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

  /** What the platform's own variables say of them, once a change came: before, what was injected holds. */
  get variables(): Record<string, string> {
    if (this.#revision === null) return {};
    return {
      PLATFORM_PROJECT_SECRET_NAMES: [...this.#values.keys()].toSorted().join(","),
      PLATFORM_PROJECT_SECRETS_REVISION: this.#revision,
    };
  }

  change({ revision, env }: Omit<EnvChange, "afterTurn">): EnvChanged | Refused {
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
    const changed = [...env.keys()].filter((name) => next.get(name) !== this.#values.get(name));
    for (const value of next.values()) this.#redactor.add(value);
    this.#values = next;
    this.#revision = revision;
    return { changed: changed.toSorted(), revision };
  }
}

const isNewer = (revision: string, held: string): boolean =>
  NUMBER.test(revision) && NUMBER.test(held) ? BigInt(revision) > BigInt(held) : revision !== held;

const refusal = (path: string, { code, message }: SecretIssue): Refused => invalid(path, message, code);

/** Reads the body by hand: its keys are checked as they were sent, before any of them becomes a property. */
export const readEnvChange = (body: unknown): EnvChange | Refused => {
  if (!isObject(body)) return invalid("", "must be an object with revision and env");
  const unknown = Object.keys(body).find((field) => !FIELDS.has(field));
  if (unknown !== undefined) return invalid(cutText(unknown, MAX_QUOTED), "unknown field");
  const { revision, env, after_turn: afterTurn = false } = body;
  if (typeof revision !== "string" || !REVISION.test(revision))
    return invalid("revision", "must be a string of up to 128 letters, digits and . _ + -");
  if (typeof afterTurn !== "boolean") return invalid("after_turn", "must be true or false");
  if (!isObject(env)) return invalid("env", "must be an object of variables by name");
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
  // One that was set before its name was refused can be taken away.
  if (value === null) return badName?.code === "unsafe_name" ? null : badName;
  if (badName !== null) return badName;
  if (typeof value === "string") return checkSecretValue(value);
  return {
    code: "invalid_value",
    message: "The value of a variable must be a string, or null to remove it.",
  };
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

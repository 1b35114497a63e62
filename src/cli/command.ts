/** The parts of a command: its place in the grammar, its help, and its action. To add one, fill in `command({…})`. */
import type { Client } from "./client.ts";
import type { Environment } from "./configuration.ts";
import type { Input } from "./input.ts";
import type { Screen } from "./terminal.ts";

interface TextOption {
  /** The placeholder for the value in the help. */
  readonly value: string;
  readonly about: string;
  /** It may be given several times. */
  readonly many?: true;
}
interface SwitchOption {
  readonly value?: never;
  readonly about: string;
  readonly many?: never;
}
/** Options by their long names. */
export type Options = Readonly<Record<string, TextOption | SwitchOption>>;

/** The given values: text, several texts, or whether a switch is set. */
export type OptionValues<O extends Options> = {
  readonly [Name in keyof O]: O[Name] extends { readonly many: true }
    ? readonly string[]
    : O[Name] extends { readonly value: string }
      ? string | undefined
      : boolean;
};

/** `NUMBER`, or `[SESSION]` if it is optional. Optional arguments come last. */
export type ArgumentValues<Names extends readonly string[]> = {
  readonly [
    Name in Names[number] as Name extends `[${infer Inner}]` ? Inner : Name
  ]: Name extends `[${string}]` ? string | undefined : string;
};

/** Everything that a command can use. */
export interface Call<Arguments, Values> {
  readonly given: Arguments;
  readonly options: Values;
  /** The words of `rest`. */
  readonly rest: readonly string[];
  readonly json: boolean;
  readonly environment: Environment;
  readonly input: Input;
  /** Writes immediately, for output without an end. All other output is an `Outcome`. */
  readonly write: (text: string) => void;
  /** Standard output. Null if it is not a terminal, or if JSON is wanted. */
  readonly screen: Screen | null;
  /** Writes a line for the person, separate from the output. */
  readonly note: (line: string) => void;
  /** Shows how far the command is, in one line that replaces the one before. "" removes it. Null if the output is not a terminal, or is JSON. */
  readonly progress: ((line: string) => void) | null;
  /** All commands of this program. */
  readonly commands: readonly Command[];
  /** @throws Failure without a login */
  readonly api: () => Client;
  /** The project: --project, PLATFORM_PROJECT_ID, the only one that the token reaches, or the one of this directory's repository. */
  readonly project: () => Promise<string>;
}

/** A command's result, in both forms. */
export interface Outcome {
  /** The API's own JSON: one document. */
  readonly json: string;
  /** For people. Safe for a terminal. */
  readonly text: string;
  /** The output instead of `text` if standard output is not a terminal, byte for byte. */
  readonly raw?: string;
}

/** `writes`: the command wrote its own output. */
export type Result = Outcome | "writes";

type Asked = string | null;

/** What a person reads of a command and types. */
export interface Words<Names extends readonly string[], O extends Options> {
  /** The words, e.g. `cr create`. */
  readonly name: string;
  /** One line. */
  readonly about: string;
  readonly takes?: Names;
  /** Any number of further words. */
  readonly rest?: string;
  readonly options?: O;
  /** Further help, below the options. */
  readonly notes?: string;
  /** A line as one would type it, without `platform`. */
  readonly example?: string;
  /** The question before what cannot be undone. A person at a terminal answers it, unless she gave --yes. Null if this call needs no question. */
  readonly asks?: string | ((call: Call<ArgumentValues<Names>, OptionValues<O>>) => Asked | Promise<Asked>);
  /** A question of the same kind, whose answer is a name that she types. */
  readonly asksName?: (
    call: Call<ArgumentValues<Names>, OptionValues<O>>,
  ) => Promise<{ readonly question: string; readonly name: string }>;
}

interface Definition<Names extends readonly string[], O extends Options> extends Words<Names, O> {
  /** The command works in a project, and takes --project. */
  readonly inProject?: true;
  readonly run: (call: Call<ArgumentValues<Names>, OptionValues<O>>) => Promise<Result>;
}

/** A command with any arguments and options. */
export interface Command {
  readonly name: string;
  readonly about: string;
  readonly takes: readonly string[];
  readonly rest: string | null;
  readonly options: Options;
  readonly inProject: boolean;
  readonly notes: string | null;
  readonly example: string | null;
  readonly asks: ((call: AnyCall) => Asked | Promise<Asked>) | null;
  readonly asksName:
    | ((call: AnyCall) => Promise<{ readonly question: string; readonly name: string }>)
    | null;
  /** It works on the service's machine and calls no service. */
  readonly isLocal: boolean;
  readonly run: (call: AnyCall) => Promise<Result>;
}

/** A call of any command. */
export type AnyCall = Call<
  Readonly<Record<string, string | undefined>>,
  Readonly<Record<string, string | boolean | readonly string[] | undefined>>
>;

const always = (question: string) => () => question;

/** Defines a command. Its declaration gives the types of its arguments and options. */
export const command = <
  const Names extends readonly string[] = [],
  const O extends Options = Record<never, never>,
>(
  definition: Definition<Names, O>,
): Command => ({
  takes: [],
  rest: null,
  notes: null,
  example: null,
  isLocal: false,
  inProject: false,
  ...definition,
  options: {
    ...definition.options,
    ...((definition.asks ?? definition.asksName) !== undefined && { yes: { about: "Do not ask" } }),
  },
  // The grammar passes exactly the declared values (grammar.ts).
  asks: (typeof definition.asks === "string"
    ? always(definition.asks)
    : (definition.asks ?? null)) as unknown as Command["asks"],
  asksName: (definition.asksName ?? null) as unknown as Command["asksName"],
  run: definition.run as unknown as Command["run"],
});

/** What a command is: its place in the grammar, its help, and what it does. Whoever adds one fills in `command({…})`. */
import type { Client } from "./client.ts";
import type { Environment } from "./configuration.ts";
import type { Input } from "./input.ts";

interface TextOption {
  /** What stands for the value in the help. */
  readonly value: string;
  readonly about: string;
}
interface SwitchOption {
  readonly value?: never;
  readonly about: string;
}
/** Options by their long names. */
export type Options = Readonly<Record<string, TextOption | SwitchOption>>;

/** What was given: text, or whether a switch is set. */
export type OptionValues<O extends Options> = {
  readonly [Name in keyof O]: O[Name] extends { readonly value: string } ? string | undefined : boolean;
};

/** `NUMBER`, or `[SESSION]` where it may be left out; those come last. */
export type ArgumentValues<Names extends readonly string[]> = {
  readonly [
    Name in Names[number] as Name extends `[${infer Inner}]` ? Inner : Name
  ]: Name extends `[${string}]` ? string | undefined : string;
};

/** What a command has to do with. */
export interface Call<Arguments, Values> {
  readonly given: Arguments;
  readonly options: Values;
  readonly json: boolean;
  readonly environment: Environment;
  readonly input: Input;
  /** Writes on as it comes, for what has no end; all else is an `Outcome`. */
  readonly write: (text: string) => void;
  /** A line for the person beside what is written. */
  readonly note: (line: string) => void;
  /** @throws Failure where nobody is logged in */
  readonly api: () => Client;
  /** The project: --project, PLATFORM_PROJECT_ID, or the only one that the token reaches. */
  readonly project: () => Promise<string>;
}

/** What a command leads to, in both forms. */
export interface Outcome {
  /** The API's own JSON: one document. */
  readonly json: string;
  /** For people; safe for a terminal. */
  readonly text: string;
  /** What goes out instead of `text` where no terminal reads it, byte for byte. */
  readonly raw?: string;
}

/** `writes`: the command wrote what it had to say itself. */
export type Result = Outcome | "writes";

interface Definition<Names extends readonly string[], O extends Options> {
  /** The words, e.g. `cr create`. */
  readonly name: string;
  /** One line. */
  readonly about: string;
  readonly takes?: Names;
  readonly options?: O;
  /** Works in a project, and takes --project. */
  readonly inProject?: true;
  /** What else there is to know, below the options. */
  readonly notes?: string;
  readonly run: (call: Call<ArgumentValues<Names>, OptionValues<O>>) => Promise<Result>;
}

/** A command of any arguments and options. */
export interface Command {
  readonly name: string;
  readonly about: string;
  readonly takes: readonly string[];
  readonly options: Options;
  readonly inProject: boolean;
  readonly notes: string | null;
  readonly run: (
    call: Call<
      Readonly<Record<string, string | undefined>>,
      Readonly<Record<string, string | boolean | undefined>>
    >,
  ) => Promise<Result>;
}

/** Defines a command; what it is given is typed by what it declares. */
export const command = <
  const Names extends readonly string[] = [],
  const O extends Options = Record<never, never>,
>(
  definition: Definition<Names, O>,
): Command => ({
  takes: [],
  options: {},
  notes: null,
  inProject: false,
  ...definition,
  // The grammar hands over exactly what is declared (grammar.ts).
  run: definition.run as unknown as Command["run"],
});

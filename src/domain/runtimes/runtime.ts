/** What a record of a runtime says. A runtime is a program that is an agent. Records are pure data; nothing else asks for a runtime's name. */
import type { ProviderKind } from "../sandbox/account-provider.ts";

/**
 * How the daemon drives an agent runtime. `acp`: by the Agent Client Protocol over its standard
 * input and output.
 */
export const AGENT_ADAPTERS = ["opencode", "acp", "plain"] as const;
export type AgentAdapter = (typeof AGENT_ADAPTERS)[number];

/** Whether a person is asked before the agent acts. */
export const PERMISSIONS = ["ask", "allow"] as const;
export type Permissions = (typeof PERMISSIONS)[number];

/** What a runtime may lack. People are told why. */
export const ABILITIES = [
  "permissions",
  "questions",
  "subagents",
  "outputs",
  "exit_codes",
  "stops_commands",
  "model_changes",
  "effort_changes",
  "plans",
  "commands",
] as const;
export type Ability = (typeof ABILITIES)[number];

/** How a runtime uses an account's provider of models. */
export interface RuntimeProviders {
  readonly kinds: readonly ProviderKind[];
  /** Secrets of a project that are its own key: with one of them, it uses that. */
  readonly keys: readonly string[];
  /** Its variables, in which `{url}` is the provider's inside address, `{key}` the placeholder and `{model}` the model's id. */
  readonly variables: Readonly<Record<string, string>>;
  /** The file in which it reads which models there are. Null if it reads none. */
  readonly list: ModelList | null;
}

/** A JSON file with one entry for each model of a provider. */
export interface ModelList {
  /** Its name in `{files}`. */
  readonly file: string;
  /** The field that has the entries. */
  readonly field: string;
  /** In its texts, `{model}` is the model's id. */
  readonly entry: Readonly<Record<string, unknown>>;
}

/** A text in a JSON file: the names of the objects around it, and its own. */
export type JsonPath = readonly string[];

/** The file in which a runtime keeps a subscription. */
export interface SubscriptionFile {
  /** Below the home directory. */
  readonly path: string;
  /** Texts that it must have. */
  readonly needs: readonly JsonPath[];
  /** The runtime renews it: where it says how new it is, and what stays the same. Null if it does not. */
  readonly renewed: { readonly at: JsonPath; readonly keeps: JsonPath } | null;
}

/** How a runtime signs in with a person's own subscription at its maker, in place of a key (agents/subscription.ts). */
export interface RuntimeSubscription {
  /** Its name for people, such as `Claude subscription`. */
  readonly title: string;
  /** The command that makes what she saves. */
  readonly how: string;
  /** The variable in which the runtime finds a token, and the token's form. Null if it reads a file. */
  readonly token: { readonly variable: string; readonly begins: string } | null;
  readonly file: SubscriptionFile | null;
  /** Its variables while it has the subscription, in place of those of a provider. */
  readonly variables: Readonly<Record<string, string>>;
  /** Its files likewise, over those of its record. */
  readonly files: Readonly<Record<string, string>>;
  /** Files below the home directory that it makes of these. They go with the subscription. */
  readonly traces: readonly string[];
  /** The hosts that it asks then. */
  readonly hosts: readonly string[];
}

/** The start of a runtime that was added to a node, with the holes of `installedAt`. */
export interface AddedStart {
  readonly command: readonly string[];
  /** Further variables. */
  readonly variables: Readonly<Record<string, string>>;
}

/** A package of npm that has a runtime's program. */
export interface RuntimePackage extends AddedStart {
  readonly name: string;
  /** A further package that the program needs, without its optional parts: they bring the program a second time. */
  readonly beside: { readonly name: string; readonly version: string } | null;
}

/** How a runtime plans before it works. */
export interface PlanMode {
  /** The mode in which it plans: it reads, and changes nothing. */
  readonly mode: string;
  /** The modes in which it may carry an approved plan out, the usual one first. Empty: the one in which it begins by itself. */
  readonly next: readonly string[];
  /**
   * The title of the request by which it asks to carry a plan out, up to the path of the file that has the plan. Absent: the request itself
   * says that it leaves the mode, and has the plan.
   */
  readonly asks?: string;
}

export interface Runtime {
  readonly name: string;
  /** How the daemon drives it. */
  readonly adapter: AgentAdapter;
  /** The program and its arguments. Null if the agent's table names them. */
  readonly command: readonly string[] | null;
  /**
   * What an operator can add to the nodes (`platform runtimes add`). `entry`: an entry of a registry, which says how it starts
   * (registry.ts).
   */
  readonly packaged: RuntimePackage | "entry" | null;
  /** Whether its program is one file, which the service puts into sandboxes. */
  readonly isOneFile: boolean;
  /** Whether a project may name the command. */
  readonly takesCommand: boolean;
  /** Its variables beyond those of the adapter. */
  readonly variables: Readonly<Record<string, string>>;
  /** Files that it reads, by their names in `{files}`, which `packaged` and `providers` may name. It cannot write them. */
  readonly files: Readonly<Record<string, string>>;
  /** Where it keeps its own record of a conversation: patterns of files below the home directory (history.ts). Null if not known. */
  readonly history: readonly string[] | null;
  /** Whose models it has: `provider/model` that the platform sets up, or its own. Null if none can be chosen. */
  readonly models: "platform" | "own" | null;
  /** The variable in which it finds the model when it starts. Null if it is told later. */
  readonly modelVariable: string | null;
  /** Whether people can choose how hard its models think. Which efforts there are is known once it runs. */
  readonly efforts: boolean;
  /** Null if it uses keys of projects only. */
  readonly providers: RuntimeProviders | null;
  /** Null means none that is known. */
  readonly subscription: RuntimeSubscription | null;
  /**
   * The files of a repository that are commands of it: a pattern of their paths, whose group is the command's name. Null: none that is known.
   */
  readonly commandFiles: string | null;
  /** Whether it is told by the Agent Client Protocol which servers have tools. Others read that in the settings of their adapter. */
  readonly takesServers: boolean;
  /** The modes that it has. `any`: they are known once it runs. */
  readonly modes: readonly string[] | "any";
  /** The mode of agents that name none. Null means the runtime's own. */
  readonly mode: string | null;
  /** Null if it has no mode that plans. */
  readonly plan: PlanMode | null;
  readonly permissions: readonly Permissions[];
  /** Whether it can be given instructions. */
  readonly instructions: boolean;
  /** Whether people can talk to it. */
  readonly conversation: boolean;
  /** The abilities that it lacks, each with the reason as a sentence for people. */
  readonly lacks: Readonly<Partial<Record<Ability, string>>>;
}

/** The abilities that a runtime lacks, each with the reason. */
export const lackedBy = ({ lacks }: Pick<Runtime, "lacks">) =>
  ABILITIES.flatMap((ability) => {
    const reason = lacks[ability];
    return reason === undefined ? [] : [{ ability, reason }];
  });

/** A runtime that can be started. */
export interface StartableRuntime extends Runtime {
  readonly command: readonly string[];
}

/** The kinds of settings, and what each one says of itself. */

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** One year: a longer interval is a mistake in the unit. */
export const LONGEST_MS = 365 * DAY;

/** Sections of the page, in its order. */
export const GROUPS = [
  "Addresses",
  "Data and identity",
  "Sign-in",
  "Mail",
  "Sandboxes",
  "Kubernetes",
  "Environments",
  "Package cache",
  "Sessions",
  "Triggers",
  "Git",
  "Models",
  "Connectors",
  "Accounts and load",
  "Several nodes",
  "Monitoring",
] as const;

interface Described {
  readonly group: (typeof GROUPS)[number];
  /** One to three sentences of Markdown: what the setting does, and why it has this default. */
  readonly about: string;
  /** The default as the page shows it, where the code computes it. */
  readonly shown?: string;
}

/** `null`: the setting has no default value, and the service decides. */
export type Setting = Described &
  (
    | { readonly kind: "text" | "url"; readonly fallback: string | null }
    /** `fallback` is read by the same parser as a given value; `expects` is what the page says about values. */
    | { readonly kind: "structured"; readonly fallback: string | null; readonly expects: string }
    | {
        readonly kind: "integer";
        readonly fallback: number | null;
        readonly min: number;
        readonly max: number;
      }
    /** Whole milliseconds, at least `min`, at most a year. */
    | { readonly kind: "duration"; readonly fallback: number; readonly min: number }
    /** The first value is the default. */
    | { readonly kind: "choice"; readonly values: readonly [string, ...string[]] }
    /** The default is the empty list. */
    | { readonly kind: "list"; readonly separator: "," | ":" }
    /** Hosts, separated by commas. The default is the empty list. */
    | { readonly kind: "hosts"; readonly wildcards: boolean }
  );

/** Keeps the literal types of definitions. */
export const define = <const Settings extends Readonly<Record<string, Setting>>>(settings: Settings) =>
  settings;

/** A setting in milliseconds. */
export const duration = (group: Described["group"], fallback: number, about: string) =>
  ({ group, kind: "duration", fallback, min: 1, about }) as const;

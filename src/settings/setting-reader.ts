/**
 * Reads the values of settings by their definitions in settings.ts. config.ts says which settings there are and what they
 * mean together.
 */
import * as Result from "effect/Result";
import { readHostPatterns, readHosts } from "../domain/service/host-list.ts";
import { LONGEST_MS } from "./setting.ts";
import { type NamesOf, SETTINGS } from "./settings.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

type Defined = typeof SETTINGS;
/** A setting's default as a type: `null` only where it has none. */
type Fallback<Name extends keyof Defined> = Defined[Name] extends { readonly fallback: null } ? null : never;

/** Reads settings, and collects what is wrong with them. */
export class SettingReader {
  readonly #environment: Environment;
  readonly #problems: string[] = [];

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  problem(name: string, value: string, expected: string): void {
    this.#problems.push(`${name} is ${JSON.stringify(value)}; expected ${expected}`);
  }

  /** A problem in its own words. */
  addProblem(line: string): void {
    this.#problems.push(line);
  }

  /** The problems so far, one line for each. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** The given value; `null` where the setting is absent or empty. */
  protected given(name: keyof Defined): string | null {
    const value = this.#environment[name];
    return value === undefined || value === "" ? null : value;
  }

  text<Name extends NamesOf<"text">>(name: Name): string | Fallback<Name> {
    return this.given(name) ?? (SETTINGS[name].fallback as string | Fallback<Name>);
  }

  list(name: NamesOf<"list">): readonly string[] {
    return this.#parts(name, SETTINGS[name].separator);
  }

  /** Hosts as they are compared with those of addresses. */
  hostList(name: NamesOf<"hosts">): readonly string[] {
    const read = SETTINGS[name].wildcards ? readHostPatterns : readHosts;
    const hosts = read(this.#parts(name, ","));
    if (Result.isSuccess(hosts)) return hosts.success;
    this.problem(name, hosts.failure.entry, hosts.failure.expected);
    return [];
  }

  #parts(name: keyof Defined, separator: string): readonly string[] {
    return (this.given(name) ?? "")
      .split(separator)
      .map((item) => item.trim())
      .filter((item) => item !== "");
  }

  integer<Name extends NamesOf<"integer">>(name: Name): number | Fallback<Name> {
    const { fallback, min, max } = SETTINGS[name];
    return this.#whole(name, { min, max }) ?? (fallback as number | Fallback<Name>);
  }

  /** Milliseconds. */
  duration(name: NamesOf<"duration">): number {
    const { fallback, min } = SETTINGS[name];
    return this.#whole(name, { min, max: LONGEST_MS }) ?? fallback;
  }

  /** A whole number in digits alone; `null` where it is absent or wrong. */
  #whole(name: keyof Defined, { min, max }: { readonly min: number; readonly max: number }): number | null {
    const text = this.given(name);
    if (text === null) return null;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.problem(name, text, `a whole number from ${min} to ${max}`);
    return null;
  }

  choice<Name extends NamesOf<"choice">>(name: Name): Defined[Name]["values"][number] {
    const values: readonly Defined[Name]["values"][number][] = SETTINGS[name].values;
    const text = this.given(name);
    const value = values.find((candidate) => candidate === text);
    if (value !== undefined) return value;
    if (text !== null) this.problem(name, text, `one of ${values.join(", ")}`);
    return SETTINGS[name].values[0];
  }

  url(name: NamesOf<"url">): string | null {
    const text = this.given(name);
    if (text === null) return null;
    const url = URL.parse(text);
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
      this.problem(name, text, "an http or https URL");
    // Paths are appended to it.
    else if (/[?#]/.test(text)) this.problem(name, text, "an http or https URL without ? and #");
    else return text.replace(/\/+$/, "");
    return null;
  }

  /** A URL without a path: cookies, sign-ins and the page's own requests begin at the root of its host. */
  origin(name: NamesOf<"url">): string | null {
    const url = this.url(name);
    if (url === null || new URL(url).pathname === "/") return url;
    this.problem(
      name,
      this.given(name) ?? url,
      "an http or https URL without a path: the service needs a host name of its own",
    );
    return null;
  }

  /** The value that the domain's parser returns. The default is read by the same parser. */
  parsed<Name extends NamesOf<"structured">, A>(
    name: Name,
    parse: (text: string) => Result.Result<A, string>,
  ): A | Fallback<Name> {
    const { fallback } = SETTINGS[name];
    const text = this.given(name);
    if (text !== null) {
      const result = parse(text);
      if (Result.isSuccess(result)) return result.success;
      this.problem(name, text, result.failure);
    }
    return (fallback === null ? null : Result.getOrThrow(parse(fallback))) as A | Fallback<Name>;
  }

  /**
   * The values of settings that count only together. Null if all are missing. If only some are, the start is refused.
   */
  together<Names extends string>(
    parts: Readonly<Record<Names, string | null>>,
  ): Record<Names, string> | null {
    const names = Object.keys(parts) as Names[];
    const group = names.find((name) => parts[name] !== null);
    if (group === undefined) return null;
    for (const name of names)
      // A value that its parser refused has its problem already.
      if (parts[name] === null && !this.#problems.some((problem) => problem.startsWith(`${name} `)))
        this.#problems.push(`${name} is not set; ${group} needs it`);
    // The start is refused if one is null, so nothing reads it as text.
    return parts as Record<Names, string>;
  }
}

/**
 * What comments and documents point to inside the code: files by their names, and the numbered rules at the head of a file.
 * The grammar is in docs/contract/README.md.
 */
import type { Fault } from "./citations.ts";

/** A line that a person reads: a comment, or prose. `null`: code alone. */
const readable = (line: string, isProse: boolean): string | null => {
  if (isProse) return line;
  const [, whole, behind] = /^\s*(?:\/?\*|\/\/|--|#)(.*)|(?:\s\/\/|\/\*\*)(.*)/.exec(line) ?? [];
  return whole ?? behind ?? null;
};

const FILE = /(?<![\w/.<{*-])(?:\.{0,2}\/)?(?:[\w-]+\/)*[\w.-]+\.(?:ts|js|cjs|mjs|sql)\b(?![\w/(])/g;

/** The files of the repository that a name may mean: their paths end with it. */
const meant = (name: string, files: readonly string[]): readonly string[] => {
  const plain = name.replace(/^(?:\.\.?\/)+/, "");
  return files.filter((file) => file === plain || file.endsWith(`/${plain}`));
};

/** A decision by its number, with which the name of its file begins. */
const DECISION = /\bdocs\/decisions\/\d{4}\b/g;

/** Every name of a file that no file has. */
export const nameFaults = (text: string, files: readonly string[], isProse: boolean): readonly Fault[] =>
  text.split("\n").flatMap((line, index) => {
    const told = readable(line, isProse) ?? "";
    const names = [...told.matchAll(FILE)].filter(([name]) => meant(name, files).length === 0);
    const decisions = [...told.matchAll(DECISION)].filter(
      ([start]) => !files.some((file) => file.startsWith(start)),
    );
    return [...names, ...decisions].map(([citation]) => ({
      line: index + 1,
      citation,
      problem: "no file has this name",
    }));
  });

/** A letter and one digit as a word of its own. I is the contract's. */
const RULE = /(?<![\w\\#%/.+-])[A-HJ-Z][1-9](?![\w.%-]|:\d)/g;
const STATED = /^\s*(?:\/?\*+|\/\/|--|#)?\s*([A-HJ-Z][1-9])[ :]/gm;
const SCRIPT_ENGINE = "V8";

/** The numbered rules that a file states. */
export const rulesOf = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(STATED)].map(([, rule = ""]) => rule));

/** The comment around a line: the lines before and behind it that are comments too. */
const commentAround = (lines: readonly (string | null)[], at: number): string => {
  let from = at;
  let to = at;
  while (from > 0 && lines[from - 1] !== null) from -= 1;
  while (to < lines.length - 1 && lines[to + 1] !== null) to += 1;
  return lines.slice(from, to + 1).join("\n");
};

/**
 * Every rule in a comment that neither its own file states nor a file that the comment names.
 *
 * @param stated the rules of each file of the repository, by its path.
 */
export const ruleFaults = (
  text: string,
  stated: ReadonlyMap<string, ReadonlySet<string>>,
): readonly Fault[] => {
  const own = rulesOf(text);
  const lines = text.split("\n").map((line) => readable(line, false));
  const files = [...stated.keys()];
  return lines.flatMap((line, index) =>
    [...(line ?? "").matchAll(RULE)].flatMap(([rule]) => {
      if (own.has(rule) || rule === SCRIPT_ENGINE) return [];
      const named = [...commentAround(lines, index).matchAll(FILE)].flatMap(([name]) => meant(name, files));
      return named.some((file) => stated.get(file)?.has(rule) === true)
        ? []
        : [
            {
              line: index + 1,
              citation: rule,
              problem: "neither this file nor one that is named here states it",
            },
          ];
    }),
  );
};

/** Secrets in pushed work: in what a person is about to merge, and in what people read who may not read secrets. */
import { isCutDiff } from "../repository/diff-cut.ts";
import { Redactor } from "./redactor.ts";

/** The tokens of the service, of all kinds and owners. */
const TOKENS = /platform_(?:pat|sbx)_[A-Za-z0-9_-]{27,}/g;
const MASKED_TOKEN = "platform_***";

/** Masks secrets and tokens in every text of an answer. */
export const maskedWork = <A>(work: A, secrets: Pick<Redactor, "redact">): A =>
  JSON.parse(JSON.stringify(work), (_key, value: unknown) =>
    typeof value === "string" ? secrets.redact(value).replaceAll(TOKENS, MASKED_TOKEN) : value,
  ) as A;

export interface NamedSecret {
  readonly name: string;
  readonly value: string;
}

export interface Leak {
  readonly file: string;
  readonly secret: string;
}

export interface LeakSearch {
  /** The files to which the diff adds the value of a secret, each secret once a file. */
  readonly leaks: readonly Leak[];
  /** The file in which the diff was cut: what follows was not searched. Null if all was. */
  readonly cutIn: string | null;
}

/** @param diff as `GitBackend.diff` gives it */
export const leaksIn = (diff: string, secrets: readonly NamedSecret[]): LeakSearch => {
  const redactors = secrets.map(({ name, value }) => ({ name, redactor: new Redactor([value]) }));
  const leaks = new Map<string, Leak>();
  let file = "";
  for (const line of diff.split("\n")) {
    const [, path] = /^\+\+\+ (?:"?b\/)?(.*?)"?\t?$/.exec(line) ?? [];
    if (path !== undefined) file = path;
    else if (line.startsWith("+"))
      for (const { name, redactor } of redactors)
        if (redactor.redact(line) !== line) leaks.set(`${file}\0${name}`, { file, secret: name });
  }
  return { leaks: [...leaks.values()], cutIn: isCutDiff(diff) ? file : null };
};

/** The warning before a person merges more than was searched. @param bytes how much of the diff was */
export const unsearchedMessage = (bytes: number): string =>
  `The change is too large to be searched whole for values of secrets: the search took its first ${bytes} bytes and ended in this file. Look at the rest yourself.`;

/** What a person reads before she merges it. */
export const leakMessage = (secret: string): string =>
  `This change contains the value of the secret ${secret}. Everyone who can read the repository can use it, even after a later commit removes it. ` +
  `Give ${secret} a new value, and take the old one out of the branch's history.`;

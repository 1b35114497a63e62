/** Which files of a diff a page shows, and which it folds until the reader asks for them. It uses no document. */
import { type DiffFile, parseDiff } from "./parse.ts";

/** A browser shows this many lines at once without effort. Files that the reader asked for come on top. */
export const PAGE_LINES = 4000;
/** A longer file is folded. */
const OPEN_LINES = 600;
/** How many lines of one file are shown when the reader asks for it. */
export const FILE_LINES = 20_000;
/** Files that programs write. */
const GENERATED =
  /(?:^|\/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum|packages\.lock\.json|[^/]*\.lock|bun\.lockb|[^/]*\.min\.(?:js|css)|[^/]*\.map)$/;

/** As the service lists it. */
type Listed = { path: string; additions: number; deletions: number };

/** Where single files of the diff can be read. */
export interface Source {
  /** Of the diff in the API. */
  url: string;
  /** The commit: another one has other lines. */
  head: string | null;
  listed: readonly Listed[];
  /** How many files changed. It may be more than are listed. */
  total: number;
  /** A word about each file, by its path. */
  marks?: Map<string, string>;
  /** A sentence that says where a reader finds what is not shown. */
  rest?: string;
}

/** @param url of the diff in the API */
export const sourceOf = (
  url: string,
  {
    head_commit: head,
    files_changed: files,
    files_changed_total: total,
  }: { head_commit: string | null; files_changed: readonly Listed[]; files_changed_total: number },
): Source => ({
  url,
  head,
  listed: files,
  total,
});

/** Why it is not shown; absent: the service did not send it. cut: what the service says where it cut it. */
export type PlannedFile = DiffFile & {
  isShown: boolean;
  why: "generated" | "long" | "room" | "absent" | null;
  cut: string | null;
};

/** Files that the reader asked for, with their lines if the diff has none. */
const asked: Map<string, { file: DiffFile | null; cut: string | null }> = new Map();

const keyOf = (url: string, head: string, path: string) => JSON.stringify([url, head, path]);

/** Notes that the reader wants to see a file. @param file head: "" without a commit @param diff its own diff. Null: the whole diff has it */
export const showAsked = (
  { url, head, path }: { url: string; head: string; path: string },
  diff: string | null,
) => {
  if (diff === null) {
    asked.set(keyOf(url, head, path), { file: null, cut: null });
    return;
  }
  const { files, cut } = parseDiff(diff);
  const [file] = files;
  if (file === undefined) throw new Error(`${path} has no differences any more. The branch has changed.`);
  asked.set(keyOf(url, head, path), { file, cut });
};

/** Files whose lines were read alone may have other lines now. @param url of the diff in the API */
export const forgetLoaded = (url: string) => {
  for (const [key, { file }] of asked)
    if (file !== null && key.startsWith(`[${JSON.stringify(url)},`)) asked.delete(key);
};

/** The diff that was read last: a page is drawn much more often than its diff changes. */
let last = { diff: "", parsed: parseDiff("") };

const parsedOnce = (diff: string) => {
  if (diff !== last.diff) last = { diff, parsed: parseDiff(diff) };
  return last.parsed;
};

const unsent = ({ path, additions, deletions }: Listed): DiffFile => ({
  key: `absent ${path}`,
  path,
  from: null,
  note: "",
  lines: [],
  added: additions,
  removed: deletions,
});

/** All changed files, also those that the service left out, with the counts of the whole file. */
const filesOf = (diff: string, source: Source | null) => {
  const { files, cut } = parsedOnce(diff);
  const listed = new Map(source?.listed.map((one) => [one.path, one]));
  // The file in which the diff was cut lacks lines.
  const [whole, part] = cut === null ? [files, undefined] : [files.slice(0, -1), files.at(-1)];
  for (const { path } of whole) listed.delete(path);
  const missing = [...listed.values()].map(unsent);
  const isListed = part !== undefined && listed.has(part.path);
  return {
    files: part === undefined || isListed ? [...whole, ...missing] : [...whole, part, ...missing],
    absent: new Set(missing),
    cut: isListed ? null : cut,
  };
};

/** @param source null: single files cannot be asked for @returns hidden: how many changed files are not shown */
export const planFiles = (
  diff: string,
  source: Source | null,
): { files: PlannedFile[]; hidden: number; cut: string | null } => {
  const { files, absent, cut } = filesOf(diff, source);
  let left = PAGE_LINES;
  const all = files.map((file) => {
    const own = asked.get(keyOf(source?.url ?? "", source?.head ?? "", file.path));
    if (own !== undefined) return planned(own.file ?? file, null, { key: file.key, cut: own.cut });
    const why = foldedFor(file, absent.has(file), left);
    if (why === null) left -= file.lines.length;
    return planned(file, why, { key: file.key, cut: null });
  });
  const unlisted = Math.max(0, (source?.total ?? 0) - all.length);
  return { files: all, hidden: unlisted + all.filter(({ isShown }) => !isShown).length, cut };
};

const planned = (
  file: DiffFile,
  why: PlannedFile["why"],
  rest: { key: string; cut: string | null },
): PlannedFile => ({ ...file, ...rest, isShown: why === null, why });

const foldedFor = ({ path, lines }: DiffFile, isAbsent: boolean, left: number): PlannedFile["why"] => {
  if (GENERATED.test(path)) return "generated";
  if (isAbsent) return "absent";
  if (lines.length > OPEN_LINES) return "long";
  return lines.length > left ? "room" : null;
};

/** The paths of the files that a diff shows. */
export const pathsIn = (diff: string, source: Source | null): ReadonlySet<string> =>
  new Set(planFiles(diff, source).files.map(({ path }) => path));

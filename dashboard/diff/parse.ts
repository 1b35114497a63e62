/** Reads a unified diff as files with lines. It uses no document. */

export interface DiffLine {
  kind: "added" | "removed" | "same" | "hunk" | "note";
  /** With its sign. */
  text: string;
  /** The line's number in the old file. */
  before: number | null;
  /** The line's number in the new file. */
  after: number | null;
}

export interface DiffFile {
  /** The line that begins it. */
  key: string;
  path: string;
  /** Its earlier path, if it was renamed. */
  from: string | null;
  /** "new file", "deleted", "binary" or "". */
  note: string;
  lines: DiffLine[];
  added: number;
  removed: number;
}

/** Cut: what the service says where it cut the diff. */
type Diff = { files: DiffFile[]; cut: string | null };

const CUT = /^\[The diff is longer than .* and was cut here\.\]$/;
const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;
const ESCAPE = /\\(?:([0-7]{3})|([abtnvfr"\\]))/g;
const NAMED: Record<string, string> = {
  a: "\x07",
  b: "\b",
  t: "\t",
  n: "\n",
  v: "\v",
  f: "\f",
  r: "\r",
  '"': '"',
  "\\": "\\",
};

/** Git writes unusual paths in quotes, byte by byte. */
const unquoted = (text: string): string => {
  if (!text.startsWith('"') || !text.endsWith('"')) return text;
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  const inner = text.slice(1, -1);
  let from = 0;
  for (const match of inner.matchAll(ESCAPE)) {
    bytes.push(...encoder.encode(inner.slice(from, match.index)));
    if (match[1] === undefined) bytes.push(...encoder.encode(NAMED[match[2] ?? ""] ?? ""));
    else bytes.push(Number.parseInt(match[1], 8) & 0xff);
    from = match.index + match[0].length;
  }
  bytes.push(...encoder.encode(inner.slice(from)));
  return new TextDecoder().decode(new Uint8Array(bytes));
};

/** The path behind `+++ ` or `--- `. Null for a file that does not exist. */
const pathIn = (named: string): string | null => {
  // Git ends a name with blanks by a tab.
  const path = unquoted(named.replace(/\t$/, ""));
  return path === "/dev/null" ? null : path.replace(/^[ab]\//, "");
};

/** @param line `diff --git a/… b/…` */
const headPath = (line: string): string => {
  const names = line.slice("diff --git ".length);
  if (names.endsWith('"')) return unquoted(names.slice(names.search(/"b\//))).replace(/^b\//, "");
  // Both names are the same, unless the file was renamed, which has lines of its own.
  const half = names.slice((names.length + 1) / 2);
  return half.startsWith("b/") ? half.slice(2) : (names.split(" b/").at(-1) ?? names);
};

/** @param line of the head of a file */
const readHead = (file: DiffFile, line: string) => {
  if (line.startsWith("+++ ")) file.path = pathIn(line.slice(4)) ?? file.path;
  else if (line.startsWith("--- ")) file.path = pathIn(line.slice(4)) ?? file.path;
  else if (line.startsWith("rename from ")) file.from = unquoted(line.slice(12));
  else if (line.startsWith("rename to ")) file.path = unquoted(line.slice(10));
  else if (line.startsWith("new file mode")) file.note = "new file";
  else if (line.startsWith("deleted file mode")) file.note = "deleted";
  else if (line.startsWith("Binary files ")) file.note = [file.note, "binary"].filter(Boolean).join(", ");
  else if (!/^(?:index|similarity|dissimilarity) /.test(line))
    file.lines.push({ kind: "note", text: line, before: null, after: null });
};

/** @param at moves on */
const readLine = (file: DiffFile, text: string, at: { before: number; after: number }) => {
  const hunk = HUNK.exec(text);
  if (hunk !== null) {
    at.before = Number(hunk[1]);
    at.after = Number(hunk[2]);
    file.lines.push({ kind: "hunk", text, before: null, after: null });
  } else if (text.startsWith("+")) {
    file.added += 1;
    file.lines.push({ kind: "added", text, before: null, after: at.after });
    at.after += 1;
  } else if (text.startsWith("-")) {
    file.removed += 1;
    file.lines.push({ kind: "removed", text, before: at.before, after: null });
    at.before += 1;
  } else if (text.startsWith("\\")) {
    file.lines.push({ kind: "note", text, before: null, after: null });
  } else {
    file.lines.push({ kind: "same", text, before: at.before, after: at.after });
    at.before += 1;
    at.after += 1;
  }
};

export const parseDiff = (diff: string): Diff => {
  const files: DiffFile[] = [];
  let cut: string | null = null;
  let isHead = true;
  let at = { before: 1, after: 1 };
  if (diff.trim() === "") return { files, cut };
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    if (line.startsWith("diff --git ") || files.length === 0) {
      files.push({ key: line, path: headPath(line), from: null, note: "", lines: [], added: 0, removed: 0 });
      isHead = true;
      at = { before: 1, after: 1 };
      if (line.startsWith("diff --git ")) continue;
    }
    const file = files.at(-1) as DiffFile;
    if (CUT.test(line)) cut = line.slice(1, -1);
    else if (isHead && !line.startsWith("@@") && !isBare(line)) readHead(file, line);
    else {
      isHead = false;
      readLine(file, line, at);
    }
  }
  return { files, cut };
};

/** A diff without heads and hunks has its lines at once. */
const isBare = (line: string) => /^[+-](?![+-]{2} )/.test(line);

/** How many digits the longest number of these lines has: the width of a column of numbers. */
export const digitsOf = (lines: readonly DiffLine[]): number =>
  String(lines.reduce((most, { before, after }) => Math.max(most, before ?? 0, after ?? 0), 0)).length;

/** The lines in two columns: what was removed beside what was added. @returns before and after; null where a side has nothing */
export const pairLines = (lines: DiffLine[]): [DiffLine | null, DiffLine | null][] => {
  const rows: [DiffLine | null, DiffLine | null][] = [];
  let removed: DiffLine[] = [];
  let added: DiffLine[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1)
      rows.push([removed[at] ?? null, added[at] ?? null]);
    removed = [];
    added = [];
  };
  for (const line of lines) {
    if (line.kind === "removed") {
      if (added.length > 0) flush();
      removed.push(line);
    } else if (line.kind === "added") added.push(line);
    else {
      // It says that the line above it has no line end.
      if (line.kind === "note" && removed.length + added.length > 0) continue;
      flush();
      rows.push([line, line]);
    }
  }
  flush();
  return rows;
};

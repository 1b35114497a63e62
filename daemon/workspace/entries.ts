/**
 * A directory of the workspace, or the text of one of its files. A shell reads them as the agent does, so nothing is
 * shown that the agent could not show itself. Links are listed and never followed.
 */
import type { AgentScript } from "../git/agent-git.ts";
import type {
  WorkspaceDirectory as Directory,
  WorkspaceEntry as Entry,
  WorkspaceFile as FileText,
} from "../../src/domain/session/workspace.ts";
import { sections } from "./sections.ts";

/** How many entries of a directory are listed. */
export const ENTRIES_MAX = 2000;
/** How much of a file is read, in bytes. */
export const FILE_MAX_BYTES = 1024 * 1024;
/** A name has up to 255 bytes, and the target of a link up to 4,095. */
export const ENTRIES_MAX_BYTES = 16 * 1024 * 1024;

/** Why there is neither. */
export type Unread = "missing" | "link" | "special" | "denied";

/**
 * $1 path, $2 how many bytes of a file, $3 how many entries. The first record says what it is. A shell does not open a file
 * that is neither regular nor a directory, because opening a FIFO waits for its other end.
 */
const READ_SCRIPT = `
unset GIT_DIR GIT_WORK_TREE
top=$(pwd -P; printf x)
top=\${top%??}
say() { printf '%s\\0\\0' "$1"; exit 0; }
enter() {
  cd -P -- "./$1" 2>/dev/null || say denied
  here=$(pwd -P; printf x)
  [ "$here" = "$top\${2:+/}$2
x" ] || say link
}
path=$1
if [ -z "$path" ]; then enter . ""
else
  [ ! -L "./$path" ] || say link
  if [ -d "./$path" ]; then enter "$path" "$path"
  elif [ -f "./$path" ]; then
    name=\${path##*/}
    directory=\${path%"$name"}
    directory=\${directory%/}
    [ -z "$directory" ] || enter "$directory" "$directory"
    [ ! -L "./$name" ] || say link
    [ -r "./$name" ] || say denied
    printf 'file\\0'
    find "./$name" -maxdepth 0 -printf '%s\\0\\0'
    head -c "$2" "./$name"
    exit
  elif [ -e "./$path" ]; then say special
  else say missing
  fi
fi
[ -r . ] || say denied
printf 'directory\\0\\0'
find . -mindepth 1 -maxdepth 1 ! -iname .git -printf '%y %s %f\\0' | sed -z "$3q"
`;

/** @param maxBytes of a file */
export const entriesScript = (path: string, maxBytes: number): AgentScript => ({
  name: "workspace-files",
  script: READ_SCRIPT,
  parameters: [path, String(maxBytes), String(ENTRIES_MAX + 1)],
});

const KINDS: Readonly<Record<string, Entry["kind"]>> = { f: "file", d: "directory", l: "link" };

const entryIn = (record: string): Entry => {
  const [, kind = "", size = "", bytes = ""] = /^(\S) (\d+) ([^]*)$/.exec(record) ?? [];
  const name = Buffer.from(bytes, "latin1").toString("utf8");
  const isText = Buffer.from(name).toString("latin1") === bytes;
  const entryKind = isText ? (KINDS[kind] ?? "other") : "other";
  return { name, kind: entryKind, size: entryKind === "file" ? Number(size) : null };
};

const byName = (a: Entry, b: Entry): number => {
  const first = Number(b.kind === "directory") - Number(a.kind === "directory");
  if (first !== 0) return first;
  return a.name < b.name ? -1 : Number(a.name > b.name);
};

/** Null if the bytes are no text. `isCut`: they may end within a character. */
const textIn = (bytes: Buffer, isCut: boolean): string | null => {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
};

/** What a reader gets of names and texts. `cut` gets a text that may go on after its limit. */
export interface Cleaning {
  readonly name: (name: string) => string;
  readonly cut: (text: string) => string;
}

/** Reads the script's output. */
export const readEntries = (output: Buffer, clean: Cleaning): Directory | FileText | Unread => {
  const kind = output.subarray(0, output.indexOf(0)).toString("latin1");
  if (kind === "file") {
    const end = output.indexOf("\0\0");
    const size = Number(output.subarray("file\0".length, end).toString("latin1"));
    const bytes = output.subarray(end + 2);
    const text = textIn(bytes, size > bytes.length);
    return {
      kind,
      size,
      text: text === null ? null : clean.cut(text),
      truncated: size > FILE_MAX_BYTES,
    };
  }
  if (kind !== "directory")
    return kind === "link" || kind === "special" || kind === "denied" ? kind : "missing";
  const [, records = []] = sections(output);
  const entries = records.map(entryIn).toSorted(byName).slice(0, ENTRIES_MAX);
  return {
    kind,
    entries: entries.map(({ name, kind: is, size }) => ({ name: clean.name(name), kind: is, size })),
    truncated: records.length > ENTRIES_MAX,
  };
};

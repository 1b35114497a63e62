/**
 * What the daemon and the workspace program (program.ts) say to each other. The program gets frames
 * (src/domain/save/frames.ts) on its standard input: first its command as JSON, then, for a restoration, the body of
 * `POST /platform/restore` as it came.
 */
import type { ListRequest, ReadRequest, RestorePart } from "../../src/domain/save/listing.ts";

/** A large file that a listing has read, as it was then. While all of this is equal, its content is equal. */
export interface KnownFile {
  readonly path: string;
  /** Size, modification, change and inode, as text. */
  readonly stamp: string;
  readonly object: string;
}

/** A small file with its content, so that reading it needs no further start of the program. */
export interface ListedContent {
  readonly object: string;
  readonly base64: string;
}

/** The most of them that go with a listing, bytes in all. */
export const CONTENTS_BYTES = 1024 * 1024;

/** What the daemon keeps of a listing until the next one. */
export interface KeptListing {
  readonly known: readonly KnownFile[];
  readonly contents: readonly ListedContent[];
}

/** Where the runtime keeps its own record of the conversation (src/domain/runtimes/history.ts). */
export interface HistoryPlace {
  /** An absolute path. */
  readonly home: string;
  readonly runtime: string;
  readonly files: readonly string[];
  /** The runtime's id of the present conversation. Null before the first message. */
  readonly id: string | null;
}

/** A record that was brought back. */
export interface BroughtHistory {
  readonly id: string;
  /** When it was saved, ms since the epoch. */
  readonly at: number;
}

interface Place {
  readonly workspace: string;
  /** Absent: the runtime keeps none that is known. */
  readonly history?: HistoryPlace;
  /** The session's branch, and the repository that has it. */
  readonly branch: string;
  readonly repoUrl: string;
}

/** The answer is a line with `Kept` as JSON, then the listing as JSON. */
export interface ListCommand extends Place {
  readonly command: "list";
  readonly request: ListRequest;
  readonly known: readonly KnownFile[];
  /** Contents of files that have changed since then are wanted, ms since 1970. */
  readonly contentsSince: number;
}

/** The answer is frames. */
export interface ReadCommand extends Place {
  readonly command: "read";
  readonly request: ReadRequest;
}

/** The answer is `Restored` as JSON, with `history` if it was brought back (`BroughtHistory`). */
export interface RestoreCommand extends Place {
  readonly command: "restore";
  /** The commit that was checked out. Absent: HEAD is still there. */
  readonly tip?: string | null;
  /** Which of several deliveries this is. Absent: the only one. */
  readonly part?: RestorePart;
}

/** Ends every process of the agent's user. */
export interface EndCommand {
  readonly command: "end";
  /** The daemon's user. Nothing is ended if the program runs as this one. */
  readonly daemonUid: number;
}

export type WorkspaceCommand = ListCommand | ReadCommand | RestoreCommand | EndCommand;

/**
 * Records of a conversation of opencode 1.18.33 with a scripted model, one a line: its listing, and each turn's events.
 * They are as opencode sent them, with shorter prompts and the workspace at /workspace.
 */
import { readFileSync } from "node:fs";
import { readMessage, type Recorded } from "../../../daemon/adapters/opencode/records.ts";

interface Line {
  readonly kind: "session" | "child" | "message" | "snapshot" | "open" | "event";
  readonly name?: string;
  readonly turn?: string;
  readonly record: unknown;
}

export interface RecordedEvent {
  readonly type: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

const LINES = readFileSync(new URL("../recorded/opencode-conversation.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Line);

const messageOf = (record: unknown): Recorded => {
  const message = readMessage(record as Parameters<typeof readMessage>[0]);
  if (message === null) throw new Error(`not a message: ${JSON.stringify(record)}`);
  return message;
};

const recordsOf = (kind: Line["kind"]): readonly unknown[] =>
  LINES.filter((line) => line.kind === kind).map(({ record }) => record);

/** The agent session. */
export const SESSION = recordsOf("session")[0] as { readonly id: string; readonly title: string };

/** The final listing, of the session and of its subagent's. */
export const LISTING = recordsOf("message").map(messageOf);

/** The last message of a listing that was read in mid-turn. */
export const snapshot = (name: "listingWhileAsked" | "listingWhileText"): Recorded =>
  messageOf(LINES.find((line) => line.name === name)?.record);

/** What `GET /question` or `GET /permission` listed in mid-turn. */
export const openRequests = (name: "question" | "permission"): readonly unknown[] =>
  LINES.find((line) => line.kind === "open" && line.name === name)?.record as readonly unknown[];

/** The events of one turn, or of all. */
export const eventsOf = (turn?: string): readonly RecordedEvent[] =>
  LINES.filter((line) => line.kind === "event" && (turn === undefined || line.turn === turn)).map(
    ({ record }) => record as RecordedEvent,
  );

/** A session that waits in the account's queue: what it prints, and the wait for its start. */
import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "../../client.ts";
import type { Answer } from "../../contract.ts";
import { EXIT, Failure } from "../../failure.ts";
import { time } from "../../terminal.ts";

type Created = Answer<"POST /v1/projects/:pid/sessions">;
export type Queued = Extract<Created, { readonly status: "queued" }>;

export const isQueued = (answer: Created): answer is Queued => answer.status === "queued";

/** How often the queue is looked at, ms. */
const PAUSE_MS = 1_000;

const place = (position: number): string => `Place ${position} in the queue.`;

/** What a person reads of it, beside the line on standard output. */
export const queuedNotes = ({ queue_id: id, position, expires_at: until }: Queued): readonly string[] => [
  `All sessions of the account are in use. The session starts when one is free, and waits until ${time(until)}.`,
  place(position),
  `To cancel it: platform triggers cancel ${id}`,
];

type Fire = Answer<"GET /v1/projects/:pid/fires/:id">;

const ENDS: Readonly<Partial<Record<Fire["status"], string>>> = {
  expired: "The session did not start: it waited too long.",
  cancelled: "The session did not start: the request was cancelled.",
};
/** By the reason, where the status does not say it. */
const REASONS: ReadonlyMap<string | null, string> = new Map([
  [
    "role_lost",
    "The session did not start: the person who asked for it no longer has the role member in the project.",
  ],
  ["user_deactivated", "The session did not start: the person who asked for it was deactivated."],
]);

/** One look. Null if the service cannot be reached, or is busy. */
const look = async (client: Client, params: { readonly pid: string; readonly id: string }) => {
  try {
    return (await client.call("GET /v1/projects/:pid/fires/:id", { params })).value;
  } catch (error) {
    if (error instanceof Failure && error.exit === EXIT.tryAgain) return null;
    throw error;
  }
};

/**
 * Waits until the session starts.
 *
 * @param note gets a line whenever its place has changed
 * @returns its id
 * @throws Failure if the request expired or was cancelled
 */
export const untilStarted = async (
  client: Client,
  { pid, queued }: { readonly pid: string; readonly queued: Queued },
  note: (line: string) => void,
): Promise<string> => {
  let position = queued.position;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one look follows the other
    const fire = await look(client, { pid, id: queued.queue_id });
    if (fire?.session_id != null) return fire.session_id;
    if (fire !== null && fire.status !== "queued")
      throw new Failure(EXIT.refused, fire.reason ?? fire.status, {
        message:
          REASONS.get(fire.reason) ?? ENDS[fire.status] ?? `The session did not start: ${fire.status}.`,
      });
    if (fire?.position != null && fire.position !== position) {
      position = fire.position;
      note(place(position));
    }
    // oxlint-disable-next-line no-await-in-loop -- the next look waits
    await pause(PAUSE_MS);
  }
};

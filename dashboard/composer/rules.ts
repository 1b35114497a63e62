/** What the composer of a conversation says and offers at a moment. */
import { hasEnded } from "../projects/project.ts";
import type { Turn } from "../wire.d.ts";
import type { Attachment } from "./files.ts";
import type { Message } from "../live/outbox.ts";

/** The facts that decide on the buttons. */
export interface Moment {
  /** Of the session. */
  readonly status: string;
  readonly turn: Turn["state"];
  readonly stopping: boolean;
  /** Whether the agent has said nothing yet. */
  readonly isFirst: boolean;
  /** Whether the agent waits for an answer that can be written here. */
  readonly asksInWords: boolean;
  /** The last one that the agent used. */
  readonly model: string | null;
}

/** The choice for the next message. Empty: as before. */
export interface Chosen {
  readonly model: string;
  readonly agent: string;
  /** How hard the model thinks. */
  readonly effort: string;
}

export const NOT_CHOSEN: Chosen = { model: "", agent: "", effort: "" };

/** Advice after a refusal, where the service's own sentence has none. */
const ADVICE: Readonly<Record<string, string>> = {
  secret_in_message:
    "Nothing was sent. Remove the secret's value, and name the secret instead. This page does not store the text.",
  queue_full: "Cancel a waiting message, or wait until the agent has taken one. Then send again.",
  cap_reached: "Stop another session, then send again.",
  session_cap_reached: "Stop another session, then send again.",
};

/** The words for a refused message. */
export const refusalWords = ({
  code,
  message,
}: {
  readonly code: string;
  readonly message: string;
}): string => `${message} ${ADVICE[code] ?? "Your text is in the text area again."}`;

export const placeholderOf = ({
  status,
  turn,
  asksInWords,
}: Pick<Moment, "status" | "turn" | "asksInWords">): string => {
  if (hasEnded(status)) return "A message restarts the session…";
  if (asksInWords) return "Answer the agent…";
  if (turn === "requires_action") return "Answer above. A message waits until then…";
  return turn === "idle" ? "Message the agent…" : "Write the next message…";
};

export interface Button {
  /** `send` submits the form. */
  readonly does: "stop" | "now" | "queue" | "send";
  readonly label: string;
  readonly explanation: string;
}

const SEND_WORDS = {
  restart: ["Send and restart", "Restarts the session in a new sandbox, and sends the message"],
  answer: ["Answer", "Answer the agent's question"],
  queue: ["Queue", "The agent gets the message after its turn"],
  send: ["Send", "Send the message"],
} as const;

/** The buttons, the main one last. @param hasFiles an answer is words alone */
export const buttonsAt = (
  { status, turn, stopping, asksInWords }: Moment,
  hasFiles: boolean,
): readonly Button[] => {
  const isEnded = hasEnded(status);
  const isAtWork = turn !== "idle" && !isEnded;
  const answers = asksInWords && !hasFiles;
  const [label, explanation] =
    SEND_WORDS[isEnded ? "restart" : answers ? "answer" : isAtWork ? "queue" : "send"];
  const stop: Button = {
    does: "stop",
    label: stopping ? "Stopping…" : "Stop",
    explanation: "End the agent's turn. Its answer so far stays.",
  };
  const now: Button = {
    does: "now",
    label: "Send now",
    explanation: "End the agent's turn, and send the message at once",
  };
  const queue: Button = { does: "queue", label: SEND_WORDS.queue[0], explanation: SEND_WORDS.queue[1] };
  return [
    ...(isAtWork ? [stop] : []),
    ...(isAtWork && !answers ? [now] : []),
    ...(answers ? [queue] : []),
    { does: "send", label, explanation },
  ];
};

/** The message of what is typed and chosen. @param restore whether a restart brings saved work back */
export const messageOf = (
  { text: typed, chosen, files }: { text: string; chosen: Chosen; files: readonly Attachment[] },
  delivery: Message["delivery"],
  { isEnded, restore }: { readonly isEnded: boolean; readonly restore: boolean },
): Message => {
  const text = typed.replace(/^\s*\n/, "").trimEnd();
  return {
    text: text.trim() === "" ? "" : text,
    delivery,
    ...(isEnded && { restore }),
    ...(files.length > 0 && { attachments: files }),
    ...(chosen.model !== "" && { model: chosen.model }),
    ...(chosen.agent !== "" && { agent: chosen.agent }),
    ...(chosen.effort !== "" && { effort: chosen.effort }),
  };
};

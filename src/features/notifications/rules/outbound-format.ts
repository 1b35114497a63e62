/** What a receiver gets: JSON for programs, a line with a link for Slack and Discord, or a short mail. */
import { noticesUrl, type OutboundMessage } from "./outbound-event.ts";

export const OUTBOUND_FORMATS = ["standard", "slack", "discord"] as const;
export type OutboundFormat = (typeof OUTBOUND_FORMATS)[number];
/** A person's own receiver may be her mailbox. */
export type ReceiverFormat = OutboundFormat | "mail";

/** Names of other systems have at most this many characters in a chat's line. */
const NAME_MAX = 100;

/** A name in one line. Control characters become spaces. */
const plain = (value: unknown): string =>
  String(value ?? "")
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, NAME_MAX)
    .toWellFormed();

const ENDED: Readonly<Record<string, string>> = {
  completed: "has finished",
  failed: "failed",
  interrupted: "was interrupted",
};

/** In which session, if it has a name. */
const inSession = ({ session_name: name }: OutboundMessage["data"]): string =>
  name == null ? "" : ` in ${plain(name)}`;

/** How a turn ended, and after that of which session, if it has a name. */
const turnEnded = ({ data }: OutboundMessage): string => {
  const { state, code, change_request: number } = data;
  return [
    `the agent ${ENDED[String(state)] ?? "has ended its turn"}`,
    code == null ? "" : ` (${plain(code)})`,
    inSession(data),
    number == null ? "" : `, change request ${plain(number)} is open`,
  ].join("");
};

/** For what the agent waits. */
const AWAITED: Readonly<Record<string, string>> = {
  question: "an answer",
  permission: "a permission",
  plan: "the approval of its plan",
};

/** The session, by its name if the message has one. */
const sessionOf = ({ session_name: name }: OutboundMessage["data"]): string =>
  name == null ? "a session" : `the session ${plain(name)}`;

/** What happened, as the rest of the line after the project's name. */
const sentenceOf = (message: OutboundMessage): string => {
  const { type, data } = message;
  const [number, slug] = [plain(data["number"]), data["trigger_slug"]];
  const run = slug == null ? "a session that a person asked for" : `a run of the trigger ${plain(slug)}`;
  const session = sessionOf(data);
  const because = (field: string) => (data[field] == null ? "" : ` (${plain(data[field])})`);
  switch (type) {
    case "session.waiting":
      return `${session} waits for ${AWAITED[String(data["reason"])] ?? "a person"}`;
    case "session.turn_ended":
      return turnEnded(message);
    case "approval.waiting":
      return `a call of ${plain(data["tool"])} (${plain(data["connector"])}) waits for a person's approval${inSession(data)}`;
    case "session.work_unsaved":
      return data["state"] === "waiting"
        ? `the work of ${session} cannot be saved${because("reason")}, so its sandbox stays`
        : `${session} ended, and not all of its work could be saved${because("reason")}`;
    case "session.stopped":
      return `${session} stopped${because("stop_reason")}`;
    case "session.failed":
      return `${session} failed${because("code")}`;
    case "change_request.opened":
      return `change request ${number} is open`;
    case "change_request.review_requested":
      return `${plain(data["reviewer_name"])} is asked to review change request ${number}`;
    case "change_request.merged":
      return `change request ${number} is merged`;
    case "change_request.closed":
      return `change request ${number} is closed`;
    case "fire.failed":
      return `${run} could not start${because("reason")}`;
    case "fire.expired":
      return `${run} waited too long`;
    case "queue.full":
      return `the queue is full${because("limit")}`;
    case "manifest.stale":
      return "the newest platform.toml cannot be read";
    case "webhook.disabled":
      return `an outbound webhook was disabled${because("reason")}`;
    case "webhook.test":
      return "this is a test";
  }
};

const lineOf = (message: OutboundMessage): string =>
  `${plain(message.data["project_name"])}: ${sentenceOf(message)}`;

/** Slack's three special characters. Without them no mention and no link is possible. */
const forSlack = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Every character that has a meaning in Discord's Markdown. */
const forDiscord = (text: string): string =>
  text.replaceAll(/[\\*_~`|<>[\]()#@:-]/g, (found) => `\\${found}`);

/**
 * The body that is sent, always the same for the same message.
 *
 * @returns JSON, a few hundred bytes.
 */
export const formattedBody = (format: OutboundFormat, message: OutboundMessage): string => {
  const url = String(message.data["url"] ?? "");
  switch (format) {
    case "standard":
      return JSON.stringify({
        type: message.type,
        timestamp: new Date(message.at).toISOString(),
        data: message.data,
      });
    case "slack":
      return JSON.stringify({ text: `${forSlack(lineOf(message))}. <${forSlack(url)}|Open>` });
    case "discord":
      return JSON.stringify({
        content: `${forDiscord(lineOf(message))}. <${url}>`,
        // A name may contain @everyone.
        allowed_mentions: { parse: [] },
      });
  }
};

export interface MailText {
  readonly subject: string;
  readonly text: string;
}

/** A message as a mail of plain text. Its last line says where its reader turns such mail off. */
export const mailText = (message: OutboundMessage): MailText => {
  const [subject, url] = [lineOf(message), String(message.data["url"] ?? "")];
  const [service = ""] = url.split("/#/", 1);
  return {
    subject,
    text: `${subject}.\n\n${url}\n\n-- \nYou asked for this mail. Change that at ${noticesUrl(service)}\n`,
  };
};

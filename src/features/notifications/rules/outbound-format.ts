/** What a receiver gets: JSON for programs, a line with a link for Slack and Discord, or a short mail. */
import { eventRecord, plain } from "./events.ts";
import { noticesUrl, TEST_EVENT, type OutboundMessage } from "./outbound-event.ts";

export const OUTBOUND_FORMATS = ["standard", "slack", "discord"] as const;
export type OutboundFormat = (typeof OUTBOUND_FORMATS)[number];
/** A person's own receiver may be her mailbox. */
export type ReceiverFormat = OutboundFormat | "mail";

/** What happened, in one line that begins with the project's name. */
const line = ({ type, data }: OutboundMessage): string => {
  const sentence = type === TEST_EVENT ? "this is a test" : eventRecord(type).sentence(data);
  return `${plain(data["project_name"])}: ${sentence}`;
};

/** Slack's three special characters. Without them no mention and no link is possible. */
const forSlack = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Every character that has a meaning in Discord's Markdown. */
const forDiscord = (text: string): string => text.replaceAll(/[\\*_~`|<>[\]()#@:-]/g, (mark) => `\\${mark}`);

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
      return JSON.stringify({ text: `${forSlack(line(message))}. <${forSlack(url)}|Open>` });
    case "discord":
      return JSON.stringify({
        content: `${forDiscord(line(message))}. <${url}>`,
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
  const [subject, url] = [line(message), String(message.data["url"] ?? "")];
  const [service = ""] = url.split("/#/", 1);
  return {
    subject,
    text: `${subject}.\n\n${url}\n\n-- \nYou asked for this mail. Change that at ${noticesUrl(service)}\n`,
  };
};

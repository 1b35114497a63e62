/**
 * Notices about a person's own sessions, by mail or in her own chat: that she is asked, and that her agent has finished or failed.
 * Her browser tells her the same (dashboard/live).
 */
import { isStartedBy, type SessionOrigin } from "../../../domain/person/own-session.ts";
import { NEWS } from "../../../domain/service/news.ts";
import { eventRecord, type NoticeKind, OUTBOUND_EVENTS } from "./events.ts";
import {
  noticesUrl,
  outboundMessage,
  outboundType,
  TEST_EVENT,
  type OutboundMessage,
  type SourceEvent,
} from "./outbound-event.ts";
import { OUTBOUND_FORMATS } from "./outbound-format.ts";

/** Where a person is told. */
export const NOTICE_PLACES = ["mail", "chat"] as const;
export type NoticePlace = (typeof NOTICE_PLACES)[number];

/** The formats of chats. A program of hers takes her project's events. */
export const CHAT_FORMATS = OUTBOUND_FORMATS.filter((format) => format !== "standard");
export type ChatFormat = (typeof CHAT_FORMATS)[number];

/** A session, and who steers it. */
export interface NoticedSession extends SessionOrigin {
  /** Its name, else its trigger's slug, else null. */
  readonly name: string | null;
  /** The people whose messages it has. */
  readonly writers: readonly string[];
}

export interface OwnNews {
  readonly event: SourceEvent;
  readonly projectName: string;
  readonly session: NoticedSession | null;
}

/** The kinds of news among which these are (domain/service/news.ts). */
export const NOTICE_NEWS = NEWS.filter((kind) =>
  OUTBOUND_EVENTS.some((type) => type === kind && eventRecord(type).notice !== undefined),
);

/** Null if the event has no notice. */
export const noticeKind = (event: Pick<SourceEvent, "type" | "data">): NoticeKind | null => {
  const type = outboundType(event);
  return (type && eventRecord(type).notice?.(event.data)) ?? null;
};

/** Whether an event is about what is hers: a session that she started or steers, or a review that another person asks of her. */
export const isOwnNews = ({ event: { type, data }, session }: OwnNews, userId: string): boolean => {
  if (type === "change_request.review_requested")
    return data["reviewer_id"] === userId && data["asked_by"] !== userId;
  return session !== null && (isStartedBy(session, userId) || session.writers.includes(userId));
};

/** Whether a receiver of a person gets the event. */
export const isWanted = (
  news: OwnNews,
  { userId, tells }: { readonly userId: string; readonly tells: readonly NoticeKind[] },
): boolean => {
  const kind = noticeKind(news.event);
  return kind !== null && tells.includes(kind) && isOwnNews(news, userId);
};

/** The message of an event, which is the same for each person and place. */
export const ownMessage = (
  { event, projectName, session }: OwnNews,
  publicUrl: string,
): OutboundMessage | null => {
  const message = outboundMessage(event, { projectName, publicUrl });
  if (message === null || session === null) return message;
  return { ...message, data: { ...message.data, session_name: session.name } };
};

/** @param installation its name, in the place of a project's */
export const ownTest = (
  id: string,
  {
    at,
    installation,
    publicUrl,
  }: { readonly at: number; readonly installation: string; readonly publicUrl: string },
): OutboundMessage => ({
  id: `evt_${id.replaceAll("-", "")}`,
  type: TEST_EVENT,
  at,
  data: { project_name: installation, url: noticesUrl(publicUrl) },
});

/**
 * Short forms of the API's answers, for agents: ids, names of states, links. Texts that people, agents or senders wrote stand in
 * fields `quoted`, so that an agent can tell them from what the platform says. They are cut.
 */
import { contentText } from "../../domain/conversation/conversation.ts";
import type { ConversationWire, ItemWire } from "../api/sessions/conversation.ts";
import type { FireDetail, FirePage } from "../api/triggers/fires.ts";
import type { SessionPage, SessionWire } from "../api/sessions/sessions.ts";
import type { TriggerListing } from "../api/triggers/triggers.ts";

export const NAME_LENGTH = 300;
export const TEXT_LENGTH = 4000;
const LOG_LENGTH = 16_000;
/** How many files, commits and conflicts are listed. */
export const LISTED = 50;

/** Where the pages of a project are, with a link to each of its sessions and change requests. */
export interface Pages {
  readonly publicUrl: string;
  readonly projectId: string;
}

type Session = typeof SessionWire.Encoded;
type Fire = (typeof FirePage.Encoded)["fires"][number];
type Item = typeof ItemWire.Encoded;

/** The beginning of a text, without half of a character. */
export const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length).toWellFormed()}… (${text.length} characters)`;

const cutOrNull = (text: string | null, length: number): string | null =>
  text === null ? null : cut(text, length);

export const link = ({ publicUrl, projectId }: Pages, rest: string): string =>
  `${publicUrl}/#/projects/${projectId}${rest}`;

const sessionShape = (session: Session, pages: Pages) => ({
  id: session.id,
  status: session.status,
  turn: session.turn.state,
  parent_session_id: session.parent_session_id,
  trigger_slug: session.trigger_slug,
  base_ref: session.base_ref,
  agent_name: session.agent_name,
  created_at: session.created_at,
  link: link(pages, `/sessions/${session.id}`),
  quoted: {
    name: cutOrNull(session.name, NAME_LENGTH),
    prompt: cutOrNull(session.initial_prompt, NAME_LENGTH),
  },
});

export const sessionsShape = ({ sessions, next_cursor }: typeof SessionPage.Encoded, pages: Pages) => ({
  sessions: sessions.map((session) => sessionShape(session, pages)),
  next_cursor,
});

export const oneSessionShape = (session: Session, pages: Pages) => ({
  ...sessionShape(session, pages),
  failure: session.failure && { code: session.failure.code, at: session.failure.at },
  stop_reason: session.stop_reason,
  last_turn: session.last_turn && { state: session.last_turn.state, at: session.last_turn.at },
  usage: session.usage,
  quoted: {
    name: cutOrNull(session.name, NAME_LENGTH),
    prompt: cutOrNull(session.initial_prompt, TEXT_LENGTH),
    failure: session.failure && cut(session.failure.message, NAME_LENGTH),
  },
});

const itemShape = (item: Item) => ({
  id: item.id,
  kind: item.kind,
  role: item.role,
  status: item.status,
  created_at: item.created_at,
  quoted: {
    text: cut(contentText(item.content), TEXT_LENGTH),
    ...(item.tool !== null && {
      tool: cut(item.tool.name, NAME_LENGTH),
      output: cut(item.tool.output, NAME_LENGTH),
    }),
  },
});

export const conversationShape = (page: typeof ConversationWire.Encoded) => ({
  turn: page.state.state,
  items: page.items.map(itemShape),
  next_cursor: page.next_cursor,
});

/** The end of a log. */
export const logShape = (log: string) => ({
  characters: log.length,
  quoted: { log: log.slice(-LOG_LENGTH).toWellFormed() },
});

export const triggersShape = ({ triggers, errors, triggers_paused }: typeof TriggerListing.Encoded) => ({
  triggers: triggers.map(({ slug, name, type, agent, enabled, cron, timezone, ...trigger }) => ({
    slug,
    type,
    enabled,
    agent,
    ...(cron !== undefined && { cron, timezone }),
    last_fired_at: trigger.last_fired_at,
    next_fire_at: trigger.next_fire_at,
    last_fire: trigger.last_fire,
    quoted: { name: cut(name, NAME_LENGTH) },
  })),
  triggers_paused,
  manifest_errors: errors.slice(0, LISTED).map(({ path, message, line }) => ({ path, line, message })),
});

const fireShape = (fire: Fire) => ({
  id: fire.id,
  trigger_slug: fire.trigger_slug,
  kind: fire.kind,
  status: fire.status,
  reason: fire.reason,
  received_at: fire.received_at,
  session_id: fire.session_id,
});

export const firesShape = ({ fires, next_cursor }: typeof FirePage.Encoded) => ({
  fires: fires.map(fireShape),
  next_cursor,
});

export const oneFireShape = (fire: typeof FireDetail.Encoded) => ({
  ...fireShape(fire),
  quoted: {
    prompt: cutOrNull(fire.prompt, TEXT_LENGTH),
    request: fire.request && { encoding: fire.request.encoding, body: cut(fire.request.body, TEXT_LENGTH) },
  },
});

/**
 * Spans of a session's life, and of requests. The trace of a session has the session's id, and the ids of its spans follow
 * from what they are about. So each node, also after a restart, and without a stored context, adds to the same trace, and
 * a context that a sandbox or a sender claims counts for nothing.
 *
 *  N1 A span has a name and attributes of these lists, and nothing else: no path, query, code, prompt, message or secret.
 */
import { createHash } from "node:crypto";
import { isLabelValue, OTHER } from "./metrics.ts";

export const SPAN_NAMES = [
  "request",
  "session.start",
  "admission",
  "boot",
  "boot.place",
  "boot.created",
  "boot.daemon",
  "turn",
  "tool_call",
  "git",
] as const;
export type SpanName = (typeof SPAN_NAMES)[number];

/** Attributes are values that metrics could have, too. */
export const SPAN_ATTRIBUTES = ["route", "status", "outcome", "by", "step", "kind", "operation"] as const;
export type SpanAttributes = Readonly<Partial<Record<(typeof SPAN_ATTRIBUTES)[number], string>>>;

/** The root of a session's trace, by its key. */
export const ROOT = "session.start";

export interface SpanReport {
  readonly name: SpanName;
  /** The session whose trace it belongs to. If null, the span is a trace of its own. */
  readonly sessionId: string | null;
  /** Unique in its trace. Other spans name it as their parent. */
  readonly key: string;
  /** The key of its parent in the same trace. Null if it is the root. */
  readonly parent: string | null;
  /** ms since the epoch. */
  readonly from: number;
  readonly to: number;
  readonly failed: boolean;
  readonly attributes: SpanAttributes;
}

const digest = (text: string, characters: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, characters);

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** 32 hexadecimal digits: a session's id without its dashes. */
export const spanTraceId = ({ sessionId, key }: Pick<SpanReport, "sessionId" | "key">): string =>
  sessionId !== null && UUID.test(sessionId) ? sessionId.replaceAll("-", "") : digest(sessionId ?? key, 32);

/** 16 hexadecimal digits. */
export const deriveSpanId = (sessionId: string | null, key: string): string =>
  digest(`${sessionId ?? ""}/${key}`, 16);

/** The attributes as they are sent (N1). */
export const shownAttributes = (attributes: SpanAttributes): readonly (readonly [string, string])[] =>
  SPAN_ATTRIBUTES.flatMap((name) => {
    const value = attributes[name];
    return value === undefined ? [] : [[name, isLabelValue(value) ? value : OTHER] as const];
  });

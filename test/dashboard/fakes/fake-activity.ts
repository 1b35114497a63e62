/** The fake's list of what happened, and its triggers of all projects. */
import type { World } from "./fake-service.ts";

type Json = Readonly<Record<string, unknown>>;

export interface FakeActivity {
  /** Newest first. */
  activity: Json[];
  /** Until when the reader has seen it. */
  activitySeen: string | null;
}

/** An entry about nothing in particular. */
export const NO_FACTS = {
  session: null,
  change_request: null,
  trigger_slug: null,
  fire_id: null,
  person: null,
  reviewer: null,
  state: null,
  code: null,
  own: false,
};

/** @param now ms since the epoch that the instants stand around */
export const sampleActivity = (
  now: number,
  { projectId, sessionId, fireId }: { projectId: string; sessionId: string; fireId: string },
): FakeActivity => {
  const at = (seconds: number) => new Date(now - seconds * 1000).toISOString();
  let made = 0;
  const entry = (kind: string, seconds: number, rest: Json): Json => {
    made += 1;
    return {
      id: String(9000 - made),
      kind,
      at: at(seconds),
      project: { id: projectId, name: "Greeter" },
      ...NO_FACTS,
      ...rest,
    };
  };
  const session = { id: sessionId, name: "Write a note about the push below" };
  const change = { change_request: { number: 7, title: "Note the first push" }, session };
  const ben = { id: "v", name: "Ben" };
  const mona = { id: "u", name: "Mona" };
  const fired = { trigger_slug: "on-push", fire_id: fireId };
  return {
    activity: [
      entry("session.waiting", 40, { session, state: "question", own: true }),
      entry("change_request.remarked", 300, {
        ...change,
        person: ben,
        state: "changes_requested",
        own: true,
      }),
      entry("change_request.review_requested", 400, { ...change, person: ben, reviewer: mona, own: true }),
      entry("change_request.opened", 600, { ...change, person: mona, own: true }),
      entry("delivery.refused", 900, { trigger_slug: "on-push", code: "signature_mismatched" }),
      entry("session.failed", 90_000, { session, code: "sandbox_lost" }),
      entry("session.turn_ended", 91_000, { session, state: "completed", own: true }),
      entry("session.turn_ended", 92_000, { session, state: "completed", own: true }),
      entry("trigger.fired", 400_000, { ...fired, session }),
      entry("trigger.fired", 400_100, { ...fired, session }),
      entry("fire.failed", 401_000, { ...fired, code: "prompt_too_large" }),
    ],
    activitySeen: at(500),
  };
};

const PAGE_OF_TRIGGERS = 1;

/** Null is an answer without a body, undefined no answer of these. */
export const activityAnswer = (
  world: World,
  { route, query, body }: { readonly route: string; readonly query: URLSearchParams; readonly body: string },
): Json | null | undefined => {
  switch (route) {
    case "GET /v1/activity":
      return {
        entries: world.activity.filter(({ own }) => query.get("own") !== "true" || own),
        seen_at: world.activitySeen,
        next_cursor: null,
      };
    case "POST /v1/activity/seen":
      world.activitySeen = String(Object(JSON.parse(body)).at);
      return null;
    case "GET /v1/triggers": {
      const { triggers, errors, manifest, triggers_paused: paused } = Object(world.listing);
      const projects = world.projects.slice(0, PAGE_OF_TRIGGERS).map(({ id, name }) => ({
        id,
        name,
        triggers,
        errors: errors.length,
        stale: manifest.stale,
        triggers_paused: paused,
      }));
      return { projects, next_cursor: null };
    }
    default:
      return undefined;
  }
};

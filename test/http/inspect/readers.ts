/** What the tests of the inspector share: steps, rows of the history, and a page over both. */
import * as Effect from "effect/Effect";
import type { InspectedStep } from "../../../src/actors/inspector.ts";
import type { ActorTransition } from "../../../src/store/ports/transitions.ts";
import { inspectInto } from "../../../src/http/inspect/inspect.ts";
import { Feed } from "../../../src/http/inspect/feed.ts";
import { openInspectPage } from "../../../src/http/inspect/page.ts";

/** The session s1 is loaded, unless `change` says otherwise. */
export const step = (change: Partial<InspectedStep>): InspectedStep => ({
  machine: "session",
  actorId: "s1",
  event: null,
  accepted: true,
  snapshot: { state: "provisioning", context: {} },
  commands: [],
  left: false,
  ...change,
});

/** The session s1 goes from provisioning to running, unless `change` says otherwise. */
export const row = (change: Partial<ActorTransition>): ActorTransition => ({
  actor: { kind: "session", id: "s1" },
  at: 1,
  event: "sandbox.live",
  from: "provisioning",
  to: "running",
  detail: null,
  commands: [],
  ...change,
});

/** A page on a free port, until the scope closes. */
export const openPage = Effect.fnUntraced(function* (past: readonly ActorTransition[] = []) {
  const feed = new Feed();
  const page = yield* openInspectPage({ port: 0, feed, past: Effect.succeed(past) });
  return { ...page, inspect: inspectInto(feed) };
});

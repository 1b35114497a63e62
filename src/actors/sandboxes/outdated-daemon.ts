/**
 * Stops a session if an upgraded service finds that its running sandbox has a daemon that is too old (domain/sandbox/daemon-protocol.ts).
 * The conversation says so, the sandbox saves its work and ends, and the session gives its slot back. The session starts
 * again with its next message, immediately if one waits.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { EMPTY_ITEM, type NativeItem } from "../../domain/conversation/conversation.ts";
import { OLDEST_DAEMON_PROTOCOL } from "../../domain/sandbox/daemon-protocol.ts";
import type { DaemonOutdated } from "../../sandbox/daemon.ts";
import { Conversations } from "../../store/ports/sessions/conversations.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { Actors } from "../../services/actors.ts";
import { awaken } from "../awaken.ts";
import { deliver } from "../delivery.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";

const NOTE =
  "The service was upgraded, and this session's sandbox is too old for the new version. The service saves the sandbox's " +
  "work and stops it. The next message starts a new sandbox with the saved work.";

/** A sandbox, and the session whose work it has. */
interface Place {
  readonly sandboxId: string;
  readonly sessionId: string;
}

/** One item a sandbox, however often it is found. */
const noteAbout = (
  sandboxId: string,
  { rev, at }: { readonly rev: number; readonly at: number },
): NativeItem => ({
  ...EMPTY_ITEM,
  native_id: `outdated-${sandboxId}`,
  rev,
  kind: "note",
  role: null,
  status: "completed",
  turn_id: null,
  content: [{ type: "text", text: NOTE }],
  created_at: at,
  completed_at: at,
});

/** @returns a function that has the session of a sandbox stop, unless it is about to stop anyway. It may be repeated. */
export const outdatedStopper = Effect.gen(function* () {
  const conversations = yield* Conversations;
  const sessions = yield* Sessions;
  const actors = yield* Actors;

  const note = Effect.fnUntraced(function* ({ sandboxId, sessionId }: Place) {
    const now = yield* Clock.currentTimeMillis;
    const conversation = yield* conversations.open(sessionId, now);
    const last = conversation?.sandbox?.id === sandboxId ? conversation.sandbox.rev : 0;
    const items = [noteAbout(sandboxId, { rev: last + 1, at: now })];
    yield* conversations.note(sessionId, { sandboxId, items, turn: null, rev: last + 1, now });
  });

  return Effect.fnUntraced(function* (place: Place, { protocol }: DaemonOutdated) {
    const { sandboxId, sessionId } = place;
    const session = yield* Effect.orDie(waitOutOutage("session", sessions.get(sessionId)));
    if (session === null || session.ending !== null) return;
    yield* Effect.logWarning(
      "a session's sandbox is too old for this version; its work is saved and it stops",
      {
        session: sessionId,
        sandbox: sandboxId,
        protocol,
        oldest: OLDEST_DAEMON_PROTOCOL,
      },
    );
    yield* Effect.orDie(waitOutOutage("conversation", note(place)));
    yield* deliver(actors.session(sessionId, { type: "daemon.outdated", sandboxId }));
  });
});

/** Starts a session again that stopped for its daemon, if a message waits. One that comes later starts it by itself. */
export const startAwaited = Effect.fnUntraced(function* (sessionId: string) {
  const session = yield* (yield* Sessions).get(sessionId);
  if (session?.stopReason !== "outdated") return;
  const conversation = yield* (yield* Conversations).memory.load(sessionId);
  const { queue = [], held = false } = conversation?.snapshot.context ?? {};
  if (queue.length > 0 && !held) yield* awaken(session);
});

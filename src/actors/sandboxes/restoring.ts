/**
 * Gives a booting sandbox its session's saved work, and says on the session what came back. The daemon tells the agent, and has
 * a note in the conversation (daemon/agent/briefing.ts).
 */
import { Readable } from "node:stream";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { wholeFrame } from "../../domain/save/frames.ts";
import type { RestorePart, RestorePlan } from "../../domain/save/listing.ts";
import { LONG_SAVE_MS } from "../../domain/save/order.ts";
import { notRestored, type Restored } from "../../domain/save/saved.ts";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider } from "../../sandbox/port.ts";
import { Saves } from "../../saves/port.ts";
import { withLink } from "../../services/answered.ts";
import { serviceContext } from "../../services/sessions/service-context.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";

interface Place {
  readonly sandboxId: string;
  readonly sessionId: string;
}

/** How long a restoration that fails is tried again, from its beginning on, ms. A node or the database is often back by then. */
const AGAIN_MS = 30_000;
/** Also a long one that breaks off late is tried so often. */
const TRIES_MIN = 3;
/** After all parts that could still come. */
const END_PART: RestorePart = { number: 9999, isLast: true };
/** An answer to a body without work comes at once. */
const EMPTY_TIMEOUT_MS = 20_000;

/** A body without work, so that the boot goes on and the agent hears why. */
const bodyWithout = (error: string): Readable => {
  const plan: RestorePlan = { saves: [], missing: [], error };
  return Readable.from([wholeFrame(Buffer.from(JSON.stringify(plan)))], { objectMode: false });
};

export const restorer = Effect.gen(function* () {
  const saves = yield* Saves;
  const sessions = yield* Sessions;
  const daemon = yield* DaemonClient;
  const provider = yield* SandboxProvider;
  const sign = yield* serviceContext;

  /** @returns null if the session is gone */
  const attempt = Effect.fnUntraced(function* ({ sandboxId, sessionId }: Place) {
    const session = yield* sessions.get(sessionId);
    if (session === null) return null;
    const { projectId } = session;
    const outcome = yield* Effect.timeoutOrElse(saves.restore({ projectId, sessionId, sandboxId }), {
      duration: LONG_SAVE_MS,
      orElse: () => Effect.succeed(notRestored("the saved work could not be brought back within 10 minutes")),
    });
    yield* sessions.noteRestored(sessionId, { sandboxId, restored: outcome });
    return outcome;
  });

  /** The sandbox boots without the work, which stays saved. */
  const goOn = Effect.fnUntraced(function* ({ sandboxId, sessionId }: Place, error: string) {
    const link = yield* withLink(provider, sandboxId);
    const context = yield* sign(sandboxId, sessionId);
    yield* daemon.saving.restore(link, context, {
      body: bodyWithout(error),
      timeoutMs: EMPTY_TIMEOUT_MS,
      part: END_PART,
    });
  });

  return {
    /**
     * Gives a sandbox the saves that it waits for. To be performed each time that it says so, also after a delivery that broke off:
     * nothing happens after one that succeeded.
     */
    restoring: (place: Place) => {
      let since: number | null = null;
      let failures = 0;
      let isDone = false;
      let givenUpFor: string | null = null;
      return Effect.gen(function* () {
        if (isDone) return;
        if (givenUpFor !== null) return yield* Effect.ignore(goOn(place, givenUpFor));
        const began = yield* Clock.currentTimeMillis;
        since ??= began;
        const outcome = yield* attempt(place);
        const error = outcome?.error ?? null;
        isDone = error === null;
        if (error === null) return;
        failures += 1;
        const now = yield* Clock.currentTimeMillis;
        const isOver = now - began >= LONG_SAVE_MS || (failures >= TRIES_MIN && now - since >= AGAIN_MS);
        if (!isOver) return;
        givenUpFor = error;
        yield* Effect.ignore(goOn(place, error));
      });
    },
    /** Records what a sandbox brought back. */
    note: Effect.fnUntraced(function* ({ sandboxId, sessionId }: Place, restored: Restored | null) {
      const session = yield* sessions.get(sessionId);
      if (session?.sandboxId !== sandboxId) return;
      // The service knows what it gave, unless it ended before the answer. Daemons of former versions fetched it by themselves.
      if (restored === null || session.restored?.error === null) return;
      yield* sessions.noteRestored(sessionId, { sandboxId, restored: restored });
    }),
  };
});

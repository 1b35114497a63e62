/** Interprets the account machine's commands: drains the account's queue into free slots. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import {
  account,
  type AccountCommand,
  type AccountEvent,
  type AccountSnapshot,
} from "../machines/account.ts";
import { Pause } from "../ground/pause.ts";
import { ROOT } from "../domain/service/span.ts";
import { Faults } from "../store/ports/faults.ts";
import { Admissions } from "../store/ports/triggers/admissions.ts";
import { Traces } from "../telemetry/port.ts";
import { Actors } from "../services/actors.ts";
import { actorLayer, type EntityOptions } from "./cluster.ts";
import { newUuid } from "../services/entropy.ts";
import { TransitionRecord } from "../services/transition-record.ts";
import { StartLimits } from "../services/sessions/start-limits.ts";
import { startActor, type ActorLimits, type Handlers } from "./host.ts";
import { Doubt } from "../services/doubt.ts";
import { volatileMemory } from "./volatile.ts";

export const ACCOUNT_LIMITS: ActorLimits = { mailbox: 1024, restarts: { restarts: 5, withinMs: 30_000 } };

export interface AccountActorOptions extends EntityOptions {
  /** Boot deadline for sessions that a drain starts, ms (PLATFORM_BOOT_TIMEOUT_MS). */
  readonly bootTimeoutMs: number;
}

/** The most waiting fires that one drain starts. If more wait, another drain follows. */
const DRAIN_BATCH = 64;
const PAUSE = "1 second";

/** The account entities. A drain finds an account's state again, so the actor keeps its memory to itself. */
export const accountActors = (options: AccountActorOptions) =>
  actorLayer(
    "account",
    Effect.fnUntraced(function* (id: string) {
      const { keep } = yield* TransitionRecord;
      return yield* startActor({
        id,
        machine: account,
        memory: volatileMemory<AccountSnapshot, AccountEvent, AccountCommand>(account.start({}), (step) =>
          keep({ kind: "account", id }, step),
        ),
        handlers: yield* makeHandlers(id, options),
        ...ACCOUNT_LIMITS,
      });
    }),
    { ...options, again: { type: "cap.changed" } },
  );

const slotSpan = (sessionId: string, now: number) =>
  ({
    name: ROOT,
    sessionId,
    key: ROOT,
    parent: null,
    from: now,
    to: now,
    failed: false,
    attributes: { by: "queue" },
  }) as const;

const makeHandlers = Effect.fnUntraced(function* (id: string, { bootTimeoutMs }: AccountActorOptions) {
  const admissions = yield* Admissions;
  const faults = yield* Faults;
  const doubt = yield* Doubt;
  const actors = yield* Actors;
  const traces = yield* Traces;
  const pause = yield* Pause;
  const limits = yield* StartLimits;
  const drain = Effect.gen(function* () {
    // After the pause, recovery signals every queue again.
    if (pause.isOn) return { type: "drain.finished" as const, more: false };
    if (yield* limits.refuseWaiting(id, DRAIN_BATCH)) return { type: "drain.finished" as const, more: true };
    const sessionIds = yield* Effect.replicateEffect(newUuid, DRAIN_BATCH);
    const now = yield* Clock.currentTimeMillis;
    const { admitted, more } = yield* admissions.drain(id, { sessionIds, now, bootTimeoutMs });
    faults("drain.committed");
    // The trace of a session that waited as a fire begins with its slot.
    if (traces.isOn) for (const { sessionId } of admitted) traces.span(slotSpan(sessionId, now));
    yield* Effect.forEach(admitted, ({ sessionId }) => actors.wake("session", sessionId), { discard: true });
    return { type: "drain.finished" as const, more };
  });
  const handlers: Handlers<AccountEvent, AccountCommand> = {
    drainQueue: {
      perform: () =>
        Effect.catchTag(drain, "StoreError", (error) => {
          // The drain may have committed, so its sessions may need a wake.
          doubt();
          const warning = { account: id, error };
          return Effect.as(Effect.logWarning("a queue could not be drained; trying again", warning), {
            type: "drain.failed" as const,
          });
        }),
      gaveUp: () => ({ type: "drain.failed" }),
    },
    pause: { perform: () => Effect.as(Effect.sleep(PAUSE), { type: "pause.elapsed" as const }) },
  };
  return handlers;
});

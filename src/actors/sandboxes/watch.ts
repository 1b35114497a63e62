/**
 * Watches a running sandbox until it ends. Meanwhile it learns when the agent takes its prompt and when each turn ends,
 * and keeps the conversation.
 */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider } from "../../sandbox/port.ts";
import { withLink } from "../../services/answered.ts";
import { pullsSaves } from "../../domain/sandbox/daemon-protocol.ts";
import { continuousSaver, type SaveOccasions } from "./continuous-saves.ts";
import type { SavingOptions } from "./work-saver.ts";
import { conversationFollower } from "../conversations/follower.ts";
import { bootstrapNoter, lostFailure } from "./boot.ts";
import { outdatedStopper } from "./outdated-daemon.ts";
import type { RequestOptions } from "../conversations/runtime-reports.ts";
import { turnFollower } from "../conversations/turns.ts";

/** How often a running daemon is asked whether the agent has its prompt, until it has. */
const WATCH_POLL = Duration.seconds(2);

interface Watched {
  readonly id: string;
  readonly sessionId: string;
  readonly occasions: SaveOccasions;
}

/** @returns a function that watches one sandbox, and ends with the reason for the sandbox's end. */
export const sandboxWatcher = Effect.fnUntraced(function* (options: RequestOptions & SavingOptions) {
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const noteBootstrap = yield* bootstrapNoter;
  const followTurns = yield* turnFollower;
  const followConversation = yield* conversationFollower(options);
  const saveContinuously = yield* continuousSaver(options);
  const stopOutdated = yield* outdatedStopper;

  return Effect.fnUntraced(function* ({ id, sessionId, occasions }: Watched) {
    const look = Effect.gen(function* () {
      const link = yield* withLink(provider, id);
      const { bootstrap, protocol, turn } = yield* daemon.health(link);
      // An agent whose turns are not seen may work at any time.
      if (turn.active === null) occasions.works(true);
      yield* noteBootstrap(sessionId, bootstrap.state);
      return { link, isSettled: bootstrap.state !== "pending", isPulled: pullsSaves(protocol) };
    });
    const follow = Effect.gen(function* () {
      const { link, isSettled, isPulled } = yield* Effect.retry(look, {
        while: ({ _tag }) => _tag !== "DaemonOutdated",
        schedule: Schedule.spaced(WATCH_POLL),
      });
      const place = { sandboxId: id, sessionId, link, occasions };
      const turns = Effect.raceFirst(
        Effect.raceFirst(followTurns(place), followConversation(place)),
        isPulled ? saveContinuously(place, occasions) : Effect.never,
      );
      // The prompt's outcome is reported once, so the daemon need not be asked again.
      if (isSettled) return yield* turns;
      const listen = Effect.catch(Effect.delay(look, WATCH_POLL), () =>
        Effect.succeed({ isSettled: false }),
      ).pipe(Effect.repeat({ until: (sight) => sight.isSettled }));
      return yield* Effect.raceFirst(turns, Effect.andThen(listen, Effect.never));
    }).pipe(
      Effect.catchTag("DaemonOutdated", (outdated) =>
        Effect.andThen(stopOutdated({ sandboxId: id, sessionId }, outdated), Effect.never),
      ),
      // The schedule is endless, so nothing else ends the retry.
      Effect.orDie,
    );
    const exit = yield* Effect.raceFirst(provider.awaitExit(id), follow);
    return { type: "sandbox.lost" as const, failure: lostFailure(exit) };
  });
});

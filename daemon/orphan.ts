/**
 * Ends a sandbox that its service has left for good: the service's machine was put to another use, or its files were
 * removed, and nobody is left to tear the sandbox down.
 *
 *  A1 Where the shared directory of the sandbox and its service was removed, no service can find the sandbox again: it ends
 *     within seconds.
 *  A2 A sandbox that has heard nothing of its service for PLATFORM_SANDBOX_ORPHAN_MS ends. It hears of it when something
 *     connects to the daemon's socket, and when the service's egress proxy takes a connection: only a service that
 *     runs listens there, and the agent can reach neither.
 *  A3 Silence is counted in looks, so that neither a clock that steps nor a machine that slept makes it longer.
 */
import { lstatSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import type { Log } from "./logs/log.ts";

/** Between two looks at the directory, ms. */
const LOOK_MS = 2000;
/** Between two questions to the egress proxy at most, ms. */
const ASK_MS = 60_000;
/** A listener on a unix socket answers at once, or there is none. */
const CONNECT_MS = 5000;

/** What a look goes by. */
export interface Signs {
  /** The directory that is shared with the service is there. */
  readonly isThere: () => boolean;
  /** Something has connected to the daemon's socket since the last look. */
  readonly wasHeard: () => boolean;
  /** Whether the service takes connections. */
  readonly answers: Effect.Effect<boolean>;
}

/** Completes with a reason when the sandbox is left alone. */
export const leftAlone = (orphanMs: number, signs: Signs): Effect.Effect<string> => {
  const askEvery = Math.max(LOOK_MS, Math.min(ASK_MS, Math.floor(orphanMs / 4)));
  let silentMs = 0;
  let askedMs = 0;
  const look = Effect.gen(function* () {
    if (!signs.isThere()) return "the shared directory of the sandbox and its service was removed";
    silentMs += LOOK_MS;
    askedMs += LOOK_MS;
    if (signs.wasHeard()) silentMs = 0;
    if (askedMs >= askEvery) {
      askedMs = 0;
      if (yield* signs.answers) silentMs = 0;
    }
    return silentMs >= orphanMs ? `the service did not respond for ${silentMs} ms` : null;
  });
  return look.pipe(
    Effect.delay(LOOK_MS),
    Effect.repeat({ schedule: Schedule.forever, until: (reason) => reason !== null }),
    Effect.map((reason) => reason ?? ""),
  );
};

/** @param socket the daemon's, in the shared directory */
const isThere = (socket: string) => (): boolean => {
  try {
    lstatSync(socket);
    return true;
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ENOENT");
  }
};

const takesConnections = (path: string): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(path);
    const told = (answer: boolean) => () => {
      socket.destroy();
      resume(Effect.succeed(answer));
    };
    socket.setTimeout(CONNECT_MS, told(false));
    socket.once("connect", told(true)).on("error", told(false));
  });

export interface Orphaned {
  readonly orphanMs: number;
  /** The daemon's socket. */
  readonly socket: string;
  readonly wasHeard: () => boolean;
  readonly log: Log;
}

/** Ends this process, as its PID 1 would, once the sandbox is left alone. */
export const endWhenLeftAlone = ({ orphanMs, socket, wasHeard, log }: Orphaned): Effect.Effect<void> =>
  leftAlone(orphanMs, {
    isThere: isThere(socket),
    wasHeard,
    answers: takesConnections(join(dirname(socket), "proxy", "egress.sock")),
  }).pipe(
    Effect.map((reason) => {
      log("the sandbox stops", { reason });
      process.kill(process.pid, "SIGTERM");
    }),
  );

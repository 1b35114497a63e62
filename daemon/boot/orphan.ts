/**
 * Ends a sandbox that its service has abandoned: the service's machine was reused, or its files were removed, and no
 * service will tear the sandbox down.
 *
 *  A1 If the directory that the sandbox shares with its service is gone, no service can find the sandbox again: it ends
 *     within seconds.
 *  A2 A sandbox ends after PLATFORM_SANDBOX_ORPHAN_MS without contact from its service. Contact is a connection to the
 *     daemon's socket, or a connection that the service's egress proxy accepts: only a running service listens there,
 *     and the agent can reach neither.
 *  A3 Silence is counted in looks, so neither a clock that steps nor a machine that slept makes it longer.
 */
import { lstatSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import type { Log } from "../logs/log.ts";

/** Pause between two looks at the directory, ms. */
const LOOK_MS = 2000;
/** The longest pause between two connections to the egress proxy, ms. */
const ASK_MS = 60_000;
/** A listener on a unix socket answers at once, or does not exist. */
const CONNECT_MS = 5000;

/** The inputs of a look. */
export interface Signs {
  /** Whether the directory shared with the service exists. */
  readonly isThere: () => boolean;
  /** Whether there was a connection to the daemon's socket since the last look. */
  readonly wasHeard: () => boolean;
  /** Whether the service accepts connections. */
  readonly answers: Effect.Effect<boolean>;
}

/** Completes with a reason when the sandbox is abandoned. */
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
    const answerWith = (answer: boolean) => () => {
      socket.destroy();
      resume(Effect.succeed(answer));
    };
    socket.setTimeout(CONNECT_MS, answerWith(false));
    socket.once("connect", answerWith(true)).on("error", answerWith(false));
  });

export interface Orphaned {
  readonly orphanMs: number;
  /** The daemon's socket. */
  readonly socket: string;
  readonly wasHeard: () => boolean;
  readonly log: Log;
}

/** Ends this process, as its PID 1 would, once the sandbox is abandoned. */
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

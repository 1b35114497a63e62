/**
 * A session's log (api.md 3): the output of its sandboxes, boot after boot. For a sandbox that is gone, it comes from
 * the kept log. For an existing one, it comes from its provider's record, and from then on from its daemon.
 *
 *  F1 A line's id is its sandbox and its place there (domain/session/log-line.ts). It is the same wherever the line was read.
 *     So a reader continues across the end of a sandbox or a restart of this service, with no line twice and none
 *     missing.
 *  F2 If lines are missing all the same (a slow reader, a log that made room), the reader gets `reset`.
 *  F3 Nothing is read ahead of the reader: unread lines stay with the daemon, whose log is bounded.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { withLink } from "../../services/answered.ts";
import { Keyring } from "../../services/keyring.ts";
import { parseUuid } from "../../domain/ids.ts";
import {
  BEGINNING,
  isAfter,
  leavesGap,
  readLog,
  writeGap,
  writeLine,
  type LinePlace,
  type LogLine,
} from "../../domain/session/log-line.ts";
import { signUserContext } from "../../domain/sandbox/user-context.ts";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider } from "../../sandbox/port.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Events } from "../../store/ports/events.ts";
import { SessionLogs, type LoggedBoot } from "../../store/ports/sessions/session-logs.ts";
import { nodeAway } from "../relay/relay.ts";
import { POLL } from "./events.ts";

/** The session whose log is read, and the reader. */
export interface LogScope {
  readonly sessionId: string;
  readonly projectId: string;
  readonly userId: string;
  readonly role: string;
}

/** A line's place among all lines of its session. */
interface Place extends LinePlace {
  readonly sandboxId: string;
}

const ID = /^([0-9a-f-]{36}):(\d{1,15})\.(\d{1,15})$/;

const parsePlace = (id: string): Place | null => {
  const [, sandboxId = "", seq, sub] = ID.exec(id) ?? [];
  return parseUuid(sandboxId) === null ? null : { sandboxId, seq: Number(seq), sub: Number(sub) };
};

/** The known lines of a boot. */
const readLines = Effect.fnUntraced(function* ({ sandboxId, isKept }: LoggedBoot) {
  const logs = yield* SessionLogs;
  const provider = yield* SandboxProvider;
  return readLog(isKept ? yield* logs.read(sandboxId) : yield* provider.logs(sandboxId));
});

/** The whole log, as text. */
export const logText = Effect.fnUntraced(function* (sessionId: string) {
  const logs = yield* SessionLogs;
  let text = "";
  for (const boot of yield* logs.boots(sessionId)) {
    let place: LinePlace | null = null;
    const lines = yield* Effect.catchTag(readLines(boot), "SandboxError", ({ node }) =>
      node === "away" ? Effect.fail(nodeAway()) : Effect.succeed([]),
    );
    for (const line of lines) {
      if (place !== null && leavesGap(place, line)) text += writeGap(place, line);
      text += writeLine(line);
      place = line;
    }
  }
  return text;
});

/** The stream of a session's log from `lastEventId` on, or from its beginning. It waits for new lines. */
export const logStream = Effect.fnUntraced(function* (scope: LogScope, lastEventId: string | null) {
  const services = yield* Effect.context<Needs>();
  const follower = new Follower(scope, lastEventId);
  const frames = Stream.flatMap(Stream.fromEffectRepeat(follower.round), (round) => round).pipe(
    Stream.provideContext(services),
  );
  return Stream.concat(Stream.succeed("event: open\ndata: {}\n\n"), frames);
});

type Needs = DaemonClient | Events | Keyring | SandboxProvider | SessionLogs;

/** One reader's progress, and the next frames to send. */
class Follower {
  readonly #scope: LogScope;
  /** The last line that was sent. */
  #place: Place | null;
  /** The id was not a place in this session's log. */
  #lost: boolean;
  /** Boots whose log is kept and was sent to its end. */
  readonly #done = new Set<string>();

  constructor(scope: LogScope, lastEventId: string | null) {
    this.#scope = scope;
    this.#place = lastEventId === null ? null : parsePlace(lastEventId);
    this.#lost = lastEventId !== null && this.#place === null;
  }

  /** One look at all boots: the frames to send next. The frames of a live boot may take long to end. */
  get round() {
    return Effect.gen({ self: this }, function* () {
      const boots = yield* (yield* SessionLogs).boots(this.#scope.sessionId);
      for (const boot of this.#ahead(boots)) {
        const after = this.#placeIn(boot);
        // If a provider fails to answer, the next look asks it again.
        const storedLines = yield* Effect.catchTag(readLines(boot), "SandboxError", () => Effect.succeed([]));
        const lines = storedLines.filter((line) => isAfter(line, after));
        const frames = Stream.fromIterable(lines).pipe(
          Stream.map((line) => this.#frame(boot.sandboxId, line)),
        );
        if (!boot.isKept) return Stream.concat(frames, Stream.concat(this.#live(boot), this.#pause));
        this.#done.add(boot.sandboxId);
        if (lines.length > 0) return frames;
      }
      return this.#pause;
    });
  }

  /** The boots that the reader has not read to their end. If its boot no longer exists, the reader's place is lost. */
  #ahead(boots: readonly LoggedBoot[]): readonly LoggedBoot[] {
    const at = boots.findIndex(({ sandboxId }) => sandboxId === this.#place?.sandboxId);
    if (this.#place !== null && at === -1) {
      this.#lost = true;
      this.#place = null;
      this.#done.clear();
    }
    return boots.slice(Math.max(0, at)).filter(({ sandboxId }) => !this.#done.has(sandboxId));
  }

  #placeIn({ sandboxId }: LoggedBoot): LinePlace {
    return this.#place?.sandboxId === sandboxId ? this.#place : BEGINNING;
  }

  #frame(sandboxId: string, line: LogLine): string {
    const { seq, sub, at, source } = line;
    const before = this.#place?.sandboxId === sandboxId ? this.#place : BEGINNING;
    const hasGap = this.#lost || (this.#place !== null && leavesGap(before, line));
    this.#lost = false;
    this.#place = { sandboxId, seq, sub };
    const data = JSON.stringify({ sandbox_id: sandboxId, at, source, line: line.line });
    return `${hasGap ? RESET : ""}id: ${sandboxId}:${seq}.${sub}\nevent: line\ndata: ${data}\n\n`;
  }

  /** The lines that the daemon sends after the last one, until the daemon or its sandbox is gone. */
  #live(boot: LoggedBoot) {
    const { sandboxId } = boot;
    const { sessionId, userId, role } = this.#scope;
    const open = Effect.gen({ self: this }, function* () {
      const provider = yield* SandboxProvider;
      const link = yield* withLink(provider, sandboxId);
      const nowMs = yield* Clock.currentTimeMillis;
      const key = (yield* Keyring).serviceKey(sandboxId);
      const context = signUserContext({ userId, sessionId, role, nowMs }, key);
      const lines = (yield* DaemonClient).logs(link, { context, after: this.#placeIn(boot).seq });
      // Lines still on their way then are in the provider's record.
      return Stream.interruptWhen(lines, provider.awaitExit(sandboxId));
    });
    return Stream.unwrap(open).pipe(
      Stream.map((line) => this.#frame(sandboxId, line)),
      // The daemon is not listening yet, or hung up: the next look finds out the sandbox's state.
      Stream.catch(() => Stream.empty),
    );
  }

  /** Sends nothing, until something may have changed. */
  get #pause(): Stream.Stream<string, StoreError, Events> {
    return Stream.drain(
      Stream.fromEffect(
        Effect.flatMap(Events, ({ changed }) =>
          Effect.raceFirst(changed(this.#scope.projectId), Effect.sleep(POLL)),
        ),
      ),
    );
  }
}

const RESET = "event: reset\ndata: {}\n\n";

/** What the service opens to the network: its own port and nothing beside it. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { startTestService } from "../../support/service/service.ts";
import { openActorsWorld } from "../../support/world/actors.ts";

/** State of a TCP socket that listens, as the kernel's tables write it. */
const LISTEN = "0A";

/** Numbers of the sockets that this process holds. */
const ownSockets = (): ReadonlySet<string> => {
  const links = readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return []; // the descriptor that the listing itself was read with
    }
  });
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.slice(1) ?? []));
};

/** Address and port, in the kernel's hexadecimal, of every TCP or UDP socket of this process that takes what comes. */
const listeners = (): readonly string[] => {
  const own = ownSockets();
  return ["tcp", "tcp6", "udp", "udp6"].flatMap((protocol) =>
    readFileSync(`/proc/self/net/${protocol}`, "utf8")
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode = ""]) => {
        const takes = protocol.startsWith("udp") || state === LISTEN;
        return takes && own.has(inode);
      })
      .map(([, address = ""]) => `${protocol} ${address}`),
  );
};

const since = (before: readonly string[]): readonly string[] =>
  listeners().filter((listener) => !before.includes(listener));

describe("the cluster's single runner", () => {
  it.effect("carries messages between actors without listening anywhere [T10]", () =>
    Effect.gen(function* () {
      const before = listeners();
      const world = yield* openActorsWorld();
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "running");
      expect(since(before)).toEqual([]);
    }),
  );

  it.live("leaves the whole service with one port, on the loopback [T10]", () =>
    Effect.gen(function* () {
      const before = listeners();
      const service = yield* Effect.acquireRelease(
        Effect.promise(() => startTestService()),
        (started) => Effect.promise(started.close),
      );
      const port = service.port.toString(16).toUpperCase().padStart(4, "0");
      expect(since(before)).toEqual([`tcp 0100007F:${port}`]);
    }),
  );
});

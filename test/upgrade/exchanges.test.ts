/** This version's client reads what daemons of earlier versions answered (README.md). */
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { describe, expect, test } from "vitest";
import { daemonProtocol, isOutdated } from "../../src/domain/sandbox/daemon-protocol.ts";
import { DaemonClient } from "../../src/sandbox/daemon.ts";
import { daemonHttp } from "../../src/sandbox/daemon-http.ts";
import type { DaemonLink } from "../../src/sandbox/port.ts";
import { readExchanges, RECORDED_STATES, RecordedDaemon } from "./exchanges.ts";

const CONTEXT = "a signed context";

const protocolOf = (state: string): number => {
  const health = readExchanges(state).find(({ target }) => target === "/platform/health");
  return daemonProtocol(JSON.parse(health?.text ?? "null")) ?? -1;
};
const [old, supported] = [
  RECORDED_STATES.filter((state) => isOutdated(protocolOf(state))),
  RECORDED_STATES.filter((state) => !isOutdated(protocolOf(state))),
];

const asked = async <A, E>(
  state: string,
  ask: (daemon: DaemonClient["Service"], link: DaemonLink) => Effect.Effect<A, E>,
): Promise<A> => {
  await using recorded = await RecordedDaemon.start(readExchanges(state));
  return await Effect.runPromise(
    Effect.flatMap(DaemonClient, (daemon) => ask(daemon, { kind: "url", url: recorded.url })).pipe(
      Effect.provide(daemonHttp),
    ),
  );
};

describe.each(supported)("a daemon of the state %s", (state) => {
  test("tells its health, its last turn, what it offers and its ports", async () => {
    const told = await asked(state, (daemon, link) =>
      Effect.all({
        health: daemon.health(link),
        turn: daemon.turn(link, CONTEXT, 0),
        models: daemon.models(link, CONTEXT),
        ports: daemon.ports(link, CONTEXT),
      }),
    );
    expect(told).toMatchObject({
      health: { status: "ready", runtime: { state: "ready" }, repo: { ready: true } },
      turn: { number: 2, state: "completed" },
      models: { default_model: "managed/default" },
      ports: [],
    });
  });

  test("reports its conversation and its log", async () => {
    const { reports, lines } = await asked(state, (daemon, link) =>
      Effect.all({
        reports: Stream.runCollect(daemon.conversation(link, { context: CONTEXT, after: 0 })),
        lines: Stream.runCollect(daemon.logs(link, { context: CONTEXT, after: 0 })),
      }),
    );
    const recorded = readExchanges(state).find(({ target }) => target.startsWith("/platform/conversation"));
    expect(reports).toHaveLength((recorded?.text ?? "").split("\n").filter((line) => line !== "").length);
    expect(reports.at(-1)).toMatchObject({ type: "turn", turn: { state: "idle" }, ended: 2 });
    expect(lines.length).toBeGreaterThan(5);
  });

  test("ends a turn", async () => {
    expect(await asked(state, (daemon, link) => daemon.abort(link, CONTEXT, 1_000))).toBe(false);
  });
});

/** Later daemons are asked for the parts of a save instead. */
const pushing = supported.filter((state) =>
  readExchanges(state).some(({ target }) => target === "/platform/save"),
);

describe.each(pushing)("a daemon of the state %s, which saves by a push", (state) => {
  test("saves its work", async () => {
    const saved = await asked(state, (daemon, link) => daemon.saveByPush(link, CONTEXT, 1_000));
    expect(saved).toEqual({ wip: expect.stringMatching(/^[0-9a-f]{40}$/), skipped: [], error: null });
  });
});

describe.each(old)("a daemon of the state %s, which is too old", (state) => {
  test("is recognised by its health, and saves its work", async () => {
    const { health, saved } = await asked(state, (daemon, link) =>
      Effect.all({
        health: Effect.flip(daemon.health(link)),
        saved: daemon.saveByPush(link, CONTEXT, 1_000),
      }),
    );
    expect(health).toMatchObject({ _tag: "DaemonOutdated", protocol: 0 });
    expect(saved).toEqual({
      wip: expect.stringMatching(/^[0-9a-f]{40}$/),
      skipped: expect.any(Array),
      error: null,
    });
  });
});

test("there are recorded daemons of both kinds", () => {
  expect([old.length > 0, supported.length > 0]).toEqual([true, true]);
});

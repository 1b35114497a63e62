import { readFileSync } from "node:fs";
import { request } from "node:http";
import { it } from "@effect/vitest";
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { startActor } from "../../src/actors/host.ts";
import { Inspector, type InspectedStep } from "../../src/actors/inspector.ts";
import { volatileMemory } from "../../src/actors/volatile.ts";
import {
  sandbox,
  type SandboxCommand,
  type SandboxEvent,
  type SandboxSnapshot,
} from "../../src/machines/sandbox.ts";
import { inspectWith, recordsOf, redact, REDACTED } from "../../src/telemetry/inspect.ts";
import { openInspectPage } from "../../src/telemetry/inspect-page.ts";

const CANARY = "canary-7f3a";

const lost: SandboxEvent = {
  type: "sandbox.lost",
  failure: { code: "sandbox_lost", message: `output of the agent: ${CANARY}` },
};

/** A sandbox's life, seen through the real host. */
const seen = Effect.gen(function* () {
  const records: StatelyInspectionEvent[] = [];
  const idle = { perform: () => Effect.never };
  const actor = yield* startActor<SandboxSnapshot, SandboxEvent, SandboxCommand>({
    id: "s1",
    machine: sandbox,
    memory: volatileMemory(sandbox.start({})),
    handlers: {
      bootSandbox: idle,
      watchSandbox: idle,
      saveWork: idle,
      destroySandbox: idle,
      reportEnded: idle,
      reportLive: idle,
      reportFailed: idle,
      reportLost: idle,
    },
    mailbox: 8,
    restarts: { restarts: 0, withinMs: 1000 },
  }).pipe(
    Effect.provideService(
      Inspector,
      inspectWith((record) => void records.push(record)),
    ),
  );
  yield* actor.tell({ type: "daemon.ready" });
  yield* actor.tell(lost);
  yield* actor.tell({ type: "stop.requested" });
  return records;
}).pipe(Effect.scoped);

describe("the inspector's records", () => {
  it.effect("announce an actor with its machine, then each event and the snapshot after it", () =>
    Effect.gen(function* () {
      const records = yield* seen;
      expect(records.map(({ type }) => type)).toEqual([
        "@xstate.actor",
        ...Array.from({ length: 3 }, () => ["@xstate.event", "@xstate.snapshot"]).flat(),
        "@xstate.snapshot",
      ]);
      const [actor] = records;
      expect(actor).toMatchObject({ name: "sandbox:s1", sessionId: "sandbox:s1", rootId: "sandbox:s1" });
      const definition = actor?.type === "@xstate.actor" ? JSON.parse(actor.definition ?? "") : null;
      expect(Object.keys(definition.states)).toEqual([
        "provisioning",
        "active",
        "stopped",
        "error",
        "archived",
      ]);
      const snapshots = records.filter(({ type }) => type === "@xstate.snapshot");
      expect(snapshots).toMatchObject([
        { snapshot: { value: "active", status: "active" }, event: { type: "daemon.ready", accepted: true } },
        { snapshot: { value: "error", status: "done" }, event: { type: "sandbox.lost", accepted: true } },
        { snapshot: { value: "error", status: "done" }, event: { type: "stop.requested", accepted: false } },
        { snapshot: { value: "error", status: "stopped" }, event: { type: "memory.left" } },
      ]);
    }),
  );

  it.effect("contain no message of a failure [I16]", () =>
    Effect.gen(function* () {
      const text = JSON.stringify(yield* seen);
      expect(text).not.toContain(CANARY);
      expect(text).toContain("sandbox_lost");
    }),
  );

  test("contain only values that are known to be harmless [I16]", () => {
    const step: InspectedStep = {
      machine: "session",
      actorId: "s1",
      event: Object.assign({ type: "restart.requested" }, { token: CANARY, metadata: { [CANARY]: CANARY } }),
      accepted: true,
      snapshot: { state: "running", context: { branched: true, prompt: CANARY, nested: { code: CANARY } } },
      commands: [Object.assign({ type: "createBranch" }, { environment: [CANARY] })],
      left: false,
    };
    const records = recordsOf(step, 0);
    expect(JSON.stringify(records)).not.toContain(CANARY);
    expect(records[1]).toMatchObject({
      event: { type: "restart.requested", token: REDACTED, metadata: REDACTED },
      snapshot: { context: { branched: true, prompt: REDACTED, nested: REDACTED } },
    });
    expect(redact([{ type: "x", secret: 1 }])).toEqual([{ type: "x", secret: REDACTED }]);
  });

  test("carry the version of the installed format", () => {
    const url = new URL("../../node_modules/@statelyai/inspect/package.json", import.meta.url);
    const { version } = JSON.parse(readFileSync(url, "utf8")) as { version: string };
    const step = {
      machine: "session",
      actorId: "s1",
      event: null,
      accepted: true,
      commands: [],
      left: false,
    };
    const [actor] = recordsOf({ ...step, snapshot: { state: "running", context: {} } }, 0);
    expect(actor).toMatchObject({ _version: version });
  });
});

/** One answer, or of an endless one what came until `enough`. */
const ask = (url: string, path: string, options: { host?: string; enough?: string } = {}) =>
  Effect.callback<{ status: number; body: string }>((resume) => {
    const headers = options.host === undefined ? {} : { host: options.host };
    const asked = request(new URL(path, url), { headers }, (response) => {
      let body = "";
      const end = () => resume(Effect.succeed({ status: response.statusCode ?? 0, body }));
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
        if (options.enough !== undefined && body.includes(options.enough)) {
          end();
          asked.destroy();
        }
      });
      response.on("end", end);
    });
    asked.on("error", () => undefined);
    asked.end();
  });

describe("the inspector's page", () => {
  it.live("shows each actor and its state, then the events", () =>
    Effect.gen(function* () {
      const { url, send } = yield* openInspectPage(0);
      // Its last one is that it leaves memory.
      (yield* seen).slice(0, -1).forEach(send);
      const { body } = yield* ask(url, "/records", { enough: "stop.requested" });
      const records = body.trim().split("\n\n");
      expect(records).toHaveLength(2);
      expect(records[0]).toContain("@xstate.actor");
      expect(records[1]).toContain('"value":"error"');
    }),
  );

  it.live("is available for loopback's own names alone", () =>
    Effect.gen(function* () {
      const { url } = yield* openInspectPage(0);
      expect(new URL(url).hostname).toBe("127.0.0.1");
      expect((yield* ask(url, "/")).body).toContain("<title>Live actors</title>");
      expect((yield* ask(url, "/inspect.js")).status).toBe(200);
      expect((yield* ask(url, "/records", { host: "evil.example" })).status).toBe(403);
      expect((yield* ask(url, "/other")).status).toBe(404);
    }),
  );

  it.live("leaves no listener behind", () =>
    Effect.gen(function* () {
      const url = yield* Effect.scoped(Effect.map(openInspectPage(0), (page) => page.url));
      const port = Number(new URL(url).port);
      // The port is free again.
      expect((yield* openInspectPage(port)).url).toBe(url);
    }),
  );
});

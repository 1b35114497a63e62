import { readFileSync } from "node:fs";
import { it } from "@effect/vitest";
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { startActor } from "../../../src/actors/host.ts";
import { Inspector, type InspectedStep } from "../../../src/actors/inspector.ts";
import { volatileMemory } from "../../../src/actors/volatile.ts";
import {
  sandbox,
  type SandboxCommand,
  type SandboxEvent,
  type SandboxSnapshot,
} from "../../../src/machines/sandbox.ts";
import {
  FRAME_MAX_BYTES,
  encodeFrame,
  pastRecords,
  stepRecords,
  redact,
  REDACTED,
} from "../../../src/http/inspect/records.ts";

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
      putOffSave: idle,
      reportEnded: idle,
      reportKept: idle,
      reportLive: idle,
      reportFailed: idle,
      reportLost: idle,
    },
    mailbox: 8,
    restarts: { restarts: 0, withinMs: 1000 },
  }).pipe(
    Effect.provideService(Inspector, (step) => Effect.sync(() => void records.push(...stepRecords(step, 0)))),
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
    const records = stepRecords(step, 0);
    expect(JSON.stringify(records)).not.toContain(CANARY);
    expect(records[1]).toMatchObject({
      event: { type: "restart.requested", token: REDACTED, metadata: REDACTED },
      snapshot: { context: { branched: true, prompt: REDACTED, nested: REDACTED } },
    });
    expect(redact([{ type: "x", secret: 1 }])).toEqual([{ type: "x", secret: REDACTED }]);
  });

  test("of the history contain neither messages nor other details [I16]", () => {
    const row = {
      actor: { kind: "change_request", id: "c1" },
      at: 5,
      event: "merge.refused",
      from: "merging",
      to: "open",
      detail: `refused: ${CANARY}`,
      commands: ["mirrorPull"],
    } as const;
    const past = pastRecords(row);
    expect(JSON.stringify(past)).not.toContain(CANARY);
    expect(past).toMatchObject([
      {
        type: "@xstate.event",
        sessionId: "change-request:c1",
        createdAt: "5",
        event: { type: "merge.refused", accepted: true, commands: [{ type: "mirrorPull" }] },
      },
      { type: "@xstate.snapshot", snapshot: { value: "open", status: "active" } },
    ]);
  });

  test("lose their context and commands if their frame would be too large", () => {
    const step: InspectedStep = {
      machine: "session",
      actorId: "s1",
      event: { type: "stop.requested" },
      accepted: true,
      snapshot: { state: "stopped", context: { failure: { code: "x".repeat(FRAME_MAX_BYTES) } } },
      commands: Array.from({ length: 5_000 }, () => ({ type: "tearDownSandbox" })),
      left: false,
    };
    for (const record of stepRecords(step, 0)) {
      const frame = encodeFrame(record);
      expect(Buffer.byteLength(frame)).toBeLessThan(FRAME_MAX_BYTES);
      expect(JSON.parse(frame)).toMatchObject({
        sessionId: "session:s1",
        event: { type: "stop.requested" },
        ...(record.type === "@xstate.snapshot" && { snapshot: { value: "stopped", context: REDACTED } }),
      });
    }
  });

  test("carry the version of the installed format", () => {
    const url = new URL("../../../node_modules/@statelyai/inspect/package.json", import.meta.url);
    const { version } = JSON.parse(readFileSync(url, "utf8")) as { version: string };
    const step = {
      machine: "session",
      actorId: "s1",
      event: null,
      accepted: true,
      commands: [],
      left: false,
    };
    const [actor] = stepRecords({ ...step, snapshot: { state: "running", context: {} } }, 0);
    expect(actor).toMatchObject({ _version: version });
  });
});

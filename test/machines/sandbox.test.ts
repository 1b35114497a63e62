import * as Effect from "effect/Effect";
import { expect, test } from "vitest";
import { SANDBOX_STATUSES } from "../../src/domain/session.ts";
import {
  sandbox,
  sandboxMachine,
  type SandboxCommand,
  type SandboxEvent,
  type SandboxSnapshot,
} from "../../src/machines/sandbox.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Sandboxes } from "../../src/store/ports/sandboxes.ts";
import { admitSession, openSandbox } from "../support/world/sessions.ts";
import { makeWorld } from "../support/world/world.ts";
import { describeModel, everyStep } from "./model.ts";

const failure = { code: "boot_timeout", message: "the boot deadline passed" } as const;

const saved = { wip: "c0ffee", skipped: [], error: null } as const;

const isFinal = ({ state }: SandboxSnapshot) => state !== "provisioning" && state !== "active";
const types = (commands: readonly SandboxCommand[]) => commands.map(({ type }) => type);

describeModel<SandboxSnapshot, SandboxEvent, SandboxCommand>(
  {
    machine: sandbox,
    definition: sandboxMachine,
    events: [
      { type: "daemon.ready" },
      { type: "boot.failed", failure },
      { type: "sandbox.lost", failure },
      { type: "stop.requested" },
      { type: "archive.requested" },
      { type: "work.saved", saved },
    ],
    memory: Effect.gen(function* () {
      const { id } = yield* openSandbox(yield* admitSession(yield* makeWorld(10)));
      return { id, memory: (yield* Sandboxes).memory };
    }).pipe(Effect.provide(memoryStore, { local: true }), Effect.orDie),
  },
  {
    "B1: nothing moves a sandbox that has ended": everyStep(({ before, snapshot, accepted }) => {
      if (!isFinal(before)) return;
      expect(accepted).toBe(false);
      expect(snapshot).toEqual(before);
    }),
    "B2: it is destroyed exactly where its end is decided": everyStep(({ before, snapshot, commands }) => {
      const ended = !isFinal(before) && isFinal(snapshot);
      expect(types(commands).filter((type) => type === "destroySandbox")).toHaveLength(ended ? 1 : 0);
    }),
    "B3: the session hears once of active, once of an error it did not ask for, and once of the end it did": (
      path,
    ) => {
      const heard = path
        .flatMap(({ commands }) => types(commands))
        .filter((type) => type.startsWith("report"));
      const states = new Set(path.flatMap(({ before, snapshot }) => [before.state, snapshot.state]));
      const isLive = states.has("active");
      const error = states.has("error") ? [isLive ? "reportLost" : "reportFailed"] : [];
      const isAsked = isLive && (states.has("stopped") || states.has("archived"));
      expect(heard).toEqual([
        ...(isLive ? ["reportLive"] : []),
        ...error,
        ...(isAsked ? ["reportEnded"] : []),
      ]);
    },
    "B4: an active one saves its work once before the end that it was first asked for": (path) => {
      const asked = path.find(
        ({ before, event }) =>
          before.state === "active" && ["stop.requested", "archive.requested"].includes(event.type),
      );
      const saves = path.flatMap(({ commands }) => types(commands)).filter((type) => type === "saveWork");
      expect(saves).toHaveLength(asked === undefined ? 0 : 1);
      for (const { before, event, snapshot, commands } of path) {
        if (before.state !== "active" || !isFinal(snapshot) || snapshot.state === "error") continue;
        expect(snapshot.state).toBe(asked?.event.type === "stop.requested" ? "stopped" : "archived");
        const told = commands.find((command) => command.type === "reportEnded");
        const isLost = event.type === "sandbox.lost";
        expect(told).toMatchObject(isLost ? { saved: { wip: null, error: expect.any(String) } } : { saved });
      }
    },
    "the failure that ended it is the one that is reported": everyStep(({ event, commands }) => {
      for (const command of commands) {
        if ("failure" in command) expect(command.failure).toEqual("failure" in event ? event.failure : null);
      }
    }),
  },
);

test("a sandbox's states are the enum's", () => {
  expect(Object.keys(sandboxMachine.states).toSorted()).toEqual([...SANDBOX_STATUSES].toSorted());
});

import * as Effect from "effect/Effect";
import { expect, test } from "vitest";
import { SANDBOX_STATUSES } from "../../src/domain/session/session.ts";
import {
  sandbox,
  sandboxMachine,
  type SandboxCommand,
  type SandboxEvent,
  type SandboxSnapshot,
} from "../../src/machines/sandbox.ts";
import { SKIPPED } from "../../src/domain/save/shown.ts";
import { isMoreUrgent, isRequired, type SaveOrder } from "../../src/domain/save/order.ts";
import { NOTHING_TO_SAVE, notSaved } from "../../src/domain/save/saved.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Sandboxes } from "../../src/store/ports/sessions/sandboxes.ts";
import { admitSession, openSandbox } from "../support/world/sessions.ts";
import { makeWorld } from "../support/world/world.ts";
import { describeModel, everyStep } from "./model.ts";

const failure = { code: "boot_timeout", message: "the boot deadline passed" } as const;

const saved = NOTHING_TO_SAVE;
const partial = { ...notSaved("one path is missing"), state: "partial" } as const;

const orderOf = (event: SandboxEvent): SaveOrder | null =>
  event.type === "stop.requested" || event.type === "archive.requested" ? (event.save ?? "try") : null;
const asOf = ({ type }: SandboxEvent) => (type === "stop.requested" ? "stopped" : "archived");

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
      { type: "stop.requested", save: "require" },
      { type: "stop.requested", save: "skip" },
      { type: "archive.requested", save: "pause" },
      { type: "end.recalled" },
      { type: "work.saved", saved },
      { type: "work.saved", saved: partial },
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
        .filter((type) => type.startsWith("report") && type !== "reportKept");
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
    "B4: an active one saves its work for the first request to end, and anew for a more urgent one":
      everyStep(({ before, event, snapshot, commands }) => {
        const order = orderOf(event);
        const { ending, save } = before.context;
        const isNew = order !== null && (ending === null || isMoreUrgent(order, save ?? "try"));
        const saves = before.state === "active" && isNew && order !== "skip";
        expect(commands.filter(({ type }) => type === "saveWork")).toEqual(
          saves ? [{ type: "saveWork", order }] : [],
        );
        if (saves) expect(snapshot.context).toMatchObject({ save: order, ending: ending ?? asOf(event) });
        if (before.state === "active" && order === "skip") expect(snapshot.state).toBe(asOf(event));
      }),
    "B4: it ends as it was first asked to, with what was saved": everyStep(
      ({ before, event, snapshot, commands }) => {
        if (before.state !== "active" || !isFinal(snapshot) || snapshot.state === "error") return;
        const isSkip = orderOf(event) === "skip";
        if (!isSkip) expect(snapshot.state).toBe(before.context.ending);
        const isLost = event.type === "sandbox.lost";
        expect(commands.find(({ type }) => type === "reportEnded")).toMatchObject({
          saved: event.type === "work.saved" ? event.saved : null,
          error: isLost ? expect.any(String) : isSkip ? SKIPPED : null,
        });
      },
    ),
    "B5: one that must save everything, and cannot, stays; lost meanwhile, it is lost": everyStep(
      ({ before, event, snapshot, commands }) => {
        const { ending, save } = before.context;
        const isDemanded = before.state === "active" && ending !== null && isRequired(save ?? "try");
        const isUnsafe = event.type === "work.saved" && event.saved.state !== "complete";
        const isRecalled = event.type === "end.recalled" && save === "pause" && ending !== null;
        const stays = (isDemanded && isUnsafe) || (before.state === "active" && isRecalled);
        expect(commands.filter(({ type }) => type === "reportKept")).toEqual(
          stays ? [{ type: "reportKept", saved: isUnsafe ? event.saved : null, order: save }] : [],
        );
        if (stays) expect(snapshot).toEqual({ state: "active", context: { ending: null, save: null } });
        if (isDemanded && event.type === "sandbox.lost") expect(snapshot.state).toBe("error");
      },
    ),
    "the failure that ended it is the one that is reported": everyStep(({ event, commands }) => {
      for (const command of commands) {
        if ("failure" in command) expect(command.failure).toEqual("failure" in event ? event.failure : null);
      }
    }),
  },
);

const order = (end: number, save: SaveOrder = "pause") => ({ type: "archive.requested", save, end }) as const;

test("B6: an order to end that was taken back changes nothing, and a later one does", () => {
  const active = sandbox.step(sandbox.start({}).snapshot, { type: "daemon.ready" }).snapshot;
  const ending = sandbox.step(active, order(1));
  const kept = sandbox.step(ending.snapshot, { type: "end.recalled" });
  expect(kept.snapshot).toMatchObject({ state: "active", context: { ending: null, takenBack: 1 } });
  for (const late of [order(1), order(1, "skip"), { ...order(1), type: "stop.requested" } as const])
    expect(sandbox.step(kept.snapshot, late)).toMatchObject({ accepted: false, snapshot: kept.snapshot });
  const next = sandbox.step(kept.snapshot, order(2));
  expect(next.snapshot.context).toMatchObject({ ending: "archived", save: "pause", end: 2 });
  // One without a number is of an earlier version.
  expect(sandbox.step(kept.snapshot, { type: "stop.requested" }).accepted).toBe(true);
});

test("a sandbox's states are the enum's", () => {
  expect(Object.keys(sandboxMachine.states).toSorted()).toEqual([...SANDBOX_STATUSES].toSorted());
});

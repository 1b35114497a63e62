import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { volatileMemory } from "../../src/actors/volatile.ts";
import {
  account,
  accountMachine,
  type AccountCommand,
  type AccountEvent,
  type AccountSnapshot,
} from "../../src/machines/account.ts";
import { describeModel, everyStep } from "./model.ts";

const types = (commands: readonly AccountCommand[]) => commands.map(({ type }) => type);
const isSignal = ({ type }: AccountEvent) => ["slot.freed", "fire.queued", "cap.changed"].includes(type);
const isDrainsEnd = ({ type }: AccountEvent) => type === "drain.finished" || type === "drain.failed";

describeModel<AccountSnapshot, AccountEvent, AccountCommand>(
  {
    machine: account,
    definition: accountMachine,
    events: [
      { type: "slot.freed" },
      { type: "fire.queued" },
      { type: "cap.changed" },
      { type: "drain.finished", more: false },
      { type: "drain.finished", more: true },
      { type: "drain.failed" },
      { type: "pause.elapsed" },
    ],
    memory: Effect.sync(() => ({ id: "account-1", memory: volatileMemory(account.start({})) })),
  },
  {
    "A1: one drain at a time": (path) => {
      let draining = 0;
      for (const { event, commands, accepted } of path) {
        if (accepted && isDrainsEnd(event)) draining -= 1;
        draining += types(commands).filter((type) => type === "drainQueue").length;
        expect(draining).toBeGreaterThanOrEqual(0);
        expect(draining).toBeLessThanOrEqual(1);
      }
    },
    "A1: no signal is lost, a drain begins after each": (path) => {
      // A signal that no drain has followed yet.
      let owed = false;
      for (const { event, snapshot, commands, accepted } of path) {
        if (!accepted && isSignal(event)) expect(snapshot.state).toBe("pausing");
        if (accepted && isSignal(event)) owed = true;
        if (types(commands).includes("drainQueue")) owed = false;
        if (owed) expect(snapshot.state).not.toBe("idle");
      }
    },
    "A2: a failed drain is tried again after a pause": everyStep(
      ({ event, commands, accepted, snapshot }) => {
        if (!accepted) return;
        if (event.type === "drain.failed")
          expect([snapshot.state, types(commands)]).toEqual(["pausing", ["pause"]]);
        if (event.type === "pause.elapsed") expect(types(commands)).toEqual(["drainQueue"]);
      },
    ),
    "more that waits leads to another drain": everyStep(({ event, commands, accepted }) => {
      if (accepted && event.type === "drain.finished" && event.more)
        expect(types(commands)).toEqual(["drainQueue"]);
    }),
  },
);

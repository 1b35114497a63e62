import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { volatileMemory } from "../../src/actors/volatile.ts";
import {
  trigger,
  triggerMachine,
  type TriggerCommand,
  type TriggerEvent,
  type TriggerSnapshot,
} from "../../src/machines/trigger.ts";
import { describeModel, everyStep } from "./model.ts";

const next = (due: number) => ({ due, schedule: "each second" });

describeModel<TriggerSnapshot, TriggerEvent, TriggerCommand>(
  {
    machine: trigger,
    definition: triggerMachine,
    events: [
      { type: "timer.elapsed" },
      { type: "due.accounted", next: next(1_000) },
      { type: "due.accounted", next: next(2_000) },
      { type: "due.accounted", next: null },
      { type: "look.failed" },
    ],
    memory: Effect.sync(() => ({ id: "trigger-1", memory: volatileMemory(trigger.start({})) })),
  },
  {
    "T1: no look begins and no timer is armed while a look is under way": everyStep((seen) => {
      const { before, event, commands } = seen;
      if (before.state === "firing" && event.type === "timer.elapsed") expect(commands).toEqual([]);
      if (before.state !== "firing" && commands.length > 0)
        expect(commands).toEqual([{ type: "accountForDue" }]);
    }),
    "T2: a timer that elapses is taken in every state": everyStep(({ event, accepted }) => {
      if (event.type === "timer.elapsed") expect(accepted).toBe(true);
    }),
    "T3: a timer that elapses during a look is followed by another look": everyStep(
      ({ before, event, snapshot, commands }) => {
        if (before.state !== "firing") return;
        if (event.type === "timer.elapsed") expect(snapshot.context.again).toBe(true);
        if (event.type === "due.accounted" && before.context.again)
          expect([snapshot.state, commands]).toEqual(["firing", [{ type: "accountForDue" }]]);
      },
    ),
    "T4: a timer is armed for what the last look found, and for nothing else": everyStep(
      ({ before, event, snapshot, commands, accepted }) => {
        const isLast = accepted && !before.context.again;
        const found = event.type === "due.accounted" && isLast ? event.next : null;
        const armed = commands.filter(({ type }) => type === "armTimer");
        expect(armed).toEqual(found === null ? [] : [{ type: "armTimer", ...found }]);
        if (found !== null) expect(snapshot.state).toBe("armed");
      },
    ),
    "a look that was asked for is remembered while one is under way, and then no more": everyStep(
      ({ snapshot }) => {
        if (snapshot.state !== "firing") expect(snapshot.context.again).toBe(false);
      },
    ),
  },
);

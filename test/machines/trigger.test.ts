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

const [FIRST, SECOND] = [1_000, 2_000];

/** Each instant as the armed one and as a former or wrong one, under two schedules. */
const ofInstant = (due: number): TriggerEvent[] => [
  { type: "definition.changed", enabled: true, schedule: "each second", next: due },
  { type: "timer.elapsed", due },
  { type: "instant.accounted", due, next: due === FIRST ? SECOND : null },
];

describeModel<TriggerSnapshot, TriggerEvent, TriggerCommand>(
  {
    machine: trigger,
    definition: triggerMachine,
    events: [
      ...ofInstant(FIRST),
      ...ofInstant(SECOND),
      { type: "definition.changed", enabled: true, schedule: "each other second", next: SECOND },
      { type: "definition.changed", enabled: true, schedule: null, next: null },
      { type: "definition.changed", enabled: false, schedule: "each second", next: FIRST },
    ],
    memory: Effect.sync(() => ({ id: "trigger-1", memory: volatileMemory(trigger.start({})) })),
  },
  {
    "T1: an instant is fired once a definition": (path) => {
      let fired: number[] = [];
      for (const { before, snapshot, commands } of path) {
        if (before.context.schedule !== snapshot.context.schedule) fired = [];
        for (const command of commands) if (command.type === "fireInstant") fired.push(command.due);
        expect(new Set(fired).size).toBe(fired.length);
      }
    },
    "T1: no timer is armed while an instant of the same definition is being admitted": everyStep((seen) => {
      const { before, event, commands } = seen;
      const arms = commands.some(({ type }) => type === "armTimer");
      if (before.state !== "firing" || !arms) return;
      expect(["definition.changed", "instant.accounted"]).toContain(event.type);
    }),
    "T2: a timer for another instant, or when none is armed, changes nothing": everyStep(
      ({ before, event, accepted }) => {
        if (event.type !== "timer.elapsed") return;
        expect(accepted).toBe(before.state === "armed" && before.context.due === event.due);
      },
    ),
    "T3: the instant that was fired is the one that is accounted for": everyStep(
      ({ before, event, accepted }) => {
        if (event.type !== "instant.accounted") return;
        expect(accepted).toBe(before.state === "firing" && before.context.due === event.due);
      },
    ),
    "T4: hearing of the same instant again changes nothing, nor of any of its schedule while one is fired":
      everyStep(({ before, event, snapshot, commands }) => {
        if (event.type !== "definition.changed" || !event.enabled) return;
        if (before.context.schedule === null || event.schedule !== before.context.schedule) return;
        if (before.state !== "firing" && event.next !== before.context.due) return;
        expect(snapshot).toEqual(before);
        expect(commands).toEqual([]);
      }),
    "what is armed or fired is the context's instant, and nothing else waits": everyStep(
      ({ snapshot, commands }) => {
        const isWaiting = snapshot.state === "armed" || snapshot.state === "firing";
        expect(snapshot.context.due !== null).toBe(isWaiting);
        for (const command of commands) if ("due" in command) expect(command.due).toBe(snapshot.context.due);
      },
    ),
  },
);

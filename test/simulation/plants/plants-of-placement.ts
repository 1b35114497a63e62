/** Planted bugs (plants.ts) about which node looks after a cron trigger, and how it is told to look. */
import type { Plant } from "../plants.ts";

/** A timer is told wherever it is. */
const TELLS_FROM_ANYWHERE = {
  file: "src/actors/timers.ts",
  find: "timer.rangAt === rangAt && schedules.get(id) === timer && placement.isHere(id)",
  put: "timer.rangAt === rangAt && schedules.get(id) === timer",
};

export const PLANTS_OF_PLACEMENT: readonly Plant[] = [
  {
    name: "other-nodes-keep-the-instant-and-tell-it-again",
    file: "src/duties/scheduler.ts",
    find: "if (definition === undefined || !placement.isHere(id)) return [];",
    put: "if (definition === undefined) return [];",
    more: [
      TELLS_FROM_ANYWHERE,
      {
        file: "src/duties/scheduler.ts",
        find: "          schedules.drop(projectId, (id) => !placement.isHere(id));\n",
        put: "",
      },
    ],
    seed: 5,
  },
  {
    name: "moved-triggers-leave-their-timers",
    file: "src/duties/scheduler.ts",
    find: "          schedules.drop(projectId, (id) => !placement.isHere(id));\n",
    put: "",
    more: [TELLS_FROM_ANYWHERE],
    seed: 25,
  },
  {
    name: "moved-triggers-are-not-armed",
    file: "src/duties/scheduler.ts",
    find: "            yield* takeUp.project(projectId);\n",
    put: "            lookCount += 1;\n",
    seed: 5,
  },
  {
    name: "timer-says-what-is-due",
    file: "src/actors/timers.ts",
    find: 'actors.trigger(id, { type: "timer.elapsed" })',
    put: 'actors.trigger(id, { type: "due.accounted", next: timer })',
    seed: 1,
  },
  {
    name: "lost-timers-are-not-told-again",
    file: "src/duties/scheduler.ts",
    find: "        yield* timers.tellAgain(now - TOLD_LONG_AGO_MS);\n",
    put: "",
    seed: 18,
  },
  {
    name: "instants-with-a-row-hold-the-cursor",
    file: "src/actors/trigger.ts",
    find: '    if (admission.outcome === "accounted") yield* skip(due, "missed", [at]);\n',
    put: "",
    seed: 12,
  },
  {
    name: "thawed-node-carries-out-what-waited",
    file: "src/actors/cluster.ts",
    find: 'payload.event as ActorKinds[Kind]["event"], owned)',
    put: 'payload.event as ActorKinds[Kind]["event"])',
    seed: 365,
  },
];

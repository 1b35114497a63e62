/**
 * A quiet time after the bad days of some worlds with several nodes: only one thing goes wrong, and cron triggers go on. While much
 * goes wrong the checkers excuse what is late. Here they see it (watch.ts).
 */
import type { Actions } from "../requests/actions.ts";
import { endFaults } from "./at-rest.ts";
import { PEOPLE_FROM } from "../config.ts";
import { Random } from "../random.ts";
import { PROJECTS } from "./settled.ts";
import type { World } from "../world.ts";

const SHARE = 0.5;
/** Every node is up and owns what it will own, and every clock that was set is noticed, after this, ms. */
const SETTLED_MS = 10_000;
const NOTICED_MS = 65_000;
/** Longer than a trigger may wait whose message was lost (calm.ts), and than the first of these messages takes to come, ms. */
const LOST_MS = 110_000;
/** So many messages to triggers come before the one that is lost. */
const TOLD_BEFORE_MAX = 4;
/** Some instants of a trigger pass in this time, and with it the longest pause between two manifests, ms. */
const INSTANTS_MS = 45_000;
const BETWEEN_MS = 4_000;

/** Manifests (manifests.ts) with one trigger: every 20 seconds, and every minute. The service hears of both at once. */
const OFTEN = 1;
const SELDOM = 11;

/** Plays it, if this seed's world has one. @param pass lets time go on, ms */
export const quietTime = (world: World, actions: Actions, pass: (ms: number) => void): void => {
  const random = new Random(world.seed, "quiet time");
  if (world.seed >= PEOPLE_FROM || world.nodes.length === 1 || !random.chance(SHARE)) return;
  endFaults(world);
  pass(Math.max(SETTLED_MS, world.clockSetAt + NOTICED_MS - world.time.elapsed));
  const which = random.between(0, PROJECTS.length - 1);
  const perform = (kind: "pause" | "archive" | "manifest", how: number): void =>
    actions.perform({ do: kind, which, how, wait: 0 });
  // So that it has a trigger that goes on.
  for (const kind of ["archive", "pause"] as const) perform(kind, 1);
  perform("manifest", OFTEN);
  pass(INSTANTS_MS);
  if (world.places.isPlaced) {
    world.places.loseAtHome(random.between(1, TOLD_BEFORE_MAX));
    pass(LOST_MS);
    return;
  }
  // A schedule that was away counts from the clock of the node which takes it up first. Others may have been further.
  perform("manifest", SELDOM);
  pass(random.between(0, BETWEEN_MS));
  perform("manifest", OFTEN);
  pass(INSTANTS_MS);
};

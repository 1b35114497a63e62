/**
 * Peace, and then the books (threats.md I2 to I5, I7, I9, I12 to I17, I19, I21, I22): nothing goes wrong any more, no
 * trigger fires, and within a bounded time everything that was begun has come to an end that can be seen.
 */
import * as Effect from "effect/Effect";
import { GitBackend } from "../../../src/git/port.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import type { TableSet } from "../../twins/store/tables.ts";
import {
  answerFaults,
  causeFaults,
  deliveryFaults,
  fireFaults,
  lastFiredFaults,
  outcomeFaults,
} from "./books.ts";
import { BOOT_TIMEOUT_MS, hasWarm } from "../config.ts";
import { conversationFaults } from "../world/conversations.ts";
import type { Ledger } from "../ledger.ts";
import { unendedMerges } from "../world/merges.ts";
import { plantOrphan } from "../world/restoring.ts";
import { tokensOf } from "../world/tokens.ts";
import { isLive, liveByAccount } from "./watch.ts";
import { PROJECTS } from "./settled.ts";
import type { World } from "../world.ts";

/** Twice the orphans' round: sandboxes without an owner are gone by then. */
const ROUNDS_MS = 32_000;
/**
 * Within this everything comes to rest: a boot's deadline, the slowest answer that was under way (45 s), the longest pause
 * between two tries (36 s), and fires that wait for their turn.
 */
const REST_MS = 6 * BOOT_TIMEOUT_MS + 150_000;
/** A timer notices within a minute that the clock was set. */
const NOTICED_MS = 65_000;
/** A round that had begun before, and waits for the slowest answer, is followed by another. */
const SLOW_ROUND_MS = 60_000;
const LOOK_MS = 5_000;
/** A service at rest is looked at for so long. */
const QUIET_MS = 10_000;
const QUIET_LOOKS = 12;
/** Every so-many-th seed's rest is looked at, and disturbed by one more start: it takes as long as all the rest. */
const REST_LOOKED_AT = 3;
/** Statements a second and node at rest: of all duties together. A sandbox that is watched asks for nothing. */
const QUIET_RATE = 4.5;

/** Whether a session's restart waits for a slot, which its account does not have. */
const waitsForSlot = (tables: TableSet, id: string): boolean => {
  const account = tables.accounts.get(tables.sessions.get(id)?.record.accountId ?? "");
  return account !== undefined && account.activeSessions >= account.cap;
};

/** I7, I13, I19: work that is still in progress and should have ended. */
export const unrest = (tables: TableSet): readonly string[] => [
  ...[...tables.sessions].flatMap(([id, { record }]) =>
    record.status === "provisioning" ? [`I7 session ${id} is still provisioning`] : [],
  ),
  ...[...tables.sessions].flatMap(([id, { record, snapshot }]) => {
    const { ending } = snapshot.context;
    return record.status === "running" && ending !== null
      ? [`I7 session ${id} began to end (${ending}), and still runs`]
      : [];
  }),
  ...[...tables.sessions].flatMap(([id, { record }]) => {
    const isOwned = [tables.sessionOutbox.of(id), tables.sandboxOutbox.of(record.sandboxId ?? "")].some(
      (commands) => commands.length > 0,
    );
    return isOwned || !isLive(record.status) ? [] : [`I7 session ${id} has no commands left`];
  }),
  ...[...tables.sessionOutbox.actors()].flatMap((id) =>
    tables.sessionOutbox
      .of(id)
      .filter(({ command }) => command.type !== "restartAfterStop" || !waitsForSlot(tables, id))
      .map(({ command }) => `I19 session ${id} has ${command.type} left to do`),
  ),
  ...[...tables.sandboxOutbox.actors()].flatMap((id) => {
    const isActive = tables.sandboxes.get(id)?.record.status === "active";
    const left = tables.sandboxOutbox
      .of(id)
      .filter(({ command }) => !isActive || command.type !== "watchSandbox");
    return left.map(({ command }) => `I19 sandbox ${id} has ${command.type} left to do`);
  }),
  ...[...tables.accounts].flatMap(([id, { activeSessions, cap }]) => {
    const waits = tables.queue.some(({ accountId }) => accountId === id);
    return waits && activeSessions < cap ? [`I13 account ${id} has a free slot and waiting fires`] : [];
  }),
  ...unendedMerges(tables),
];

/** I9, both ways: what runs has a live record and a live session, and what is said to run does. */
export const sandboxFaults = (tables: TableSet, running: ReadonlyMap<string, { readonly exit: unknown }>) => [
  ...[...running].flatMap(([id, { exit }]) => {
    const record = tables.sandboxes.get(id)?.record;
    const session = tables.sessions.get(record?.sessionId ?? "")?.record;
    const isHeld =
      exit === null &&
      record?.status === "active" &&
      session?.status === "running" &&
      session.sandboxId === id;
    // Waiting sandboxes are looked at later (warm-watch.ts).
    return isHeld || tables.warmSandboxes.has(id)
      ? []
      : [`I9 the sandbox ${id} exists, its record is ${record?.status ?? "missing"}`];
  }),
  ...[...tables.sessions.values()].flatMap(({ record: { id, status, sandboxId } }) =>
    status === "running" && !running.has(sandboxId ?? "") ? [`I9 session ${id} runs without a sandbox`] : [],
  ),
  ...[...tables.sandboxes.values()].flatMap(({ record: { id, status, sessionId } }) => {
    const session = tables.sessions.get(sessionId)?.record.status;
    const isLost =
      (status === "active" || status === "provisioning") && (session === undefined || !isLive(session));
    return isLost ? [`I9 the record of sandbox ${id} is ${status}, its session ${session ?? "gone"}`] : [];
  }),
];

/** I15: nothing that lived in the sandbox of a session that has ended opens anything. */
const tokenFaults = (world: World): readonly string[] =>
  [...world.tables.sandboxes.values()].flatMap(({ record: { id, sessionId } }) => {
    const status = world.tables.sessions.get(sessionId)?.record.status;
    if (status !== undefined && isLive(status)) return [];
    return tokensOf(world, id).some((isTaken) => isTaken)
      ? [`I15 a token of the ended session ${sessionId} is taken`]
      : [];
  });

/** I17: default branches stand where pushes left them; a session's stands where it was cut. */
const branchFaults = (world: World, ledger: Ledger): readonly string[] => {
  const tip = (projectId: string, branch: string) =>
    world.ask(Effect.flatMap(GitBackend, (git) => git.branchTip({ projectId }, branch)));
  const moved = [...ledger.tips].flatMap(([id, pushed]) =>
    tip(id, "main") === pushed ? [] : [`I17 the default branch of ${id} was moved`],
  );
  const mangled = ledger.mangled.map((name) => `G12 a push was taken under another name, ${name}`);
  return [...moved, ...mangled];
};

/** I1: at rest each counter is correct, also one that was distorted. */
const counterFaults = ({ tables }: World): readonly string[] => {
  const live = liveByAccount(tables);
  return [...tables.accounts].flatMap(([id, { activeSessions }]) => {
    const count = live.get(id) ?? 0;
    return count === activeSessions
      ? []
      : [`I1 ${id} counts ${activeSessions} and has ${count} live sessions`];
  });
};

const totalOf = (counts: ReadonlyMap<string, number>, prefix: string): number =>
  [...counts].reduce((sum, [name, count]) => (name.startsWith(prefix) ? sum + count : sum), 0);

/** I19: at rest the database is asked no more than duties must. */
const quietFaults = (world: World, pass: (ms: number) => void): readonly string[] => {
  let faults: readonly string[] = [];
  // Sessions that are found idle meanwhile are no storm: it would go on.
  for (let look = 0; look < QUIET_LOOKS; look += 1) {
    const asked = totalOf(world.boundary.calls, "store.");
    const allowed = (QUIET_MS / 1000) * world.nodes.length * QUIET_RATE;
    pass(QUIET_MS);
    const calls = totalOf(world.boundary.calls, "store.") - asked;
    if (calls <= allowed) return [];
    faults = [`I19 ${calls} statements in ${QUIET_MS} ms at rest, ${allowed} allowed`];
  }
  return faults;
};

const CHANGING = ["provider.create", "provider.end", "provider.destroy", "provider.logs"] as const;

/** I21: a service that is started with nothing to do changes nothing at its provider. */
const restartFaults = (world: World, pass: (ms: number) => void): readonly string[] => {
  const count = () => CHANGING.map((name) => world.boundary.calls.get(name) ?? 0).join(" ");
  const live = () => [...world.tables.sessions.values()].filter(({ record }) => isLive(record.status)).length;
  if (unrest(world.tables).length > 0) return [];
  const [before, running] = [count(), live()];
  for (const node of world.nodes) world.kill(node, 0);
  pass(16_000);
  // One that is found idle meanwhile ends.
  return count() === before || live() !== running
    ? []
    : ["I21 a start with nothing to do called the provider"];
};

/** Nothing goes wrong from this moment. */
export const endFaults = (world: World): void => {
  world.boundary.faults = {};
  world.boundary.outages.clear();
  world.boundary.disarm();
  world.providerFaults = 0;
  world.lies = 0;
  world.daemons.heal();
  world.work?.heal();
  world.awaken();
};

/** Nor does any trigger fire. Sandboxes without an owner exist, so that the orphans' round has work to do. */
const makePeace = (world: World): void => {
  endFaults(world);
  plantOrphan(world);
  for (const { id } of PROJECTS) {
    world.ask(
      Effect.flatMap(Projects, (projects) => projects.update(id, { triggersPaused: true }, world.walls.most)),
    );
  }
};

export const checkAtRest = (world: World, ledger: Ledger, time: (ms: number) => void): readonly string[] => {
  makePeace(world);
  world.disturb();
  const pass = (ms: number): void => {
    time(ms);
    world.refresh();
  };
  pass(Math.max(ROUNDS_MS, world.clockSetAt + NOTICED_MS - world.time.elapsed));
  const isUnderWay = (waited: number): boolean =>
    unrest(world.tables).length > 0 ||
    (waited < SLOW_ROUND_MS && sandboxFaults(world.tables, world.sandboxes()).length > 0);
  for (let waited = 0; waited < REST_MS && isUnderWay(waited); waited += LOOK_MS) pass(LOOK_MS);
  const { tables } = world;
  const early = [...unrest(tables)];
  if (early.length > 0) return early;
  // Over Postgres no check has run since the last step: a manifest that was read late may have removed a trigger.
  world.cursors.look(tables);
  return [
    ...sandboxFaults(tables, world.sandboxes()),
    ...world.cursors.unaccounted(tables, world.walls.least - 20_000),
    ...fireFaults(tables),
    ...lastFiredFaults(tables),
    ...causeFaults(tables, ledger),
    ...deliveryFaults(tables, ledger),
    ...answerFaults(tables, ledger),
    ...outcomeFaults(tables),
    ...conversationFaults(world),
    ...tokenFaults(world),
    ...branchFaults(world, ledger),
    ...counterFaults(world),
    ...world.secrecy.lookAtRest(tables, world.boundary.trace),
    ...(world.seed % REST_LOOKED_AT === 0 && !hasWarm(world.seed)
      ? [...quietFaults(world, pass), ...restartFaults(world, pass)]
      : []),
  ];
};

/**
 * Hands in the tables: what no operation of the service does, and what a backup that was put back in part may have left, rows,
 * counters and commands of two different days.
 */
import * as Effect from "effect/Effect";
import { isLive } from "../../../src/domain/session/session.ts";
import { BARE_SPEC } from "../../../src/sandbox/port.ts";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import type { AccountRow } from "../../twins/store/tables.ts";
import { ACCOUNTS, USERS } from "../oracles/settled.ts";
import type { World } from "../world.ts";
import { PLAIN_RUNTIME } from "../../support/machine/plain-runtime.ts";

const query = (world: World, text: string, values: readonly unknown[]): void => {
  world.bridge?.order({ do: "query", text, values });
  world.refresh();
};

/** A second account beside the one that a first start makes. */
export const addAccount = (world: World): void => {
  const { accounts, users } = world.tables;
  const first = accounts.get(ACCOUNTS[0]);
  if (first !== undefined) accounts.set(ACCOUNTS[1], { ...first, name: "second" });
  users.set(USERS[1], {
    accountId: ACCOUNTS[1],
    name: "second",
    role: "owner",
    createdAt: users.get(USERS[0])?.createdAt ?? 0,
    deactivatedAt: null,
  });
  const account = `INSERT INTO accounts (id, name, tier, session_cap, created_at)
    SELECT $1, 'second', tier, session_cap, created_at FROM accounts`;
  query(world, account, [ACCOUNTS[1]]);
  const user =
    "INSERT INTO users (id, account_id, name, role, created_at) SELECT $1, $2, 'second', role, created_at FROM users";
  query(world, user, [USERS[1], ACCOUNTS[1]]);
};

const setCounters = (world: World, id: string, to: AccountRow): void => {
  world.tables.accounts.set(id, to);
  const text = "UPDATE accounts SET active_sessions = $2, queued_fires = $3 WHERE id = $1";
  query(world, text, [id, to.activeSessions, to.queuedFires]);
};

const forgetCommands = (world: World, actors: readonly string[]): void => {
  for (const outbox of [world.tables.sessionOutbox, world.tables.sandboxOutbox]) {
    for (const actor of actors) {
      const ids = outbox.of(actor).map((pending) => pending.id);
      outbox.remove(actor, ids);
    }
  }
  query(world, "DELETE FROM outbox WHERE actor_id = ANY($1::uuid[])", [actors]);
};

/** An account's counters are not what they count. */
export const distort = (world: World, which: number, how: number): void => {
  const { tables, distorted } = world;
  const id = ACCOUNTS[which % 2] ?? ACCOUNTS[0];
  const account = tables.accounts.get(id);
  if (account === undefined) return;
  if (how % 3 === 0) {
    setCounters(world, id, { ...account, queuedFires: 0 });
    return;
  }
  const activeSessions = Math.max(0, account.activeSessions + (how % 3 === 1 ? 2 : -1));
  distorted.set(id, (distorted.get(id) ?? 0) + activeSessions - account.activeSessions);
  setCounters(world, id, { ...account, activeSessions });
};

/** A live session that must not end has no commands left. */
export const forget = (world: World, which: number): void => {
  const { tables } = world;
  const live = [...tables.sessions.values()].filter(
    ({ record, snapshot }) => isLive(record.status) && snapshot.context.ending === null,
  );
  const row = live[which % Math.max(1, live.length)];
  if (row === undefined) return;
  const { id, sandboxId } = row.record;
  world.forgotten.add(id);
  // One whose destruction is forgotten is for the orphans' round.
  if (sandboxId !== null) world.liedAbout.add(sandboxId);
  forgetCommands(world, [id, ...(sandboxId === null ? [] : [sandboxId])]);
};

/** A sandbox of this installation that no record holds. */
export const plantOrphan = (world: World): void => {
  const spec = {
    ...BARE_SPEC,
    id: world.fresh(),
    sessionId: world.fresh(),
    environment: {},
    runtime: PLAIN_RUNTIME,
    bootDeadlineMs: 0,
  };
  world.ask(Effect.flatMap(SimulatedSandboxes, ({ plant }) => plant(spec)));
};

/** Programs that wait for a person to sign them in, in memory: see postgres/people/device-logins.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  crowdedOut,
  EARLY_MS,
  LOGIN_LIFE_MS,
  MISSES_MAX,
  MISSES_MS,
  POLL_MS,
  SLOWER_MS,
} from "../../../../src/domain/person/device-login.ts";
import {
  DeviceLogins,
  type ClaimResult,
  type DeviceLogin,
  type NewDeviceLogin,
  type TypedCode,
} from "../../../../src/store/ports/people/device-logins.ts";
import { insertToken, isAlive } from "./identity.ts";
import type { DeviceLoginRow } from "./sign-in-rows.ts";
import { Tables, type TableSet } from "../tables.ts";

type Port = (typeof DeviceLogins)["Service"];

const begin = (tables: TableSet, { now, ...login }: NewDeviceLogin): void => {
  const rows = tables.deviceLogins;
  for (const row of rows.values()) if (row.expiresAt <= now) rows.delete(row.id);
  const oldest = [...rows.values()].toSorted((a, b) => a.expiresAt - b.expiresAt || (a.id < b.id ? -1 : 1));
  for (const id of crowdedOut(oldest)) rows.delete(id);
  const times = { createdAt: now, expiresAt: now + LOGIN_LIFE_MS, nextPollAt: now, pollMs: POLL_MS };
  rows.set(login.id, { ...login, ...times, decision: null });
};

const find = (tables: TableSet, { userId, userHash, now }: TypedCode): DeviceLoginRow | "too_many" | null => {
  if (tables.users.get(userId)?.deactivatedAt !== null) return null;
  const known = tables.codeMisses.get(userId);
  const misses = known !== undefined && known.since > now - MISSES_MS ? known : { count: 0, since: now };
  if (misses.count >= MISSES_MAX) return "too_many";
  const login = [...tables.deviceLogins.values()].find(
    (row) => row.userHash === userHash && row.decision === null && row.expiresAt > now,
  );
  if (login !== undefined) return login;
  tables.codeMisses.set(userId, { ...misses, count: misses.count + 1 });
  return null;
};

const shown = (row: DeviceLoginRow | "too_many" | null): DeviceLogin | "too_many" | null => {
  if (row === null || row === "too_many") return row;
  const { id, client, address, userAgent, createdAt, expiresAt } = row;
  return { id, client, address, userAgent, createdAt, expiresAt };
};

const decide: (tables: TableSet, request: Parameters<Port["decide"]>[0]) => ReturnType<typeof shown> = (
  tables,
  { grant, ...typed },
) => {
  const row = find(tables, typed);
  if (row !== null && row !== "too_many")
    tables.deviceLogins.set(row.id, {
      ...row,
      decision: { userId: typed.userId, tokenId: typed.tokenId, grant },
    });
  return shown(row);
};

const claim = (tables: TableSet, { deviceHash, token, now }: Parameters<Port["claim"]>[0]): ClaimResult => {
  const row = [...tables.deviceLogins.values()].find(
    (login) => login.deviceHash === deviceHash && login.expiresAt > now,
  );
  if (row === undefined) return { kind: "unknown" };
  if (row.decision === null) {
    const isEarly = now < row.nextPollAt - EARLY_MS;
    const pollMs = row.pollMs + (isEarly ? SLOWER_MS : 0);
    tables.deviceLogins.set(row.id, { ...row, pollMs, nextPollAt: now + pollMs });
    return { kind: isEarly ? "too_early" : "waiting" };
  }
  tables.deviceLogins.delete(row.id);
  const { userId, tokenId, grant } = row.decision;
  const approver = tables.tokens.get(tokenId);
  const person = tables.users.get(userId);
  const isOpen = approver !== undefined && isAlive(tables, approver, now);
  if (grant === null || person?.deactivatedAt !== null || !isOpen) return { kind: "denied" };
  const { accountId, name } = person;
  insertToken(tables, { ...token, ...grant, accountId, userId, name: row.client, origin: "user", now });
  return { kind: "token", ...grant, accountId, user: { id: userId, name }, client: row.client };
};

export const layer = Layer.effect(
  DeviceLogins,
  Effect.map(Tables, (tables) => ({
    begin: (login) => Effect.sync(() => begin(tables, login)),
    look: (typed) => Effect.sync(() => shown(find(tables, typed))),
    decide: (request) => Effect.sync(() => decide(tables, request)),
    claim: (request) => Effect.sync(() => claim(tables, request)),
  })),
);

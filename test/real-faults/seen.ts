/** Looks at everything of a service at rest that can be seen from outside. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { Random } from "../simulation/random.ts";
import type { Books } from "./checkers/books.ts";
import { CANARY, type FaultyService } from "./installation.ts";
import type { Machine } from "./machine.ts";
import type { Refs } from "./refs.ts";
import type { SandboxRow, SessionRow, Tables } from "./tables.ts";

/** A view of a service at rest. */
export interface Seen {
  readonly tables: Tables;
  readonly machine: Machine;
  readonly refs: Refs;
  readonly books: Books;
  /** The node whose sandboxes `machine` holds. */
  readonly nodeId: string;
  /** What the API says: sessions by id with their status, and the account's counters. */
  readonly said: {
    readonly sessions: ReadonlyMap<string, string>;
    readonly active: number;
    readonly queued: number;
  };
  /** Credentials that opened something, and those that should have. */
  readonly opened: readonly { readonly sandboxId: string; readonly what: string; readonly opens: boolean }[];
  /** Places in which the canary stands in plain text. */
  readonly plaintext: readonly string[];
}

export type Checker = (seen: Seen) => readonly string[] | Promise<readonly string[]>;

const LIVE = new Set(["provisioning", "running"]);
export const isLive = ({ status }: SessionRow): boolean => LIVE.has(status);
export const isLiveSandbox = ({ status }: SandboxRow): boolean =>
  status === "provisioning" || status === "active";

/** Names that several have. */
export const doubled = <A>(of: readonly A[], key: (one: A) => string | null): readonly string[] =>
  [...Map.groupBy(of, key)].flatMap(([name, found]) => (name !== null && found.length > 1 ? [name] : []));

/** What the API says of the project and its account. */
const readSaid = async ({ life, projectId }: FaultyService): Promise<Seen["said"]> => {
  const sessions = await life.everyPage<SessionRow>(`/v1/projects/${projectId}/sessions`, "sessions");
  const { account } = (await life.call("GET", "/v1/me")) as {
    readonly account: { readonly active_sessions: number; readonly queued_fires: number };
  };
  return {
    sessions: new Map(sessions.map(({ id, status }) => [id, status])),
    active: account.active_sessions,
    queued: account.queued_fires,
  };
};

/** How many sandboxes' credentials are tried at a look: the newest, and some of all that ever were. */
const TRIED = { newest: 20, others: 10 } as const;

const opens = async (url: string, authorization: string): Promise<boolean> => {
  const answer = await fetch(url, { headers: { authorization } });
  await answer.text();
  if (answer.status >= 500) throw new Error(`${url} answered ${answer.status}`);
  return answer.ok;
};

/** Tries what sandboxes were given. */
const tryCredentials = async (
  { service, books, random }: LookOptions,
  { sandboxes }: Tables,
): Promise<Seen["opened"]> => {
  const { serviceKey, cliToken } = await service.keyring();
  const own = sandboxes.filter(({ nodeId }) => nodeId === service.nodeId).map(({ id }) => id);
  // Ids are in the order of their making (UUIDs of version 7).
  const ids = own.toSorted();
  const others = ids.slice(0, -TRIED.newest);
  const some = Array.from(
    { length: Math.min(TRIED.others, others.length) },
    () => others[random.between(0, others.length - 1)] ?? "",
  );
  const project = `${service.url}/v1/projects/${service.projectId}`;
  const refs = `${service.url}/v1/git/${service.projectId}.git/info/refs?service=git-upload-pack`;
  const found: Seen["opened"][number][] = [];
  for (const sandboxId of new Set([...ids.slice(-TRIED.newest), ...some])) {
    const tried = async (what: string, url: string, authorization: string) =>
      found.push({ sandboxId, what, opens: await opens(url, authorization) });
    await tried("the service key", `${project}/git/clone-credential`, `Bearer ${serviceKey(sandboxId)}`);
    await tried("the token", project, `Bearer ${cliToken(sandboxId)}`);
    const password = books.passwords.get(sandboxId);
    if (password !== undefined) await tried("the git password", refs, `Basic ${btoa(`session:${password}`)}`);
  }
  return found;
};

/** Files of megabytes that hold no text of anybody's. */
const isSearched = (file: string): boolean => statSync(file, { throwIfNoEntry: false })?.isFile() === true;

/** Where the canary stands: files of the data directory (the database's pages and log among them), command lines, logs. */
const searchCanary = async ({ service }: LookOptions, { sessions }: Tables): Promise<readonly string[]> => {
  const needle = Buffer.from(CANARY);
  const files = readdirSync(service.dataDir, { recursive: true, encoding: "utf8" })
    .map((name) => path.join(service.dataDir, name))
    .filter(isSearched);
  const holding = (file: string): boolean => {
    try {
      return readFileSync(file).includes(needle);
    } catch {
      return false; // It went while it was looked at.
    }
  };
  const commands = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => `/proc/${pid}/cmdline`);
  const found = [...files, ...commands].filter(holding);
  if (service.log.includes(CANARY)) found.push("the service's log");
  const ended = sessions
    .filter(({ deleted }) => !deleted)
    .map(({ id }) => id)
    .toSorted();
  for (const id of ended.slice(-TRIED.newest))
    if (
      (await service.life.text(`/v1/projects/${service.projectId}/sessions/${id}/logs?follow=0`)).includes(
        CANARY,
      )
    )
      found.push(`the log of session ${id}`);
  return found;
};

export interface LookOptions {
  readonly service: FaultyService;
  readonly books: Books;
  readonly random: Random;
}

/** What decides whether two looks saw the same; due instants get their rows meanwhile. */
const stateOf = ({ accounts, sessions, sandboxes, queue, outbox }: Tables): string =>
  JSON.stringify([accounts, sessions, sandboxes, queue, outbox]);

/** @returns everything at once, and whether nothing happened while it was looked at: the cron trigger goes on. */
export const lookAt = async (
  options: LookOptions,
): Promise<{ readonly seen: Seen; readonly isSteady: boolean }> => {
  const { service, books } = options;
  const tables = await service.tables();
  const seen = {
    tables,
    machine: service.machine(),
    refs: await service.refs(),
    books,
    nodeId: service.nodeId,
    said: await readSaid(service),
    opened: await tryCredentials(options, tables),
    plaintext: await searchCanary(options, tables),
  };
  return { seen, isSteady: stateOf(await service.tables()) === stateOf(tables) };
};

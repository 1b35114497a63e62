/**
 * The permission table (api.md 1 "Caller", "Origin"): from the power that an endpoint requires to the tokens
 * and the roles that have it. test/http/access.test.ts checks every cell.
 */
import type { SteeringAct } from "../domain/own-credential.ts";
import { includesRole, type MergeRole, type ProjectRole } from "../domain/role.ts";
import type { Principal, Reached } from "../store/ports/identity.ts";
import type { Power } from "./api/access.ts";

export type CallerKind = "user" | "session" | "trigger" | "sandbox";

export const callerKind = (caller: Principal): CallerKind =>
  caller.kind === "sandbox" ? "sandbox" : caller.origin;

/** A user token bound to one project governs that project, but not the account. */
const MAY: Readonly<Record<Power, readonly CallerKind[]>> = {
  self: ["user", "session"],
  account: ["user"],
  administer: ["user"],
  read: ["user", "session", "trigger"],
  work: ["user", "session"],
  converse: ["user"],
  propose: ["user", "session", "trigger"],
  contribute: ["user"],
  merge: ["user"],
  execute: ["session", "trigger"],
  govern: ["user"],
  operate: ["user"],
  clone: ["sandbox"],
};

/** Powers over the account. A token bound to one project lacks them. */
const ACCOUNT_WIDE: ReadonlySet<Power> = new Set<Power>(["account", "administer", "operate"]);
/** Powers of the account's owners. */
const OWNERS: ReadonlySet<Power> = new Set<Power>(["administer", "operate"]);

/** The lowest role in a project that has a power. A power that is missing here does not depend on a project. */
const NEEDS: Partial<Readonly<Record<Power, ProjectRole>>> = {
  read: "viewer",
  work: "member",
  converse: "member",
  propose: "member",
  execute: "member",
  contribute: "member",
  govern: "owner",
};

/** The lowest role in a project that has the power there. Null: the power does not depend on a project. */
export const neededRole = (power: Power, mergeRole: MergeRole): ProjectRole | null =>
  power === "merge" ? mergeRole : (NEEDS[power] ?? null);

/** Why a caller lacks a power. */
export type Lack =
  /** Tokens of this kind never have it. */
  | { readonly by: "token" }
  /** The token is bound to this project, and the power is over the whole account. */
  | { readonly by: "binding"; readonly projectId: string }
  /** Only an owner of the account has it. */
  | { readonly by: "account" }
  | { readonly by: "role"; readonly needed: ProjectRole; readonly role: ProjectRole }
  /** An agent enters no sandbox of this session this way. */
  | { readonly by: "session" };

/** Why the caller's token and role in the account lack the power. Null: they have it. `lackAt` asks for the project. */
export const lackOf = (caller: Principal, power: Power): Lack | null => {
  if (!MAY[power].includes(callerKind(caller))) return { by: "token" };
  const { projectId } = caller;
  if (projectId !== null && ACCOUNT_WIDE.has(power)) return { by: "binding", projectId };
  return OWNERS.has(power) && caller.accountRole !== "owner" ? { by: "account" } : null;
};

/** A way into the sandbox of a running session. */
export interface Entrance {
  /** What a person needs. */
  readonly power: Power;
  /** The sessions whose sandboxes an agent enters this way: that of its token, and those that it started. */
  readonly agents: readonly ("own" | "started")[];
  /** The act of a person who steers the session this way (domain/own-credential.ts). Null: the way steers nothing. */
  readonly act: SteeringAct | null;
}

export const ENTRANCES = {
  /** The agent runtime with its controls. Who reaches it makes the agent act. */
  runtime: { power: "converse", agents: ["own"], act: "runtime" },
  /** The runtime's end of a turn, and its new secrets. */
  controls: { power: "converse", agents: ["own"], act: null },
  /** Where programs listen. */
  ports: { power: "work", agents: ["own", "started"], act: "port" },
} as const satisfies Readonly<Record<string, Entrance>>;

/**
 * Why a caller may not enter a session's sandbox (threats.md X23). Null: it may. No agent makes another one act, so words
 * that mislead one agent do not reach the others.
 *
 * @param session null: not read yet
 */
export const lackInto = (
  caller: Principal,
  { power, agents }: Pick<Entrance, "power" | "agents">,
  session: { readonly id: string; readonly parentSessionId: string | null } | null,
): Lack | null => {
  if (callerKind(caller) !== "session" || agents.length === 0) return lackOf(caller, power);
  if (session === null) return null;
  const { sessionId } = caller;
  const isOwn = session.id === sessionId;
  const isStarted = sessionId !== null && session.parentSessionId === sessionId;
  const enters = (isOwn && agents.includes("own")) || (isStarted && agents.includes("started"));
  return enters ? null : { by: "session" };
};

/** Why the caller's role lacks the power in a project that exists for her. Null: it has it. */
export const lackAt = (
  power: Power,
  { role, mergeRole }: Pick<Reached, "role" | "mergeRole">,
): Lack | null => {
  const needed = neededRole(power, mergeRole);
  if (needed === null || role === null || includesRole(role, needed)) return null;
  return { by: "role", needed, role };
};

/**
 * Whether a project-bound token is in its own project. Any other project answers as not found (404, threats.md T02).
 */
export const reaches = (caller: Principal, projectId: string): boolean =>
  caller.projectId === null || caller.projectId === projectId;

/** Whose rows the caller sees in lists over all projects. Null: all rows of the account. */
export const readerOf = (caller: Principal): string | null =>
  caller.accountRole === "owner" ? null : caller.user.id;

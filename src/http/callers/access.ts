/** Which callers have a privilege (domain/person/privileges.ts). test/http/access.test.ts checks every cell. */
import {
  privilegeRule,
  powerStanding,
  type CallerKind,
  type Privilege,
} from "../../domain/person/privileges.ts";
import { includesRole, type MergeRole, type ProjectRole } from "../../domain/person/role.ts";
import type { Principal, PathRows } from "../../store/ports/people/identity.ts";

export const callerKind = ({ kind, origin }: Principal): CallerKind => (kind === "sandbox" ? kind : origin);

const standingFor = (privilege: Privilege) => powerStanding(privilegeRule(privilege).power);

/** The lowest role in a project that has a privilege there. Null if the privilege does not depend on a project. */
export const neededRole = (privilege: Privilege, mergeRole: MergeRole): ProjectRole | null => {
  const { role = null } = standingFor(privilege);
  return role === "merge" ? mergeRole : role;
};

/** Why a caller lacks a privilege. */
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

/** Why the caller's token and role in the account lack the privilege. Null if they have it. `lackAt` decides for the project. */
export const findLack = (caller: Principal, privilege: Privilege): Lack | null => {
  const { callers, account } = standingFor(privilege);
  if (!callers.includes("stranger") && !callers.includes(callerKind(caller))) return { by: "token" };
  const { projectId } = caller;
  if (projectId !== null && account !== undefined) return { by: "binding", projectId };
  return account === "owner" && caller.accountRole !== "owner" ? { by: "account" } : null;
};

/**
 * Why a caller may not enter a session's sandbox by this privilege (threats.md X23). Null if it may. No agent makes another one act, so
 * words that mislead one agent do not reach the others.
 *
 * @param session null: not read yet
 */
export const lackInto = (
  caller: Principal,
  privilege: Privilege,
  session: { readonly id: string; readonly parentSessionId: string | null } | null,
): Lack | null => {
  const { agents = [] } = privilegeRule(privilege);
  if (callerKind(caller) !== "session" || agents.length === 0) return findLack(caller, privilege);
  if (session === null) return null;
  const { sessionId } = caller;
  const isOwn = session.id === sessionId;
  const isStarted = sessionId !== null && session.parentSessionId === sessionId;
  const enters = (isOwn && agents.includes("own")) || (isStarted && agents.includes("started"));
  return enters ? null : { by: "session" };
};

/** Why the caller's role lacks the privilege in a project that exists for her. Null if it has it. */
export const lackAt = (
  privilege: Privilege,
  { role, mergeRole }: Pick<PathRows, "role" | "mergeRole">,
): Lack | null => {
  const minimum = neededRole(privilege, mergeRole);
  if (minimum === null || role === null || includesRole(role, minimum)) return null;
  return { by: "role", needed: minimum, role };
};

/**
 * Whether a project-bound token is in its own project. Any other project answers as not found (404, threats.md T02).
 */
export const reaches = (caller: Principal, projectId: string): boolean =>
  caller.projectId === null || caller.projectId === projectId;

/** Whose rows the caller sees in lists over all projects. Null for all rows of the account. */
export const listReader = (caller: Principal): string | null =>
  caller.accountRole === "owner" ? null : caller.user.id;

/**
 * The permission table (api.md 1 "Caller", "Origin"): from the power that an endpoint requires to the tokens that have
 * it. test/http/access.test.ts checks every cell.
 */
import type { Principal } from "../store/ports/identity.ts";
import type { Power } from "./api/access.ts";

export type CallerKind = "user" | "session" | "trigger" | "sandbox";

export const callerKind = (caller: Principal): CallerKind =>
  caller.kind === "sandbox" ? "sandbox" : caller.origin;

/** A user token bound to one project governs that project, but not the account. */
const MAY: Readonly<Record<Power, readonly CallerKind[]>> = {
  self: ["user", "session"],
  account: ["user"],
  read: ["user", "session", "trigger"],
  work: ["user", "session"],
  converse: ["user"],
  propose: ["user", "session", "trigger"],
  execute: ["session", "trigger"],
  govern: ["user"],
  operate: ["user"],
  clone: ["sandbox"],
};

/** Powers over the account. A token bound to one project lacks them. */
const ACCOUNT_WIDE: ReadonlySet<Power> = new Set<Power>(["account", "operate"]);

/** Whether the caller's token has the power at all. `reaches` decides for which project. */
export const hasPower = (caller: Principal, power: Power): boolean =>
  MAY[power].includes(callerKind(caller)) && (caller.projectId === null || !ACCOUNT_WIDE.has(power));

/**
 * Whether a project-bound token is in its own project. Any other project answers as not found (404, threats.md T02).
 */
export const reaches = (caller: Principal, projectId: string): boolean =>
  caller.projectId === null || caller.projectId === projectId;

/**
 * Who may do what (api.md 1 "Caller", "Origin"): one table from the power an endpoint asks for to the tokens that
 * have it. Held cell by cell by test/http/access.test.ts.
 */
import type { Principal } from "../store/ports/records.ts";
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
  propose: ["user", "session", "trigger"],
  govern: ["user"],
  clone: ["sandbox"],
};

/** Powers over the account that a token bound to one project does not have. */
const ACCOUNT_WIDE: ReadonlySet<Power> = new Set<Power>(["account"]);

/** Whether the caller's token has the power at all; which project it has it in is `reaches`. */
export const hasPower = (caller: Principal, power: Power): boolean =>
  MAY[power].includes(callerKind(caller)) && (caller.projectId === null || !ACCOUNT_WIDE.has(power));

/** Whether a project-bound token is in its own project; another one is not there for it (404, threats.md T02). */
export const reaches = (caller: Principal, projectId: string): boolean =>
  caller.projectId === null || caller.projectId === projectId;

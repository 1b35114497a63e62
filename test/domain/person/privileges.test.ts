/** The rules within the table itself. test/http/access.test.ts compares it with the contract. */
import { expect, it } from "vitest";
import {
  isSteering,
  PRIVILEGES,
  privilegeRule,
  powerStanding,
  type Privilege,
} from "../../../src/domain/person/privileges.ts";

const ALL = Object.keys(PRIVILEGES) as Privilege[];

it.each(ALL)("%s: what holds for agents is only said of a privilege that an agent may have", (privilege) => {
  const { tool, power, agents = [], act } = privilegeRule(privilege);
  if (tool !== undefined) expect(powerStanding(power).callers).toContain("session");
  // A way into a sandbox leaves it to the sessions which of them an agent enters.
  if (agents.length > 0) expect(powerStanding(power).role).toBe("member");
  expect(isSteering(privilege)).toBe(act !== undefined);
});

it("only a person makes an agent act, answers it or approves its calls", () => {
  for (const privilege of ["instruct_agent", "settle_request", "approve_call", "open_terminal"] as const)
    expect(powerStanding(privilegeRule(privilege).power).callers).toEqual(["user"]);
});

it("only a person governs, merges, limits spend and reads names of secrets", () => {
  for (const privilege of [
    "govern_account",
    "govern_project",
    "limit_session",
    "delete_project",
    "write_secret",
    "merge_change_request",
    "see_secret_names",
  ] as const)
    expect(powerStanding(privilegeRule(privilege).power).callers).toEqual(["user"]);
});

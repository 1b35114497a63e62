/** Roles: the highest grant counts, and each role includes those below it. */
import { describe, expect, it } from "vitest";
import { includesRole, PROJECT_ROLES, roleIn, whyLapsed } from "../../../src/domain/person/role.ts";

describe("a person's role in a project", () => {
  it.each([
    ["owner", null, null, "owner"],
    ["owner", "viewer", "viewer", "owner"],
    ["member", null, null, null],
    ["member", null, "viewer", "viewer"],
    ["member", null, "member", "member"],
    ["member", "viewer", null, "viewer"],
    ["member", "viewer", "member", "member"],
    ["member", "member", "viewer", "member"],
    ["member", "owner", "viewer", "owner"],
  ] as const)(
    "for an account's %s with the own grant %s and the default %s is %s",
    (account, own, by, role) => {
      expect(roleIn({ account, own, projectDefault: by })).toBe(role);
    },
  );

  it("includes the roles below it, and no role above it", () => {
    const table = PROJECT_ROLES.map((role) => PROJECT_ROLES.filter((needed) => includesRole(role, needed)));
    expect(table).toEqual([["viewer"], ["viewer", "member"], ["viewer", "member", "owner"]]);
    expect(PROJECT_ROLES.filter((needed) => includesRole(null, needed))).toEqual([]);
  });
});

describe("what a person asked for or decided earlier", () => {
  it.each([
    [true, "member", null],
    [true, "owner", null],
    [true, "viewer", "role_lost"],
    [true, null, "role_lost"],
    [false, "owner", "user_deactivated"],
  ] as const)("if she is active: %s, and has the role %s, counts, or lapses as %s", (isActive, role, why) => {
    expect(whyLapsed({ isActive, role }, "member")).toBe(why);
  });
});

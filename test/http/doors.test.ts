/** Each way to do something names its privilege (src/domain/person/privileges.ts). access.test.ts and routes.test.ts try who may. */
import { describe, expect, it } from "vitest";
import { GUARDED_TOOLS } from "../../src/domain/connector/connector.ts";
import { STEERING_ACTS } from "../../src/domain/connector/own-credential.ts";
import {
  PRIVILEGES,
  privilegeRule,
  powerStanding,
  type Privilege,
} from "../../src/domain/person/privileges.ts";
import { OWN_TOOLS } from "../../src/assembly/api.ts";
import { ROUTES, routeTable } from "../../src/assembly/api.ts";
import { routeName } from "../../src/http/route-name.ts";
import { decideEgress, type EgressPolicy } from "../../src/sandbox/egress-policy.ts";

const ALL = Object.keys(PRIVILEGES) as Privilege[];
const ID = "00000000-0000-4000-8000-000000000000";

const POLICY: EgressPolicy = {
  allow: ["*"],
  secretNames: [],
  serviceUrl: "http://127.0.0.1:8080",
  llmUpstream: "http://127.0.0.1:9000/v1",
};

const inside = (host: string) => {
  const decision = decideEgress(POLICY, host, 80);
  if (decision.kind === "refused") throw new Error(decision.reason);
  return decision;
};

/** The privilege of a tool's route: a tool has no power of its own (own-api.ts O1). */
const toolPrivilege = (name: string): Privilege => {
  const tool = OWN_TOOLS.find((one) => one.name === name);
  const given = { id: ID, number: 1 };
  const { method, path } = tool?.request(given, ID) ?? { method: "GET", path: [] };
  const wanted = routeTable.name(method, `/v1/projects/${[ID, ...path].join("/")}`);
  const route = ROUTES.find((one) => routeName(one) === wanted);
  if (route === undefined) throw new Error(`${name} asks for no route`);
  return route.privilege;
};

describe("every privilege", () => {
  it("is behind a door", () => {
    const doors: readonly Privilege[] = [
      ...ROUTES.map(({ privilege }) => privilege),
      ...["platform.internal", "llm.platform.internal", "example.org"].map((host) => inside(host).privilege),
      // The package proxy's, the terminal's where PLATFORM_TERMINALS says so, and git's for saved work.
      "reach_registry",
      "open_owners_terminal",
      "fetch_saved_work",
      // A stop's that goes without a save.
      "discard_work",
    ];
    expect([...new Set(doors)].toSorted()).toEqual(ALL.toSorted());
  });

  it("that steers has an act of its own, and each act has a privilege", () => {
    const acts = ALL.flatMap((name) => privilegeRule(name).act ?? []);
    expect([...new Set(acts)].toSorted()).toEqual(Object.keys(STEERING_ACTS).toSorted());
  });
});

describe("a tool of the platform", () => {
  it.each(OWN_TOOLS.map(({ name }) => name))("%s is a door that a session's agent may use", (name) => {
    expect(powerStanding(privilegeRule(toolPrivilege(name)).power).callers).toContain("session");
  });

  it("that a project can deny is denied at every other door to the same", () => {
    for (const name of GUARDED_TOOLS) expect(privilegeRule(toolPrivilege(name)).tool).toBe(name);
    const others = OWN_TOOLS.filter(({ name }) => !GUARDED_TOOLS.some((guarded) => guarded === name));
    for (const { name } of others) expect(privilegeRule(toolPrivilege(name)).tool, name).toBe(undefined);
  });
});

describe("the address of the service inside a sandbox", () => {
  it.each(ROUTES.map((route) => [routeName(route), route] as const))(
    "passes %s unless the privilege is closed inside",
    (_, { method, pattern, privilege }) => {
      const decision = inside("platform.internal");
      const path = pattern.replaceAll(/:[a-z]+/gi, "x").replace("*", "x");
      const refusal = decision.kind === "origin" ? decision.rule(method === "*" ? "GET" : method, path) : "";
      expect(refusal === null).toBe(privilegeRule(privilege).closedInside !== true);
    },
  );
});

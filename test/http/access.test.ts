/** Every privilege × every kind of token × every role (api.md 1 "Caller", "Origin"). routes.test.ts tries the routes. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import { findLack, neededRole } from "../../src/http/callers/access.ts";
import { PRIVILEGES, privilegeRule, type Privilege } from "../../src/domain/person/privileges.ts";
import type { RequestCaller } from "../../src/http/api/access.ts";
import { forbidden, requireRole } from "../../src/http/callers/authorize.ts";
import type { MergeRole, ProjectRole } from "../../src/domain/person/role.ts";
import type { Principal } from "../../src/store/ports/people/identity.ts";
import type { Fate } from "./call.ts";
import { FATES, GOOD } from "./fates.ts";

type Good = (typeof GOOD)[number];

const PERSON: Principal = {
  tokenId: "token",
  kind: "access",
  origin: "user",
  accountId: "account",
  user: { id: "person", name: "Person" },
  accountRole: "member",
  projectId: null,
  sessionId: null,
  sandboxId: null,
  expiresAt: null,
  reachEndsAt: null,
  openedBy: null,
};
const OWNER: Principal = { ...PERSON, accountRole: "owner" };
const AGENT = { ...OWNER, projectId: "here", sessionId: "session" } as const;

/** Who calls, and the role in the project that is called for. Null: it does not exist for the caller. */
const CALLERS: Readonly<Record<Good, readonly [Principal, ProjectRole | null]>> = {
  user: [OWNER, "owner"],
  projectOwner: [PERSON, "owner"],
  member: [PERSON, "member"],
  viewer: [PERSON, "viewer"],
  outsider: [PERSON, null],
  bound: [{ ...OWNER, projectId: "here" }, "owner"],
  elsewhere: [{ ...OWNER, projectId: "elsewhere" }, "owner"],
  foreign: [{ ...OWNER, accountId: "another" }, null],
  session: [{ ...AGENT, origin: "session" }, "owner"],
  trigger: [{ ...AGENT, origin: "trigger" }, "owner"],
  sandbox: [{ ...AGENT, kind: "sandbox" }, "owner"],
};

/** As the middleware does it: first the token, then the role in the project, if the privilege depends on one. */
const fateOf = (kind: Good, privilege: Privilege, mergeRole: MergeRole): Fate => {
  const [caller, role] = CALLERS[kind];
  const path = { projectId: "here", sessionId: null };
  const arrived: RequestCaller = { ...caller, reached: { path, role, mergeRole, session: null } };
  if (findLack(caller, privilege) !== null) return 403;
  if (neededRole(privilege, mergeRole) === null) return "in";
  return Result.match(Effect.runSync(Effect.result(requireRole(arrived, privilege))), {
    onSuccess: (): Fate => "in",
    onFailure: ({ code }): Fate => (code === "not_found" ? 404 : 403),
  });
};

const fates = (privilege: Privilege, mergeRole: MergeRole = "member") =>
  Object.fromEntries(GOOD.map((kind) => [kind, fateOf(kind, privilege, mergeRole)]));

/** Which are not of the API: nodes have a credential of their own, and inside a sandbox the egress proxy decides. */
const ELSEWHERE = new Set<string>(["node", "inside"]);
const OF_TOKENS = (Object.keys(PRIVILEGES) as Privilege[]).filter(
  (name) => !ELSEWHERE.has(privilegeRule(name).power),
);

describe("the privilege", () => {
  it.each(OF_TOKENS)("%s is for the intended tokens and roles [T01] [T02] [T05] [T11]", (privilege) => {
    // Which account is the operator's, its handlers ask the store.
    const { foreign, ...others } = fates(privilege);
    expect(FATES[privilege]).toMatchObject(privilege === "operate_service" ? others : { foreign, ...others });
  });

  it("to merge is the owners' where the project says so", () => {
    expect(fates("merge_change_request", "owner")).toEqual({ ...fates("merge_change_request"), member: 403 });
  });
});

const words = (lack: Parameters<typeof forbidden>[1], caller = PERSON) => forbidden(caller, lack).error;

describe("a refusal", () => {
  it("says what is missing", () => {
    expect(words({ by: "token" }, CALLERS.trigger[0])).toBe("A trigger token does not have permission to do this."); // prettier-ignore
    expect(words({ by: "account" })).toBe("Only an owner of the account can do this.");
    expect(words({ by: "role", role: "viewer", needed: "member" })).toBe(
      "Your role in this project is viewer. This needs the role member. An owner of the project can change your role.",
    );
  });
});

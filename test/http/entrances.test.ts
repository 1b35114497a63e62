/** Who enters the sandbox of a session, and how (src/http/callers/access.ts `lackInto`). */
import { describe, expect, it } from "vitest";
import { PRIVILEGES, privilegeRule, type Privilege } from "../../src/domain/person/privileges.ts";
import { lackInto } from "../../src/http/callers/access.ts";
import type { Principal } from "../../src/store/ports/people/identity.ts";

const CALLER: Principal = {
  tokenId: "token",
  kind: "access",
  origin: "user",
  accountId: "account",
  user: { id: "person", name: "Person" },
  accountRole: "member",
  projectId: "project",
  sessionId: null,
  sandboxId: null,
  expiresAt: null,
  openedBy: null,
  reachEndsAt: null,
};
const agent = (origin: "session" | "trigger", sessionId: string | null): Principal => ({
  ...CALLER,
  origin,
  sessionId,
});
const AGENT = agent("session", "own");

/** Each session as the agent of `own` is related to it. */
const SESSIONS = {
  own: { id: "own", parentSessionId: "parent" },
  child: { id: "child", parentSessionId: "own" },
  grandchild: { id: "grandchild", parentSessionId: "child" },
  parent: { id: "parent", parentSessionId: null },
  sibling: { id: "sibling", parentSessionId: "parent" },
  stranger: { id: "stranger", parentSessionId: null },
} as const;
const ENTRANCES = (Object.keys(PRIVILEGES) as Privilege[]).filter(
  (name) => privilegeRule(name).agents !== undefined,
);

/** The sessions whose sandboxes the caller may enter. */
const entered = (caller: Principal, entrance: Privilege): readonly string[] =>
  Object.entries(SESSIONS).flatMap(([name, session]) =>
    lackInto(caller, entrance, session) === null ? [name] : [],
  );

describe("an agent", () => {
  it("reaches the agent runtime of its own session only [X23]", () => {
    expect(entered(AGENT, "use_runtime")).toEqual(["own"]);
    expect(entered(AGENT, "control_runtime")).toEqual(["own"]);
  });

  it("reaches the ports of its own session and of those that it started [X23]", () => {
    expect(entered(AGENT, "enter_port")).toEqual(["own", "child"]);
  });

  it("hears that the session is the reason, once the session is known", () => {
    expect(lackInto(AGENT, "enter_port", null)).toBe(null);
    expect(lackInto(AGENT, "enter_port", SESSIONS.stranger)).toEqual({ by: "session" });
  });

  it("gets no terminal, also not in its own session", () => {
    expect(entered(AGENT, "open_terminal")).toEqual([]);
  });

  it("reaches nothing with a trigger's token, or with one that names no session", () => {
    for (const caller of [agent("trigger", "own"), agent("session", null)])
      for (const entrance of ENTRANCES) expect(entered(caller, entrance)).toEqual([]);
  });
});

describe("a person", () => {
  it("enters every session of a project in which her role has the power", () => {
    for (const entrance of ENTRANCES) expect(entered(CALLER, entrance)).toEqual(Object.keys(SESSIONS));
  });

  it("needs the power to converse for the agent runtime, as for a message", () => {
    expect(privilegeRule("use_runtime").power).toBe(privilegeRule("instruct_agent").power);
  });
});

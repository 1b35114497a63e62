/** People over the API: invitations, roles in the account and in projects, and deactivation. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  makeUserToken,
  reached,
  runSession,
  sandboxEnvironment,
  webhookEntry,
  deliver,
  putSecret,
  SECRET,
  SECRET_NAME,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
});
afterAll(() => service.close());

const ask = (method: string, path: string, token: string | null = service.token, body?: unknown) =>
  service.request(method, path, { token, ...(body === undefined ? {} : { body }) });

const ids = (answer: Awaited<ReturnType<typeof ask>>, list: string): readonly unknown[] =>
  listOf(answer, list).map(({ id }) => id);

const invited = async (wish: Readonly<Record<string, unknown>>) => {
  const answer = fields(expectStatus(await ask("POST", "/v1/invitations", service.token, wish), 201));
  return { id: String(answer["id"]), code: String(answer["url"]).split("/").at(-1) ?? "" };
};
const look = (code: string) => ask("POST", "/dashboard/invitations/look", null, { code });
const accept = (code: string, name: string) =>
  ask("POST", "/dashboard/invitations/accept", null, { code, name });

describe("an invitation", () => {
  it("says what it grants, lets a person in once, and signs her in [T12]", async () => {
    const { code } = await invited({ name: "Eve", projects: [{ project_id: pid, role: "owner" }] });
    expect(fields(await look(code))).toMatchObject({
      name: "Eve",
      role: "member",
      invited_by: "admin",
      projects: [{ role: "owner" }],
    });
    const accepted = await accept(code, "Eve Moneypenny");
    const { token, user } = fields(expectStatus(accepted, 201));
    expect(accepted.headers["cache-control"]).toBe("no-store");
    expect(String(accepted.headers["set-cookie"])).toMatch(/HttpOnly; SameSite=Strict/i);
    const me = fields(await ask("GET", "/v1/me", String(token)));
    expect(me["user"]).toEqual({ ...(user as object), name: "Eve Moneypenny", role: "member" });
    const again = await accept(code, "Mallory");
    expect([again.status, fields(again)["code"]]).toEqual([404, "invitation_invalid"]);
    expect((await look(code)).status).toBe(404);
  });

  it("is refused with a project of another account, a blank name or an unknown role", async () => {
    const wish = { name: "Eve", projects: [{ project_id: randomUUID(), role: "viewer" }] };
    const unknown = await ask("POST", "/v1/invitations", service.token, wish);
    expect([unknown.status, fields(unknown)["code"]]).toEqual([422, "unknown_project"]);
    for (const bad of [
      { name: " " },
      { name: "Eve", role: "admin" },
      { name: "x".repeat(101) },
      {},
      {
        name: "Eve",
        projects: [
          { project_id: pid, role: "viewer" },
          { project_id: pid, role: "owner" },
        ],
      },
    ])
      expect((await ask("POST", "/v1/invitations", service.token, bad)).status).toBe(400);
    const { code } = await invited({ name: "Eve" });
    for (const name of ["", " \u200b ", "x".repeat(101)]) expect((await accept(code, name)).status).toBe(400);
    expect((await accept(code, "Eve")).status).toBe(201);
  });
});

describe("a person without a role in a project", () => {
  it("does not see it in any list", async () => {
    const closed = await makeProject(service);
    expectStatus(await ask("PATCH", `/v1/projects/${closed}`, service.token, { default_role: null }), 200);
    const sid = await runSession(service, closed);
    const { token, id } = await invitePerson(service, "Otto");
    expect(ids(await ask("GET", "/v1/projects?limit=200", token), "projects")).not.toContain(closed);
    expect(ids(await ask("GET", "/v1/sessions?limit=200", token), "sessions")).not.toContain(sid);
    const bound = await ask("POST", "/v1/tokens", token, { name: "bound", project_id: closed });
    expect(bound.status).toBe(404);
    expectStatus(
      await ask("PUT", `/v1/projects/${closed}/members/${id}`, service.token, { role: "viewer" }),
      204,
    );
    expect(ids(await ask("GET", "/v1/projects?limit=200", token), "projects")).toContain(closed);
    expect(ids(await ask("GET", "/v1/sessions?limit=200", token), "sessions")).toContain(sid);
  });

  it("owns the project that she makes", async () => {
    const { token, id } = await invitePerson(service, "Mia");
    const made = await ask("POST", "/v1/projects", token, { name: "hers", repository: { kind: "hosted" } });
    const own = String(fields(expectStatus(made, 201))["id"]);
    expectStatus(
      await ask("PATCH", `/v1/projects/${own}`, token, { default_role: null, merge_role: "owner" }),
      200,
    );
    const listed = listOf(await ask("GET", `/v1/projects/${own}/members`, token), "members");
    expect(
      listed.map(({ user, role, own_role }) => [(user as { id: string }).id === id, role, own_role]),
    ).toContainEqual([true, "owner", "owner"]);
  });

  it("manages her own tokens, and sees no others", async () => {
    const { token } = await invitePerson(service, "Mia");
    const other = await makeUserToken(service);
    const { id } = await makeUserToken(service, {}, token);
    const seen = ids(await ask("GET", "/v1/tokens?limit=200", token), "tokens");
    expect(seen).toHaveLength(2);
    expect(seen).toContain(id);
    expect((await ask("DELETE", `/v1/tokens/${other.id}`, token)).status).toBe(404);
    expect(ids(await ask("GET", "/v1/tokens?limit=200"), "tokens")).toContain(id);
    expect((await ask("DELETE", `/v1/tokens/${id}`, token)).status).toBe(204);
  });
});

describe("a token that ends", () => {
  it("makes no token, login or invitation that outlives it", async () => {
    // eslint-disable-next-line no-restricted-properties -- the service has the real clock
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const { token } = await makeUserToken(service, { expires_at });
    const later = { expires_at: new Date(Date.parse(expires_at) + 1000).toISOString() };
    const made = [
      await ask("POST", "/v1/tokens", token, { name: "endless" }),
      await ask("POST", "/v1/tokens", token, { name: "later", ...later }),
      await ask("POST", "/v1/invitations", token, { name: "Eve" }),
    ];
    expect(made.map((answer) => fields(expectStatus(answer, 201))["expires_at"])).toEqual(
      Array(3).fill(expires_at),
    );
  });

  it.each([null, "2100-01-01T00:00:00.000Z"])(
    "at %s makes such tokens by a browser that it opened, too",
    async (expires_at) => {
      const { token } = await makeUserToken(service, expires_at === null ? {} : { expires_at });
      const opened = await ask("POST", "/dashboard/session", null, { token });
      const [cookie = ""] = String(expectStatus(opened, 200).headers["set-cookie"]).split(";");
      const headers = { cookie, "x-csrf-token": String(fields(opened)["csrf"]) };
      const wish = { token: null, headers, body: { name: "by a browser" } };
      const made = expectStatus(await service.request("POST", "/v1/tokens", wish), 201);
      expect(fields(made)["expires_at"]).toBe(expires_at);
    },
  );
});

describe("a role", () => {
  it("is named in a refusal, and a new one counts at the next request", async () => {
    const closed = await makeProject(service);
    expectStatus(
      await ask("PATCH", `/v1/projects/${closed}`, service.token, { default_role: "viewer" }),
      200,
    );
    const { token, id } = await invitePerson(service, "Vera");
    const refused = await ask("POST", `/v1/projects/${closed}/sessions`, token, {});
    expect([refused.status, fields(refused)["code"]]).toEqual([403, "forbidden"]);
    expect(fields(refused)["error"]).toBe(
      "Your role in this project is viewer. This needs the role member. An owner of the project can change your role.",
    );
    expectStatus(
      await ask("PUT", `/v1/projects/${closed}/members/${id}`, service.token, { role: "member" }),
      204,
    );
    expectStatus(await ask("POST", `/v1/projects/${closed}/sessions`, token, {}), 201);
  });

  it("of a session's creator bounds its tokens; a trigger's session has a member's", async () => {
    const own = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
    await putSecret(service, own, SECRET_NAME, SECRET);
    const { token, id } = await invitePerson(service, "Mia");
    const made = await ask("POST", `/v1/projects/${own}/sessions`, token, {});
    const sid = String(fields(expectStatus(made, 201))["id"]);
    await reached(service, own, sid, "running");
    const cli = (await sandboxEnvironment(service, sid))["PLATFORM_CLI_TOKEN"] ?? "";
    const start = () => ask("POST", `/v1/projects/${own}/sessions`, cli, {});
    expectStatus(await start(), 201);
    expectStatus(await ask("PATCH", `/v1/projects/${own}`, service.token, { default_role: "viewer" }), 200);
    expect((await start()).status).toBe(403);
    expectStatus(
      await ask("PUT", `/v1/projects/${own}/members/${id}`, service.token, { role: "member" }),
      204,
    );
    expectStatus(await start(), 201);
    expectStatus(await ask("PATCH", `/v1/projects/${own}`, service.token, { default_role: null }), 200);
    const fired = fields(expectStatus(await deliver(service, `${own}/push`), 202));
    await reached(service, own, String(fired["session_id"]), "running");
    const ofTrigger =
      (await sandboxEnvironment(service, String(fired["session_id"])))["PLATFORM_CLI_TOKEN"] ?? "";
    expectStatus(await ask("GET", `/v1/projects/${own}`, ofTrigger), 200);
  });

  it("of an owner cannot be given up by the account's last one [T12]", async () => {
    const me = (fields(await ask("GET", "/v1/me"))["user"] as { readonly id: string }).id;
    for (const [method, path, body] of [
      ["PATCH", `/v1/people/${me}`, { role: "member" }],
      ["POST", `/v1/people/${me}/deactivate`, undefined],
    ] as const) {
      const refused = await ask(method, path, service.token, body);
      expect([refused.status, fields(refused)["code"]]).toEqual([409, "last_owner"]);
    }
    const renamed = fields(await ask("PATCH", `/v1/people/${me}`, service.token, { name: "chief" }));
    expect(renamed).toMatchObject({ name: "chief", role: "owner" });
    expectStatus(await ask("PATCH", `/v1/people/${me}`, service.token, { name: "admin" }), 200);
  });
});

describe("a person who is deactivated", () => {
  it("has no token any more; her sessions stop with their reason, and cannot be restarted", async () => {
    const { token, id } = await invitePerson(service, "Mia");
    const made = await ask("POST", `/v1/projects/${pid}/sessions`, token, {});
    const sid = String(fields(expectStatus(made, 201))["id"]);
    await reached(service, pid, sid, "running");
    const fired = String(fields(expectStatus(await deliver(service, `${pid}/push`), 202))["session_id"]);
    await reached(service, pid, fired, "running");
    expectStatus(await ask("POST", `/v1/people/${id}/deactivate`), 200);
    expect((await ask("GET", "/v1/me", token)).status).toBe(401);
    const session = await reached(service, pid, sid, "stopped");
    expect(session["stop_reason"]).toBe("user_deactivated");
    const restarted = await ask("POST", `/v1/projects/${pid}/sessions/${sid}/restart`);
    expect([restarted.status, fields(restarted)["code"]]).toEqual([409, "user_deactivated"]);
    expect(fields(await ask("GET", `/v1/projects/${pid}/sessions/${fired}`))["status"]).toBe("running");
    const later = fields(expectStatus(await deliver(service, `${pid}/push`), 202));
    await reached(service, pid, String(later["session_id"]), "running");
    const people = listOf(await ask("GET", "/v1/people?limit=200"), "people");
    expect(people.find((person) => person["id"] === id)?.["deactivated_at"]).not.toBeNull();
    expectStatus(await ask("POST", `/v1/people/${id}/reactivate`), 200);
    expect((await ask("GET", "/v1/me", token)).status).toBe(401);
    const again = await ask("POST", `/v1/projects/${pid}/sessions/${sid}/restart`);
    expect(again.status, again.text).toBe(202);
  });
});

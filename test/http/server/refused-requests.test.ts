/** Refused requests of the API on the audit record: which are kept, what they say, and how many. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as Effect from "effect/Effect";
import { Refusals, REFUSALS_PER_HOUR } from "../../../src/services/audit.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  eventually,
  expectStatus,
  invitePerson,
  makeProject,
  makeUserToken,
  runSession,
  sandboxEnvironment,
} from "../../support/service/requests.ts";
import { auditOf } from "../people/audit-rows.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService();
  pid = await makeProject(service, { files: { "a.txt": "a\n" } });
});
afterAll(() => service.close());

/** The rows of refused requests that name a token. */
const rowsOf = async (tokenId: string) =>
  (await auditOf(service, "request")).filter(
    ({ actor }) => (actor as { token_id: string }).token_id === tokenId,
  );

const basic = (token: string) => ({ authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}` });

describe("a token that has ended", () => {
  it("is on record with its person for each route that it asks for, once an hour [T14]", async () => {
    const { id, token } = await makeUserToken(service);
    expectStatus(await service.request("DELETE", `/v1/tokens/${id}`), 204);
    const ask = (method: string, target: string) =>
      service.request(method, target, {
        token,
        headers: { "x-request-id": "mine", "user-agent": "old script" },
      });
    for (let count = 0; count < 3; count += 1) expectStatus(await ask("GET", `/v1/projects/${pid}`), 401);
    expectStatus(await ask("POST", `/v1/projects/${pid}/sessions/${pid}/runtime/x`), 401);
    expect(await rowsOf(id)).toMatchObject([
      {
        target: "ANY /v1/projects/:pid/sessions/:sid/runtime/*",
        changes: { why: "revoked", omitted_before: 2 },
      },
      {
        actor: { kind: "person", name: "admin" },
        action: "request",
        target: "GET /v1/projects/:pid",
        outcome: "refused",
        project_id: null,
        address: "127.0.0.1",
        user_agent: "old script",
        request_id: "mine",
        changes: { why: "revoked" },
      },
    ]);
  });

  it("says whether it expired, or its person is deactivated, also as a git password", async () => {
    const expiresAt = new Date(performance.timeOrigin + performance.now() + 300).toISOString();
    const expired = await makeUserToken(service, { expires_at: expiresAt });
    await eventually(async () =>
      expectStatus(await service.request("GET", "/v1/me", { token: expired.token }), 401),
    );
    expect((await rowsOf(expired.id))[0]).toMatchObject({ changes: { why: "expired" } });
    const ben = await invitePerson(service, "Ben", { role: "owner" });
    const own = await makeUserToken(service, {}, ben.token);
    expectStatus(await service.request("POST", `/v1/people/${ben.id}/deactivate`), 200);
    const refs = `/v1/git/${pid}.git/info/refs?service=git-upload-pack`;
    const cloned = await service.request("GET", refs, { token: null, headers: basic(own.token) });
    expectStatus(cloned, 401);
    expect(await rowsOf(own.id)).toMatchObject([
      { actor: { id: ben.id, name: "Ben" }, changes: { why: "deactivated" } },
    ]);
  });

  it("that is unknown leaves no row", async () => {
    const before = (await auditOf(service, "request")).length;
    const token = `platform_pat_${"x".repeat(43)}`;
    expectStatus(await service.request("POST", "/v1/projects", { token, body: {} }), 401);
    expectStatus(await service.request("GET", "/v1/me", { token: null }), 401);
    expect((await auditOf(service, "request")).length).toBe(before);
  });
});

describe("a request that may not", () => {
  it("change something is on record with its answer, and one that only reads is not [T11] [T14]", async () => {
    const vera = await invitePerson(service, "Vera");
    const { id, token } = await makeUserToken(service, {}, vera.token);
    expectStatus(
      await service.request("PUT", `/v1/projects/${pid}/members/${vera.id}`, { body: { role: "member" } }),
      204,
    );
    expectStatus(await service.request("GET", `/v1/projects/${pid}/audit`, { token }), 403);
    expectStatus(await service.request("GET", "/v1/audit", { token }), 403);
    expect(await rowsOf(id)).toEqual([]);
    const value = { body: { value: "canary-1d7c" }, token };
    expectStatus(await service.request("PUT", `/v1/projects/${pid}/secrets/KEY`, value), 403);
    expectStatus(await service.request("POST", "/v1/invitations", { body: { name: "Eve" }, token }), 403);
    const rows = await rowsOf(id);
    expect(rows).toMatchObject([
      { target: "POST /v1/invitations", project_id: null, changes: { why: "forbidden" } },
      {
        target: "PUT /v1/projects/:pid/secrets/:name",
        project_id: pid,
        outcome: "refused",
        changes: { why: "forbidden", answer: expect.stringContaining("member") as string },
      },
    ]);
    expect(JSON.stringify(rows)).not.toContain("canary-1d7c");
  });

  it("is on record also if the handler refuses it, and for a push that a role forbids", async () => {
    const bound = await makeUserToken(service, { project_id: pid });
    const wish = { token: bound.token, body: { default_branch: "other" } };
    expectStatus(await service.request("PATCH", `/v1/projects/${pid}`, wish), 403);
    expect(await rowsOf(bound.id)).toMatchObject([{ target: "PATCH /v1/projects/:pid" }]);
    const vera = await invitePerson(service, "Vera");
    const { id, token } = await makeUserToken(service, {}, vera.token);
    expectStatus(
      await service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: "viewer" } }),
      200,
    );
    const refs = (what: string) =>
      service.request("GET", `/v1/git/${pid}.git/info/refs?service=git-${what}`, {
        token: null,
        headers: basic(token),
      });
    expectStatus(await refs("upload-pack"), 200);
    expectStatus(await refs("receive-pack"), 403);
    expect(await rowsOf(id)).toMatchObject([{ project_id: pid, changes: { why: "forbidden" } }]);
    const sid = await runSession(service, pid);
    const relay = `/v1/projects/${pid}/sessions/${sid}/runtime/x`;
    expectStatus(await service.request("POST", relay, { token, body: {} }), 403);
    expect((await rowsOf(id))[0]).toMatchObject({ target: "ANY /v1/projects/:pid/sessions/:sid/runtime/*" });
  });

  it("names the agent, if an agent sent it", async () => {
    const sid = await runSession(service, pid);
    const { PLATFORM_CLI_TOKEN: token = "" } = await sandboxEnvironment(service, sid);
    const body = { value: "x" };
    expectStatus(await service.request("PUT", `/v1/projects/${pid}/secrets/KEY`, { token, body }), 403);
    expect((await auditOf(service, "request"))[0]).toMatchObject({ actor: { kind: "session", id: sid } });
  });
});

it("a flood of refused requests fills neither the record nor the memory, and leaves sign-ins their rows [T14]", async () => {
  const { entries, requests } = await Effect.runPromise(Effect.provide(Refusals, Refusals.layer));
  const [hour, now] = [3_600_000, 1_000_000_000];
  const taken = Array.from({ length: 10_000 }, (_, count) => requests.take(`token-${count} GET /v1/me`, now));
  expect(taken.filter((left) => left !== null).length).toBe(REFUSALS_PER_HOUR);
  expect(entries.take(null, now)).toBe(0);
  expect(requests.take("token-1 GET /v1/me", now + hour)).toBe(10_000 - REFUSALS_PER_HOUR);
  expect(requests.take("token-1 GET /v1/me", now + hour)).toBe(null);
});

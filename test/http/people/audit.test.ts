/** The audit record over the API: what it says, who reads it, and what is never in it (teams' rules: docs/use/audit.md). */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REFUSALS_PER_HOUR } from "../../../src/services/audit.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeAccount,
  makeProject,
  makeUserToken,
  commitTo,
  runSession,
  sandboxEnvironment,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";
import { auditOf, auditRows } from "./audit-rows.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService();
  pid = await makeProject(service, { files: { "a.txt": "a\n" } });
});
afterAll(() => service.close());

const ask = (method: string, target: string, body?: unknown, token: string | null = service.token) =>
  service.request(method, target, { token, ...(body === undefined ? {} : { body }) });

const openBrowser = async (token: string) => {
  const answer = expectStatus(await ask("POST", "/dashboard/session", { token }, null), 200);
  const cookie = String(answer.headers["set-cookie"]).split(";")[0] ?? "";
  const headers = { cookie, "x-csrf-token": String(fields(answer)["csrf"]) };
  return (method: string, target: string) => service.request(method, target, { token: null, headers });
};

describe("a row", () => {
  it("says who signed in and out, and from which browser [T14]", async () => {
    const ben = await invitePerson(service, "Ben");
    const browser = await openBrowser(ben.token);
    const [session] = listOf(await browser("GET", "/v1/me/browsers"), "browsers");
    const [entered] = await auditOf(service, "sign_in");
    const actor = { kind: "person", id: ben.id, name: "Ben", token_id: session?.["id"] };
    expect(entered).toMatchObject({ actor, outcome: "done", changes: { by: "token" }, project_id: null });
    expectStatus(await browser("DELETE", "/dashboard/session"), 204);
    expect((await auditOf(service, "sign_out"))[0]).toMatchObject({ actor, target: session?.["id"] });
    // A browser that is signed out already changes nothing.
    const before = (await auditRows(service)).length;
    await browser("DELETE", "/dashboard/session");
    expect((await auditRows(service)).length).toBe(before);
  });

  it("says who joined by an invitation, without its code [T14]", async () => {
    const ada = await invitePerson(service, "Ada", { role: "owner" });
    const actor = { kind: "person", id: ada.id, name: "Ada", token_id: expect.any(String) as string };
    const [joined] = await auditOf(service, "invitation.accepted");
    expect(joined).toMatchObject({ actor, target: ada.id, changes: { role: "owner" } });
  });

  it("says whose browsers were ended, one or all of them", async () => {
    const ben = await invitePerson(service, "Ben");
    const [one, other] = [await openBrowser(ben.token), await openBrowser(ben.token)];
    const [, stolen] = listOf(await other("GET", "/v1/me/browsers"), "browsers");
    expectStatus(await other("DELETE", `/v1/me/browsers/${String(stolen?.["id"])}`), 204);
    expect((await auditOf(service, "browser.ended"))[0]).toMatchObject({
      actor: { id: ben.id },
      target: stolen?.["id"],
    });
    expectStatus(await other("DELETE", "/v1/me/browsers"), 204);
    expect((await one("GET", "/v1/me")).status).toBe(401);
    expect((await auditOf(service, "browser.all_ended"))[0]).toMatchObject({ target: ben.id });
  });

  it("names the session of an agent, not its person", async () => {
    const sid = await runSession(service, pid);
    const { PLATFORM_CLI_TOKEN: token = "" } = await sandboxEnvironment(service, sid);
    const branch = `work-${randomUUID()}`;
    await commitTo(service, pid, { branch, files: { "b.txt": "b\n" } });
    const body = { title: "Secret plans", head_ref: branch };
    const opened = await ask("POST", `/v1/projects/${pid}/change-requests`, body, token);
    const { number } = fields(expectStatus(opened, 201));
    const [row] = await auditOf(service, "change_request.opened");
    expect(row).toMatchObject({
      actor: { kind: "session", id: sid, name: "admin" },
      target: `#${String(number)}`,
    });
    expect(row?.["changes"]).toEqual({ number, head_ref: branch, base_ref: "main" });
  });

  it("says before a session starts again that it was asked for", async () => {
    const sid = await runSession(service, pid);
    await stopSession(service, pid, sid);
    expectStatus(await ask("POST", `/v1/projects/${pid}/sessions/${sid}/restart`), 202);
    const [done, begun] = await auditOf(service, "session.restart");
    expect(done).toMatchObject({ target: sid, outcome: "done" });
    expect(begun).toMatchObject({ target: sid, outcome: "begun", request_id: done?.["request_id"] });
    // It runs: nothing is asked of its actor.
    const before = (await auditOf(service, "session.restart")).length;
    expectStatus(await ask("POST", `/v1/projects/${pid}/sessions/${sid}/restart`), 409);
    expect((await auditOf(service, "session.restart")).length).toBe(before);
  });

  it("says that a secret was removed, by its name", async () => {
    expectStatus(await ask("PUT", `/v1/projects/${pid}/secrets/GONE`, { value: "x" }), 201);
    expectStatus(await ask("DELETE", `/v1/projects/${pid}/secrets/GONE`), 204);
    expect((await auditOf(service, "secret.removed"))[0]).toMatchObject({ target: "GONE", changes: {} });
    expectStatus(await ask("DELETE", `/v1/projects/${pid}/secrets/GONE`), 404);
    expect(await auditOf(service, "secret.removed")).toHaveLength(1);
  });

  it("says that the service made the first account", async () => {
    const rows = await auditOf(service, "account.created");
    expect(rows.at(-1)).toMatchObject({ actor: { kind: "service" }, address: null });
  });

  it("cannot be changed in the database either [T14]", async () => {
    const changed = service.inside(
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE audit_events SET actor_name = 'Eve'`),
    );
    await expect(changed).rejects.toThrow();
  });
});

describe("the record", () => {
  it("is for the account's owners, and a project's part for its owners [T05] [T11]", async () => {
    const olga = await invitePerson(service, "Olga", { roles: { [pid]: "owner" } });
    const mia = await invitePerson(service, "Mia", { roles: { [pid]: "member" } });
    const elsewhere = await makeProject(service);
    const at = `/v1/projects/${pid}/audit`;
    expect((await ask("GET", "/v1/audit", undefined, olga.token)).status).toBe(403);
    expect((await ask("GET", at, undefined, mia.token)).status).toBe(403);
    const own = listOf(
      expectStatus(await ask("GET", `${at}?limit=200`, undefined, olga.token), 200),
      "events",
    );
    expect(own.length).toBeGreaterThan(0);
    expect(new Set(own.map((row) => row["project_id"]))).toEqual(new Set([pid]));
    const all = await auditRows(service, `&project=${elsewhere}`);
    expect(all.map((row) => row["action"])).toEqual(["project.created"]);
    const foreign = await makeAccount(service);
    const theirs = listOf(await ask("GET", "/v1/audit", undefined, foreign), "events");
    expect(theirs).toEqual([]);
    expect((await ask("GET", at, undefined, foreign)).status).toBe(404);
  });

  it.each([
    "?actor=ben",
    "?action=secret.read",
    "?since=yesterday",
    "?until=2026-13-01T00:00:00Z",
    "?project=x",
    "?cursor=made-up",
    "?limit=0",
    "?who=ben",
  ])("refuses %s and says which field is wrong [T06] [T07]", async (query) => {
    const answer = expectStatus(await ask("GET", `/v1/audit${query}`), 400);
    expect(answer.text).toContain(query.slice(1, query.indexOf("=")));
  });

  it("is exported whole as JSON lines, with the same filters", async () => {
    for (let count = 0; count < 3; count += 1) await makeUserToken(service, { name: "exported" });
    const headers = { accept: "application/x-ndjson" };
    const answer = await service.request("GET", "/v1/audit?action=token.created&limit=1", { headers });
    expect(answer.headers["content-type"]).toBe("application/x-ndjson");
    const lines = answer.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Fields);
    expect(lines).toEqual(await auditOf(service, "token.created"));
    const none = await service.request("GET", "/v1/audit?until=2020-01-01T00:00:00Z", { headers });
    expect([none.status, none.text]).toEqual([200, ""]);
  });
});

describe("a secret", () => {
  it("is in no row, nor a code, a token or the text of a message [T14]", async () => {
    const canary = "canary-7b1d";
    const token = (await makeUserToken(service)).token;
    const code = String(
      fields(expectStatus(await ask("POST", "/v1/invitations", { name: "Zoe" }), 201))["url"],
    )
      .split("/")
      .at(-1);
    await ask("POST", "/dashboard/session", { token: `platform_pat_${canary}` }, null);
    await ask("POST", "/dashboard/invitations/accept", { code: canary, name: "Eve" }, null);
    await ask("GET", `/dashboard/open?code=${canary}`, undefined, null);
    await ask("PUT", `/v1/projects/${pid}/secrets/CANARY`, { value: canary });
    const hooks = `/v1/projects/${pid}/webhooks`;
    await ask("POST", hooks, {
      url: `https://hooks.slack.com/services/T0/B0/${canary}`,
      format: "slack",
      events: ["queue.full"],
    });
    const sid = await runSession(service, pid, { initial_prompt: canary });
    await ask("PATCH", `/v1/projects/${pid}/sessions/${sid}`, { metadata: { canary } });
    const link = await ask("POST", `/v1/projects/${pid}/sessions/${sid}/preview`, { port: 3000 });
    const rows = JSON.stringify(
      await service.inside(
        Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT audit_events::text AS row FROM audit_events`),
      ),
    );
    expect(rows).toContain("preview.created");
    expect(rows).toContain("hooks.slack.com");
    const secrets = [canary, token, String(code), String(fields(link)["url"]).split("=").at(-1) ?? ""];
    for (const secret of [...secrets, service.token]) expect(rows).not.toContain(secret);
  });
});

describe("a refusal", () => {
  it("of a wrong token, link or invitation is on record, and a flood of them is bounded [T14]", async () => {
    const flooded = await startTestService();
    const wrong = [
      [
        "sign_in",
        () => flooded.request("POST", "/dashboard/session", { token: null, body: { token: "none" } }),
      ],
      ["sign_in", () => flooded.request("GET", "/dashboard/open?code=none", { token: null })],
      [
        "invitation.accepted",
        () => flooded.request("POST", "/dashboard/invitations/look", { token: null, body: { code: "none" } }),
      ],
      [
        "invitation.accepted",
        () =>
          flooded.request("POST", "/dashboard/invitations/accept", {
            token: null,
            body: { code: "none", name: "Eve" },
          }),
      ],
    ] as const;
    for (const [action, send] of wrong) {
      await send();
      expect((await auditRows(flooded))[0]).toMatchObject({
        action,
        outcome: "refused",
        actor: { kind: "unknown", id: null, token_id: null },
        address: "127.0.0.1",
      });
    }
    for (let count = 0; count < REFUSALS_PER_HOUR; count += 1) await wrong[0][1]();
    const refused = (await auditRows(flooded)).filter((row) => row["outcome"] === "refused");
    expect(refused).toHaveLength(REFUSALS_PER_HOUR);
    // Who is let in is still on record.
    await flooded.request("POST", "/dashboard/session", { token: null, body: { token: flooded.token } });
    expect((await auditOf(flooded, "sign_in"))[0]).toMatchObject({ outcome: "done" });
    await flooded.close();
  });
});

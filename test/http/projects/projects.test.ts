/** Projects and tokens through the API (api.md 2). */
import { randomUUID } from "node:crypto";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  expectStatus,
  fields,
  listOf,
  makeProject,
  makeRepository,
  makeUserToken,
  runSession,
  stopSession,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
/** For requests that are refused. */
let shared = "";
beforeAll(async () => {
  // Of loopback, 127.0.0.1 alone may be an upstream server.
  service = await shareService();
  shared = await makeProject(service);
});
afterAll(() => service.close());

const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];
const create = (repository: Fields, more: Fields = {}): Promise<Answer> =>
  service.request("POST", "/v1/projects", {
    body: { name: `p ${randomUUID()}`, repository: { kind: "hosted", ...repository }, ...more },
  });
const patch = (pid: string, body: Fields, token = service.token): Promise<Answer> =>
  service.request("PATCH", `/v1/projects/${pid}`, { body, token });

it.each(["   ", "\n", "\u200b", "\u3164"])("refuses a blank name like %j", async (name) => {
  const named: readonly (readonly [string, Fields])[] = [
    ["/v1/projects", { name, repository: { kind: "hosted" } }],
    ["/v1/tokens", { name }],
    [`/v1/projects/${shared}/sessions`, { name }],
  ];
  for (const [at, body] of named)
    expect([at, seen(await service.request("POST", at, { body }))]).toEqual([at, [400, "invalid_request"]]);
});

it.each(["https://git.example.com/a", { url: "https://git.example.com/a" }, { kind: "svn" }])(
  "says what a repository is if it gets %j",
  async (repository) => {
    const answer = await service.request("POST", "/v1/projects", { body: { name: "p", repository } });
    expect([...seen(answer), fields(answer)["error"]]).toEqual([
      400,
      "invalid_request",
      '`repository` must be an object whose `kind` is "hosted", "git" (with `url`) or "github" (with `owner` and `name`).',
    ]);
  },
);

describe("a project", () => {
  it("has all of its fields, and its own first commit if nothing is imported", async () => {
    const answer = expectStatus(await create({}, { name: "Mine" }), 201);
    const project = fields(answer);
    expect(project).toEqual({
      id: expect.any(String),
      account_id: expect.any(String),
      name: "Mine",
      status: "active",
      deletes_at: null,
      repository: { kind: "hosted" },
      default_branch: "main",
      triggers_paused: false,
      default_role: "member",
      merge_role: "member",
      approvals_required: 0,
      manifest: {
        commit: expect.stringMatching(/^[0-9a-f]{40}$/),
        synced_at: expect.any(String),
        error: null,
      },
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(fields(await service.request("GET", `/v1/projects/${project["id"]}`))).toEqual(project);
  });

  it("takes an imported repository's branches and manifest, and the requested default branch", async () => {
    const source = await makeRepository(service, { "platform.toml": webhookEntry("push") });
    const project = fields(
      expectStatus(await create({ import_from: source }, { default_branch: "feature" }), 201),
    );
    expect(project["default_branch"]).toBe("feature");
    expect(JSON.stringify(project)).not.toContain(service.importRoot);
    const listing = fields(await service.request("GET", `/v1/projects/${project["id"]}/triggers`));
    expect(listing["triggers"]).toMatchObject([{ slug: "push" }]);
  });

  it("is refused for an import from outside the roots, by the real path", async () => {
    const source = await makeRepository(service, {});
    const link = path.join(service.importRoot, "link");
    symlinkSync(service.dataDir, link);
    const outside = [
      "/etc",
      service.dataDir,
      path.join(source, ".."),
      link,
      `${service.importRoot}/../data`,
      "/nonexistent",
    ];
    for (const import_from of outside) {
      const answer = await create({ import_from });
      expect([import_from, answer.status >= 400 && answer.status < 500]).toEqual([import_from, true]);
      expect(answer.text).not.toMatch(/at .*:\d+|fatal: not/);
    }
    const missing = await create({ import_from: path.join(service.importRoot, "nope", "deeper") });
    expect([missing.status, missing.text]).toEqual([400, expect.stringContaining("names no directory")]);
    const beyond = await create({ import_from: path.join(link, "nope") });
    expect([beyond.status, beyond.text]).toEqual([400, expect.stringContaining("has not allowed")]);
    for (const import_from of [
      `--upload-pack=touch ${link}`,
      "ext::sh -c id",
      `file://${source}`,
      "relative",
      "",
      "a\0b",
    ]) {
      expect([import_from, ...seen(await create({ import_from }))]).toEqual([
        import_from,
        400,
        "invalid_request",
      ]);
    }
  });

  it.each([
    "http://127.0.0.2/x.git",
    "https://localhost/x.git",
    "https://169.254.169.254/x.git",
    "https://[::1]/x.git",
    "https://user:pw@example.org/x.git",
    "git://example.org/x.git",
    "https:///x",
    "https://example.org/x\n.git",
    "ssh://-oProxyCommand=id/x",
  ])("is refused for an import from %j [G03]", async (import_from) => {
    const answer = await create({ import_from });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain("user:pw");
  });

  it("is refused with an invalid repository or branch", async () => {
    const empty = path.join(service.importRoot, "empty");
    mkdirSync(empty);
    writeFileSync(path.join(empty, "file"), "");
    expect(seen(await create({ import_from: empty }))).toEqual([422, "import_failed"]);
    const source = await makeRepository(service, {});
    expect(seen(await create({ import_from: source }, { default_branch: "gone" }))).toEqual([
      422,
      "import_failed",
    ]);
    for (const default_branch of ["-x", "a..b", "refs/heads/x", "HEAD", "x.lock", "a b"]) {
      expect([default_branch, (await create({}, { default_branch })).status]).toEqual([default_branch, 400]);
    }
    const other = { name: "p", repository: { kind: "github", owner: "o", name: "../n", token: "t" } };
    expect((await service.request("POST", "/v1/projects", { body: other })).status).toBe(400);
  });

  it("moves its default branch to an existing one, by an account-wide token alone", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
    expect(seen(await patch(pid, { default_branch: "gone" }))).toEqual([422, "unknown_branch"]);
    const { token } = await makeUserToken(service, { project_id: pid });
    expect(seen(await patch(pid, { default_branch: "feature" }, token))).toEqual([403, "forbidden"]);
    expect((await patch(pid, { name: "by a bound token" }, token)).status).toBe(200);
    const moved = fields(expectStatus(await patch(pid, { default_branch: "feature" }), 200));
    expect(moved["default_branch"]).toBe("feature");
    const sid = await runSession(service, pid);
    const session = fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`));
    expect(session["base_ref"]).toBe("feature");
    await stopSession(service, pid, sid);
  });

  it("that is archived keeps running sessions, starts nothing new, and can be restored", async () => {
    const pid = await makeProject(service);
    const sid = await runSession(service, pid);
    expect(fields(await patch(pid, { status: "archived" }))["status"]).toBe("archived");
    const session = fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`));
    expect(session["status"]).toBe("running");
    expect(seen(await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} }))).toEqual([
      409,
      "project_not_active",
    ]);
    await stopSession(service, pid, sid);
    await patch(pid, { status: "active" });
    await stopSession(service, pid, await runSession(service, pid));
  });

  it.each([
    { status: "deleted" },
    { triggers_paused: "yes" },
    { name: "" },
    { name: "  " },
    { name: "x".repeat(201) },
    { default_branch: "" },
  ])("cannot be changed to %j", async (body) => {
    expect(seen(await patch(shared, body))).toEqual([400, "invalid_request"]);
  });

  it("is listed to its account newest first, and alone to a token that is bound to it", async () => {
    const [older, newer] = [await makeProject(service), await makeProject(service)];
    const all = listOf(await service.request("GET", "/v1/projects"), "projects").map(({ id }) => id);
    expect(all.slice(0, 2)).toEqual([newer, older]);
    const { token } = await makeUserToken(service, { project_id: older });
    const own = listOf(await service.request("GET", "/v1/projects", { token }), "projects");
    expect(own.map(({ id }) => id)).toEqual([older]);
  });
});

describe("a token", () => {
  it("is shown once, listed without its value, and works until it is deleted [T04]", async () => {
    const { id, token } = await makeUserToken(service, { name: "mine" });
    expect(token).toMatch(/^platform_pat_[A-Za-z0-9_-]{27,}$/);
    expect((await service.request("GET", "/v1/me", { token })).status).toBe(200);
    const list = await service.request("GET", "/v1/tokens");
    expect(listOf(list, "tokens").find((row) => row["id"] === id)).toMatchObject({
      name: "mine",
      origin: "user",
      project_id: null,
      expires_at: null,
    });
    expect(list.text).not.toContain(token);
    expect((await service.request("DELETE", `/v1/tokens/${id}`)).status).toBe(204);
    expect((await service.request("GET", "/v1/me", { token })).status).toBe(401);
    expect((await service.request("DELETE", `/v1/tokens/${id}`)).status).toBe(404);
  });

  it("needs an expiry in the future", async () => {
    for (const expires_at of ["2020-01-01T00:00:00.000Z", "tomorrow", "", "2999-13-01T00:00:00Z"]) {
      const answer = await service.request("POST", "/v1/tokens", { body: { name: "t", expires_at } });
      expect([expires_at, ...seen(answer)]).toEqual([expires_at, 400, "invalid_request"]);
    }
    const far = { name: "t", expires_at: "2999-01-01T00:00:00.000Z" };
    expect(
      fields(expectStatus(await service.request("POST", "/v1/tokens", { body: far }), 201))["expires_at"],
    ).toBe(far.expires_at);
  });

  it("of a sandbox is in no list", async () => {
    const pid = await makeProject(service);
    const sid = await runSession(service, pid);
    const origins = listOf(await service.request("GET", "/v1/tokens?limit=200"), "tokens").map(
      ({ origin }) => origin,
    );
    expect(new Set(origins)).toEqual(new Set(["user"]));
    await stopSession(service, pid, sid);
  });
});

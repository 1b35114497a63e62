/** Projects whose repository is kept at another git server (api.md 2, 6), through the whole service. */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { git, gitOk } from "../../git/git-client.ts";
import { startUpstream, type UpstreamServer } from "../../git/external/upstream-server.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { everyRow, expectNowhere } from "../leaks.ts";
import {
  commitFiles,
  eventually,
  expectStatus,
  fields,
  listOf,
  runSession,
  sandboxEnvironment,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
let upstream: UpstreamServer;
const root = mkdtempSync(path.join(tmpdir(), "upstreams-"));
beforeAll(async () => {
  upstream = await startUpstream(root);
  service = await startTestService({
    PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1",
    PLATFORM_MANIFEST_SYNC_MS: "2000",
  });
});
afterAll(async () => {
  await service.close();
  await upstream.close();
  rmSync(root, { recursive: true, force: true });
});
afterEach(() => {
  upstream.fault = () => null;
});

/** Somebody's repository at the server, and their own clone of it. */
let bare = "";
let clone = "";
let url = "";
beforeEach(async () => {
  const name = randomUUID();
  [bare, clone] = [path.join(root, `${name}.git`), path.join(root, name)];
  url = `${upstream.origin}/${name}.git`;
  mkdirSync(clone);
  await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=trunk", bare);
  await gitOk(clone, "init", "--quiet", "--initial-branch=trunk");
  await gitOk(clone, "remote", "add", "origin", bare);
  await change({ "platform.toml": webhookEntry("push") });
});

const change = async (files: Readonly<Record<string, string>>): Promise<string> => {
  await commitFiles(clone, files);
  await gitOk(clone, "push", "--quiet", "origin", "trunk");
  return gitOk(clone, "rev-parse", "HEAD");
};

const repository = (more: Fields = {}): Fields => ({
  kind: "git",
  url,
  username: upstream.username,
  password: upstream.password,
  ...more,
});
const create = (given: Fields = repository(), more: Fields = {}) =>
  service.request("POST", "/v1/projects", {
    body: { name: `elsewhere ${randomUUID()}`, repository: given, ...more },
  });
const makeExternal = async (): Promise<string> => String(fields(expectStatus(await create(), 201))["id"]);
const slugs = async (pid: string): Promise<readonly unknown[]> =>
  listOf(await service.request("GET", `/v1/projects/${pid}/triggers`), "triggers").map(({ slug }) => slug);
const tip = async (branch: string): Promise<string> =>
  (await git(bare, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`)).stdout.trim();

describe("a project with an external repository", () => {
  it("is created with the server's default branch and manifest, and shows no credential", async () => {
    const answer = expectStatus(await create(), 201);
    expect(fields(answer)).toMatchObject({
      repository: { kind: "git", url },
      default_branch: "trunk",
      manifest: { commit: await tip("trunk"), error: null },
    });
    expect(answer.text).not.toContain(upstream.password);
    expect(await slugs(String(fields(answer)["id"]))).toEqual(["push"]);
  });

  it("is refused if its fields are wrong or its server refuses it, and no part of it is told", async () => {
    for (const [status, code, more] of [
      [400, "invalid_request", { url: "http://10.0.0.1/a.git" }],
      [400, "invalid_request", { password_file: "/etc/passwd" }],
      [422, "repository_refused", { password: "canary-wrong" }],
      [422, "repository_refused", { url: `${upstream.origin}/none.git` }],
    ] as const) {
      const answer = await create(repository(more));
      expect([answer.status, fields(answer)["code"]], JSON.stringify(more)).toEqual([status, code]);
      expect(answer.text).not.toMatch(/canary/);
    }
  });

  it("is refused while its server is away, and if it has no branch", async () => {
    upstream.fault = () => ({ kind: "status", status: 503 });
    expect(fields(expectStatus(await create(), 422))["code"]).toBe("repository_unavailable");
    upstream.fault = () => null;
    await gitOk(bare, "update-ref", "-d", "refs/heads/trunk");
    expect(fields(expectStatus(await create(), 422))["error"]).toContain("has no branch");
  });

  it("takes a session from its branch to the merge, all of it on the server [I8] [I17]", async () => {
    const pid = await makeExternal();
    const base = await tip("trunk");
    const sid = await runSession(service, pid);
    expect(await tip(sid)).toBe(base);
    const session = fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`));
    expect(session).toMatchObject({ base_ref: "trunk", base_commit: base });

    const environment = await sandboxEnvironment(service, sid);
    expect(JSON.stringify(environment)).not.toContain(upstream.password);
    expect(environment["PLATFORM_REPO_URL"]).toContain(`/v1/git/${pid}.git`);
    const minted = fields(
      expectStatus(
        await service.request("GET", `/v1/projects/${pid}/git/clone-credential`, {
          token: environment["PLATFORM_TOKEN"] ?? "",
        }),
        200,
      ),
    );
    expect(JSON.stringify(minted)).not.toContain(upstream.password);
    const { username, password } = minted["auth"] as Fields;
    const own = `http://${username}:${password}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
    const work = path.join(root, `work-${sid}`);
    await gitOk(root, "clone", "--quiet", "--branch", sid, own, work);
    await commitFiles(work, { "work.txt": "done\n" });
    const head = await gitOk(work, "rev-parse", "HEAD");
    await gitOk(work, "push", "--quiet", "origin", "HEAD");
    expect(await tip(sid)).toBe(head);
    const straight = await git(work, "push", "origin", "HEAD:refs/heads/trunk");
    expect(straight.stderr).toContain("can push only to its own branch");
    expect(await tip("trunk")).toBe(base);

    // Meanwhile another user works at the server.
    const aside = await change({ "aside.txt": "aside\n" });
    const opened = await service.request("POST", `/v1/projects/${pid}/change-requests`, {
      body: { title: "Work", session_id: sid },
    });
    const number = String(fields(expectStatus(opened, 201))["number"]);
    const merged = await service.request("POST", `/v1/projects/${pid}/change-requests/${number}/merge`, {
      body: {},
    });
    expect(fields(expectStatus(merged, 200))["status"]).toBe("merged");
    expect(await gitOk(bare, "log", "-1", "--format=%P", "trunk")).toBe(`${aside} ${head}`);
  });

  it("refuses a merge with the server's words if the server protects the branch", async () => {
    const pid = await makeExternal();
    const head = await (async () => {
      await gitOk(clone, "checkout", "--quiet", "-b", "topic");
      await commitFiles(clone, { "topic.txt": "x\n" });
      await gitOk(clone, "push", "--quiet", "origin", "topic");
      return gitOk(clone, "rev-parse", "HEAD");
    })();
    mkdirSync(path.join(bare, "hooks"), { recursive: true });
    writeFileSync(path.join(bare, "hooks/update"), "#!/bin/sh\necho trunk is protected; exit 1\n", {
      mode: 0o755,
    });
    const opened = await service.request("POST", `/v1/projects/${pid}/change-requests`, {
      body: { title: "Work", head_ref: "topic" },
    });
    const number = String(fields(expectStatus(opened, 201))["number"]);
    const merged = await service.request("POST", `/v1/projects/${pid}/change-requests/${number}/merge`, {
      body: {},
    });
    expect([merged.status, fields(merged)["code"]]).toEqual([409, "repository_refused"]);
    expect(fields(merged)["error"]).toContain("trunk is protected");
    expect(await tip("trunk")).not.toBe(head);
    const left = fields(await service.request("GET", `/v1/projects/${pid}/change-requests/${number}`));
    expect(left["status"]).toBe("open");
  });

  it("gets a changed manifest by reconciliation, without notice from a merge or push", async () => {
    const pid = await makeExternal();
    const commit = await change({ "platform.toml": webhookEntry("pushed-elsewhere") });
    await eventually(async () => expect(await slugs(pid)).toEqual(["pushed-elsewhere"]));
    const project = fields(await service.request("GET", `/v1/projects/${pid}`));
    expect(project["manifest"]).toMatchObject({ commit, error: null });
  });

  it("answers 503 if its server is away, and creates no session row", async () => {
    const pid = await makeExternal();
    upstream.fault = () => ({ kind: "status", status: 500 });
    const answer = await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} });
    expect([answer.status, fields(answer)["code"]]).toEqual([503, "repository_unavailable"]);
    upstream.fault = () => null;
    const sessions = listOf(await service.request("GET", `/v1/projects/${pid}/sessions`), "sessions");
    expect(sessions).toEqual([]);
  });

  it("stores its credential in no table, log or file of the service, except encrypted [S06] [G05]", async () => {
    await makeExternal();
    expect(await everyRow(service)).toContain(url);
    await expectNowhere(service, upstream.password);
  });
});

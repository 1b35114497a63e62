/** What opens a repository at another server, replaced and taken away while its project is at work (api.md 2). */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { git, gitOk } from "../../git/git-client.ts";
import { startUpstream, type UpstreamServer } from "../../git/external/upstream-server.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { auditOf } from "../people/audit-rows.ts";
import { expectNowhere } from "../leaks.ts";
import {
  commitFiles,
  expectStatus,
  fields,
  makeProject,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

const OLD = "canary-old-5c1e";
const NEW = "canary-new-90ab";

let service: TestService;
let upstream: UpstreamServer;
const root = mkdtempSync(path.join(tmpdir(), "upstreams-"));
beforeAll(async () => {
  upstream = await startUpstream(root);
  service = await shareService();
});
afterAll(async () => {
  await service.close();
  await upstream.close();
  rmSync(root, { recursive: true, force: true });
});

/** Somebody's repository at the server, their clone of it, and the project over it. */
let bare = "";
let clone = "";
let pid = "";
beforeEach(async () => {
  upstream.password = OLD;
  const name = randomUUID();
  [bare, clone] = [path.join(root, `${name}.git`), path.join(root, name)];
  mkdirSync(clone);
  await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
  await gitOk(clone, "init", "--quiet", "--initial-branch=main");
  await gitOk(clone, "remote", "add", "origin", bare);
  await change({ "platform.toml": webhookEntry("push") });
  const repository = {
    kind: "git",
    url: `${upstream.origin}/${name}.git`,
    username: upstream.username,
    password: OLD,
  };
  const made = await service.request("POST", "/v1/projects", {
    body: { name: `elsewhere ${randomUUID()}`, repository },
  });
  pid = String(fields(expectStatus(made, 201))["id"]);
});
afterEach(() => {
  upstream.fault = () => null;
  upstream.isPublic = false;
});

const change = async (files: Readonly<Record<string, string>>): Promise<string> => {
  await commitFiles(clone, files);
  await gitOk(clone, "push", "--quiet", "origin", "main");
  return gitOk(clone, "rev-parse", "HEAD");
};

const at = (rest: string): string => `/v1/projects/${pid}${rest}`;
const CREDENTIAL = "/repository/credential";
const put = (password: string): Promise<Answer> =>
  service.request("PUT", at(CREDENTIAL), { body: { username: upstream.username, password } });
const remove = (): Promise<Answer> => service.request("DELETE", at(CREDENTIAL));
const own = (): string => `http://x:${service.token}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
const lsRemote = () => git(root, "ls-remote", own(), "refs/heads/main");
const newSession = (): Promise<Answer> => service.request("POST", at("/sessions"), { body: {} });
const codeOf = (answer: Answer): readonly unknown[] => [answer.status, fields(answer)["code"]];

describe("a new credential", () => {
  it("is valid from the answer on for clones, pushes, sessions, merges and the manifest, even if the old one just failed", async () => {
    const work = path.join(root, `work-${pid}`);
    await gitOk(root, "clone", "--quiet", own(), work);
    await gitOk(work, "checkout", "--quiet", "-b", "topic");
    await commitFiles(work, { "topic.txt": "x\n" });
    const slug = "renewed";
    const tip = await change({ "platform.toml": webhookEntry(slug) });

    upstream.password = NEW;
    expect(codeOf(await newSession())).toEqual([409, "repository_refused"]);
    await service.request("POST", at("/sync"), { body: {} });
    expect(fields(await service.request("GET", at("")))["manifest"]).toMatchObject({ commit: null });
    expect((await git(work, "push", "origin", "topic")).code).not.toBe(0);
    expect((await lsRemote()).code).not.toBe(0);

    const replaced = expectStatus(await put(NEW), 200);
    expect((await lsRemote()).stdout).toContain(tip);
    expect(fields(replaced)).toMatchObject({ id: pid, manifest: { commit: tip, error: null } });
    expect(fields(replaced)).toEqual(fields(await service.request("GET", at(""))));
    const [row, ...others] = await auditOf(service, "project.credential_set");
    expect(row).toMatchObject({ target: pid, project_id: pid, changes: { kind: "password" } });
    expect(others).toEqual([]);
    await gitOk(work, "push", "--quiet", "origin", "topic");
    expectStatus(await newSession(), 201);
    const opened = await service.request("POST", at("/change-requests"), {
      body: { title: "Work", head_ref: "topic" },
    });
    const number = String(fields(expectStatus(opened, 201))["number"]);
    expectStatus(await service.request("POST", at(`/change-requests/${number}/merge`), { body: {} }), 200);
    expect(await gitOk(bare, "log", "-1", "--format=%P", "main")).toContain(tip);
  });

  it("is not accepted if its server refuses it or is away, and the old one stays", async () => {
    upstream.fault = () => ({ kind: "status", status: 503 });
    expect(codeOf(await put(OLD))).toEqual([422, "repository_unavailable"]);
    upstream.fault = () => null;
    const before = await service.request("GET", at(""));
    const answer = await put("canary-wrong");
    expect(codeOf(answer)).toEqual([422, "repository_refused"]);
    expect(fields(answer)["error"]).toMatch(/^The repository credential was not changed: .*Authentication/);
    expect(answer.text).not.toMatch(/canary/);
    expect((await service.request("GET", at(""))).text).toBe(before.text);
    expectStatus(await newSession(), 201);
  });

  it("is refused by the wrong field, which the message does not quote, and for a hosted repository [S06] [T06]", async () => {
    const app = { app_id: "canary", installation_id: "1", private_key: "canary" };
    const faults: readonly (readonly [string, Fields])[] = [
      ["password", {}],
      ["password", { username: "canary" }],
      ["username", { username: "canary:x", password: "canary" }],
      ["ssh_private_key", { ssh_private_key: "canary", known_hosts: "canary" }],
      ["token", { token: "canary" }],
      ["app", { app }],
      ["url", { password: "canary", url: "https://canary.example.org/a.git" }],
      ["kind", { password: "canary", kind: "git" }],
    ];
    const knocks = upstream.knocks;
    for (const [field, body] of faults) {
      const answer = await service.request("PUT", at(CREDENTIAL), { body });
      expect(codeOf(answer)).toEqual([400, "invalid_request"]);
      expect(fields(answer)["details"], field).toMatchObject({ issues: [{ path: field }] });
      expect(answer.text).not.toMatch(/canary/);
    }
    expect(upstream.knocks).toBe(knocks);
    const hosted = await makeProject(service);
    for (const [method, body] of [["PUT", { password: OLD }], ["DELETE"]] as const) {
      const target = `/v1/projects/${hosted}${CREDENTIAL}`;
      const answer = await service.request(method, target, body === undefined ? {} : { body });
      expect(codeOf(answer)).toEqual([409, "repository_hosted"]);
    }
  });

  it("is stored in no table, log or file except encrypted, and the old one neither [S06] [G05] [I16]", async () => {
    upstream.password = NEW;
    await put("canary-wrong");
    expectStatus(await put(NEW), 200);
    expectStatus(await newSession(), 201);
    for (const secret of [OLD, NEW, "canary-wrong"]) await expectNowhere(service, secret);
    // Other files share the service, and replace credentials of other kinds.
    const said = service.logs.filter((line) => line.includes("a repository's credential was replaced"));
    expect(said).toContainEqual(expect.stringContaining('"kind":"password"'));
  });
});

describe("a credential that is removed", () => {
  it("is not used any more, if its server is public", async () => {
    upstream.isPublic = true;
    expectStatus(await remove(), 204);
    upstream.password = "a password of no user";
    expectStatus(await newSession(), 201);
    expect(codeOf(await remove())).toEqual([404, "not_found"]);
    expect(await auditOf(service, "project.credential_removed")).toEqual([
      expect.objectContaining({ target: pid, project_id: pid, changes: { kind: "none" } }),
    ]);
    expect(await service.inside(Effect.flatMap(Projects, ({ credential }) => credential(pid)))).toBeNull();
    upstream.isPublic = false;
    upstream.password = NEW;
    expectStatus(await put(NEW), 200);
    expectStatus(await newSession(), 201);
  });

  it("stays if its server requires one, or if the repository has no other access", async () => {
    const refused = await remove();
    expect(codeOf(refused)).toEqual([422, "repository_refused"]);
    expectStatus(await newSession(), 201);
    const project = fields(await service.request("GET", at("")));
    const ssh = randomUUID();
    await service.inside(
      Effect.flatMap(Projects, ({ create, get }) =>
        Effect.flatMap(get(pid), (found) =>
          create({
            id: ssh,
            accountId: String(project["account_id"]),
            name: "by ssh",
            repository: { kind: "git", url: "ssh://git@127.0.0.1/a.git" },
            defaultBranch: "main",
            createdBy: found?.createdBy ?? "",
            credential: Uint8Array.from([1]),
            now: 0,
          }),
        ),
      ),
    );
    const answer = await service.request("DELETE", `/v1/projects/${ssh}${CREDENTIAL}`);
    expect(codeOf(answer)).toEqual([409, "credential_required"]);
  });
});

/** Projects whose repository is kept at a code host (api.md 2, `github`), through the whole service. */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { git, gitOk } from "../../git/git-client.ts";
import { GithubHost } from "../../git/github/github-host.ts";
import { OWNER } from "../../git/github/github-host-pulls.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  commitFiles,
  eventually,
  expectStatus,
  fields,
  runSession,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
let host: GithubHost;
const root = mkdtempSync(path.join(tmpdir(), "code-host-"));
beforeAll(async () => {
  host = await new GithubHost(root).open();
  service = await shareService();
});
afterAll(async () => {
  await service.close();
  await host.close();
  rmSync(root, { recursive: true, force: true });
});
afterEach(() => {
  host.fault = () => null;
});

/** Somebody's repository at the host, and their own clone of it. */
let name = "";
let bare = "";
let clone = "";
beforeEach(async () => {
  name = randomUUID();
  [bare, clone] = [path.join(root, `${name}.git`), path.join(root, name)];
  mkdirSync(clone);
  await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=trunk", bare);
  await gitOk(clone, "init", "--quiet", "--initial-branch=trunk");
  await gitOk(clone, "remote", "add", "origin", bare);
  await pushTo("trunk", { "README.md": "one\n" });
});

const pushTo = async (branch: string, files: Readonly<Record<string, string>>): Promise<string> => {
  await commitFiles(clone, files);
  await gitOk(clone, "push", "--quiet", "origin", `HEAD:refs/heads/${branch}`);
  return gitOk(clone, "rev-parse", "HEAD");
};
const tip = async (branch: string): Promise<string> =>
  (await git(bare, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`)).stdout.trim();

const repository = (more: Fields = {}): Fields => ({
  kind: "github",
  owner: OWNER,
  name,
  api_url: host.apiUrl,
  app: host.app,
  pull_requests: true,
  ...more,
});
const create = (given: Fields = repository()): Promise<Answer> =>
  service.request("POST", "/v1/projects", { body: { name: `at a host ${randomUUID()}`, repository: given } });
const makeProject = async (): Promise<string> => String(fields(expectStatus(await create(), 201))["id"]);

const codeOf = (answer: Answer): readonly unknown[] => [answer.status, fields(answer)["code"]];

/** A change request of a branch with one commit. @returns its number. */
const propose = async (pid: string, branch: string): Promise<number> => {
  await gitOk(clone, "checkout", "--quiet", "-B", "work", "origin/trunk").catch(() => undefined);
  await pushTo(branch, { [`${branch}.txt`]: "new\n" });
  const opened = await service.request("POST", `/v1/projects/${pid}/change-requests`, {
    body: { title: `Add ${branch}`, head_ref: branch, description: "Because." },
  });
  return Number(fields(expectStatus(opened, 201))["number"]);
};
const at = (pid: string, number: number, rest = ""): string =>
  `/v1/projects/${pid}/change-requests/${number}${rest}`;
const get = async (pid: string, number: number): Promise<Fields> =>
  fields(expectStatus(await service.request("GET", at(pid, number)), 200));
const pulls = () =>
  host.pulls.of(name).map(({ number, state, mergedAt }) => [number, mergedAt === null ? state : "merged"]);

describe("a project with a repository at a code host", () => {
  it("is created with the host's default branch, and shows neither token nor key", async () => {
    const answer = expectStatus(await create(), 201);
    expect(fields(answer)).toMatchObject({
      repository: { kind: "github", owner: OWNER, name, api_url: host.apiUrl, pull_requests: true },
      default_branch: "trunk",
      manifest: { commit: await tip("trunk"), error: null },
    });
    expect(answer.text).not.toMatch(/canary|PRIVATE/);
  });

  it("is refused with the wrong field or the host's words, without a credential in the message", async () => {
    const refusals: readonly (readonly [number, string, Fields])[] = [
      [400, "invalid_request", { app: undefined }],
      [400, "invalid_request", { token: "canary" }],
      [400, "invalid_request", { owner: "../x" }],
      [400, "invalid_request", { api_url: "http://10.0.0.1/api/v3" }],
      [400, "invalid_request", { api_url: "http://canary:canary@127.0.0.1/api/v3" }],
      [422, "repository_refused", { app: undefined, token: "ghp_canaryWrong" }],
      [422, "repository_refused", { name: "none" }],
    ];
    for (const [status, code, more] of refusals) {
      const answer = await create(repository(more));
      expect([answer.status, fields(answer)["code"]], JSON.stringify(more)).toEqual([status, code]);
      expect(answer.text).not.toMatch(/canary|PRIVATE/);
    }
  });

  it("creates a session's branch over the host's API, and merges its work there [I8] [I17]", async () => {
    const pid = await makeProject();
    const base = await tip("trunk");
    const sid = await runSession(service, pid);
    expect(await tip(sid)).toBe(base);
    expect(host.calls(`POST /repos/${OWNER}/${name}/git/refs`)).toHaveLength(1);
    const own = `http://x:${service.token}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
    const work = path.join(root, `work-${sid}`);
    await gitOk(root, "clone", "--quiet", "--branch", sid, own, work);
    await commitFiles(work, { "work.txt": "done\n" });
    await gitOk(work, "push", "--quiet", "origin", "HEAD");
    const head = await gitOk(work, "rev-parse", "HEAD");
    expect(await tip(sid)).toBe(head);
    const opened = await service.request("POST", `/v1/projects/${pid}/change-requests`, {
      body: { title: "Work", session_id: sid },
    });
    const number = Number(fields(expectStatus(opened, 201))["number"]);
    await eventually(() => expect(pulls()).toEqual([[1, "open"]]));
    expectStatus(await service.request("POST", at(pid, number, "/merge"), { body: {} }), 200);
    expect(await tip("trunk")).toBe(head);
    // The next change is a signal to look.
    await propose(pid, "next");
    await eventually(async () =>
      expect((await get(pid, number))["pull_request"]).toMatchObject({ status: "merged" }),
    );
    await eventually(() =>
      expect(pulls()).toEqual([
        [1, "merged"],
        [2, "open"],
      ]),
    );
  });

  it("has a pull request beside each change request, and each knows the end of the other", async () => {
    const pid = await makeProject();
    const [here, there, gone] = [
      await propose(pid, "here"),
      await propose(pid, "there"),
      await propose(pid, "gone"),
    ];
    await eventually(() => expect(pulls()).toHaveLength(3));
    const [first] = host.pulls.of(name);
    expect(first).toMatchObject({ title: "Add here", head: "here", base: "trunk" });
    expect(first?.body).toMatch(
      /^Because\.\n\nChange request \[#1\]\(http:.*\/#\/projects\/.*\/change-requests\/1\)/,
    );
    const url = `${host.origin}/${OWNER}/${name}/pull/1`;
    await eventually(async () =>
      expect((await get(pid, here))["pull_request"]).toEqual({ number: 1, url, status: "open" }),
    );
    const merged = await host.pulls.merge(name, 2);
    host.pulls.close(name, 3);
    expect(fields(await service.request("POST", at(pid, here, "/close")))["status"]).toBe("closed");
    await eventually(() => expect(pulls()[0]).toEqual([1, "closed"]));
    await eventually(async () =>
      expect(await get(pid, there)).toMatchObject({
        status: "merged",
        merged_commit: merged,
        merged_by: null,
        pull_request: { number: 2, status: "merged" },
      }),
    );
    // A merged request keeps its commits.
    expect(((await get(pid, there))["commits"] as Fields[]).map(({ subject }) => subject)).toEqual([
      "Change",
    ]);
    await eventually(async () => expect(await get(pid, gone)).toMatchObject({ status: "closed" }));
  });

  it("is merged by the host if its rules require a pull request", async () => {
    const pid = await makeProject();
    const number = await propose(pid, "ruled");
    await eventually(() => expect(pulls()).toEqual([[1, "open"]]));
    mkdirSync(path.join(bare, "hooks"), { recursive: true });
    const hook = '#!/bin/sh\n[ "$1" != refs/heads/trunk ] || { echo "GH013: use a pull request"; exit 1; }\n';
    writeFileSync(path.join(bare, "hooks/update"), hook, { mode: 0o755 });
    const merged = fields(
      expectStatus(await service.request("POST", at(pid, number, "/merge"), { body: {} }), 200),
    );
    expect(merged).toMatchObject({ status: "merged", merged_commit: await tip("trunk") });
    expect(pulls()).toEqual([[1, "merged"]]);
    host.fault = (call) =>
      call.endsWith("/merge")
        ? { kind: "status", status: 405, body: '{"message":"1 review is missing."}' }
        : null;
    const other = await propose(pid, "unreviewed");
    await eventually(() => expect(pulls()).toHaveLength(2));
    const refused = await service.request("POST", at(pid, other, "/merge"), { body: {} });
    expect([refused.status, fields(refused)["code"]]).toEqual([409, "repository_refused"]);
    expect(fields(refused)["error"]).toContain("1 review is missing.");
  });

  it("uses a new token or app from the answer on, and refuses one that the host refuses", async () => {
    const put = (body: Fields) =>
      service.request("PUT", `/v1/projects/${pid}/repository/credential`, { body });
    const newSession = () => service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} });
    const [first, second, reader] = [host.token(), host.token(), host.token()];
    host.mayPush = (token) => token !== reader;
    const given = repository({ app: undefined, token: first });
    const pid = String(fields(expectStatus(await create(given), 201))["id"]);
    host.tokens.delete(first);
    expect(codeOf(await newSession())).toEqual([409, "repository_refused"]);
    for (const token of ["ghp_canaryWrong", reader, first]) {
      const refused = await put({ token });
      expect(codeOf(refused)).toEqual([422, "repository_refused"]);
      expect(refused.text).not.toMatch(/canary/);
    }
    expect(codeOf(await put({ password: "canary" }))).toEqual([400, "invalid_request"]);
    expectStatus(await put({ token: second }), 200);
    expectStatus(await newSession(), 201);
    host.tokens.delete(second);
    const minted = host.minted.length;
    expectStatus(await put({ app: host.app }), 200);
    expect(host.minted.length).toBe(minted + 1);
    await runSession(service, pid);
    expect(host.heard.findLast(({ call }) => call.endsWith("/git/refs"))?.token).toBe(host.minted.at(-1));
    const none = await service.request("DELETE", `/v1/projects/${pid}/repository/credential`);
    expect(codeOf(none)).toEqual([409, "credential_required"]);
  });

  it("reports until when the host accepts no more requests", async () => {
    const pid = await makeProject();
    host.fault = () => ({ kind: "status", status: 403, headers: { "retry-after": "3000" } });
    const answer = await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} });
    expect([answer.status, fields(answer)["code"]]).toEqual([503, "repository_unavailable"]);
    expect(fields(answer)["error"]).toMatch(
      /rate limit of the code host is used up.* Try again after \d{4}-/,
    );
  });

  it("leaves no token and no key in a log or a file of the service [S06] [G05]", async () => {
    const pid = await makeProject();
    await propose(pid, "canary-free");
    await eventually(() => expect(pulls()).toHaveLength(1));
    const secrets = [...host.minted, host.app.private_key.split("\n")[3] ?? "", "x-access-token:"];
    expect(host.minted.length).toBeGreaterThan(0);
    for (const secret of secrets) expect(service.logs.join("\n")).not.toContain(secret);
    const entries = readdirSync(service.dataDir, { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile())
      .map((file) => path.join(file.parentPath, file.name));
    expect(files.some((file) => file.endsWith(`${pid}.git/config`))).toBe(true);
    for (const file of files) {
      const text = readFileSync(file, "latin1");
      expect(
        secrets.filter((secret) => text.includes(secret)),
        file,
      ).toEqual([]);
    }
  });
});

/** Nothing but a merge writes the default branch (api.md 6, spec 1), whichever branch that is and whenever it changes. */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { git, gitOk } from "../../git/git-client.ts";
import { beginPush, isReceiving } from "../../git/server/slow-push.ts";
import { startUpstream, type UpstreamServer } from "../../git/external/upstream-server.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  commitFiles,
  eventually,
  expectStatus,
  fields,
  makeProject,
  makeRepository,
  mintPassword,
  runSession,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
let upstream: UpstreamServer;
const root = mkdtempSync(path.join(tmpdir(), "default-branch-"));
beforeAll(async () => {
  upstream = await startUpstream(root);
  service = await shareService();
});
afterAll(async () => {
  await service.close();
  await upstream.close();
  rmSync(root, { recursive: true, force: true });
});

const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];
const reserved = [422, "reserved_branch"];
const patch = (pid: string, branch: string): Promise<Answer> =>
  service.request("PATCH", `/v1/projects/${pid}`, { body: { default_branch: branch } });
const create = (repository: Fields, more: Fields = {}): Promise<Answer> =>
  service.request("POST", "/v1/projects", { body: { name: `p ${randomUUID()}`, repository, ...more } });
const remote = (pid: string, password = service.token): string =>
  `http://x:${password}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
const tip = async (pid: string, branch: string): Promise<string> =>
  (await gitOk(root, "ls-remote", remote(pid), `refs/heads/${branch}`)).split("\t")[0] ?? "";

const clone = async (from: string, branch: string): Promise<string> => {
  const directory = mkdtempSync(path.join(root, "clone-"));
  await gitOk(directory, "clone", "--quiet", "--branch", branch, from, ".");
  return directory;
};

/** A repository at another server whose HEAD is the branch. */
const makeUpstream = async (branch: string): Promise<{ readonly bare: string; readonly source: Fields }> => {
  const name = randomUUID();
  const [bare, work] = [path.join(root, `${name}.git`), path.join(root, name)];
  mkdirSync(work);
  await gitOk(root, "init", "--quiet", "--bare", `--initial-branch=${branch}`, bare);
  await gitOk(work, "init", "--quiet", `--initial-branch=${branch}`);
  await commitFiles(work, { "README.md": "one\n" });
  await gitOk(work, "push", "--quiet", bare, `HEAD:refs/heads/${branch}`);
  const { username, password } = upstream;
  return { bare, source: { kind: "git", url: `${upstream.origin}/${name}.git`, username, password } };
};

describe("a session's branch", () => {
  it("cannot become the default branch, and its session can still push [G09] [I17]", async () => {
    const pid = await makeProject(service, { files: {} });
    const sid = await runSession(service, pid);
    expect(seen(await patch(pid, sid))).toEqual(reserved);
    const work = await clone(remote(pid, await mintPassword(service, pid, sid)), sid);
    await commitFiles(work, { "work.txt": "one\n" });
    expect((await git(work, "push", "origin", "HEAD")).code).toBe(0);
    const project = fields(await service.request("GET", `/v1/projects/${pid}`));
    expect(project["default_branch"]).toBe("main");
  });

  it("cannot become it while a project is created [G13]", async () => {
    const names = [randomUUID(), randomUUID().toUpperCase(), `wip/${randomUUID()}`];
    for (const name of names)
      expect(seen(await create({ kind: "hosted" }, { default_branch: name }))).toEqual(reserved);
    const name = randomUUID();
    const source = await makeRepository(service, {});
    await gitOk(source, "checkout", "--quiet", "-b", name);
    expect(seen(await create({ kind: "hosted", import_from: source }))).toEqual(reserved);
    const imported = { kind: "hosted", import_from: source };
    expect((await create(imported, { default_branch: "main" })).status).toBe(201);
    const elsewhere = await makeUpstream(randomUUID());
    expect(seen(await create(elsewhere.source))).toEqual(reserved);
  });

  it("that its upstream later made the default branch gets no pushes [G13] [I17]", async () => {
    const { bare, source } = await makeUpstream("trunk");
    const pid = String(fields(expectStatus(await create(source), 201))["id"]);
    const sid = await runSession(service, pid);
    const work = await clone(remote(pid, await mintPassword(service, pid, sid)), sid);
    await commitFiles(work, { "work.txt": "one\n" });
    await gitOk(bare, "symbolic-ref", "HEAD", `refs/heads/${sid}`);
    const before = await gitOk(bare, "rev-parse", "HEAD");
    const pushed = await git(work, "push", "origin", "HEAD");
    expect(pushed.code).not.toBe(0);
    expect(pushed.stderr).toContain("is the default branch");
    expect(await gitOk(bare, "rev-parse", "HEAD")).toBe(before);
  });
});

describe("a default branch that its upstream renamed", () => {
  it("is named with the command that sets the new name where a session names no branch", async () => {
    const { bare, source } = await makeUpstream("master");
    const pid = String(fields(expectStatus(await create(source), 201))["id"]);
    await gitOk(bare, "branch", "-m", "master", "main");
    const helps =
      "The repository has no branch master. If it has another name now, set it with platform projects update --default-branch NAME.";
    const session = await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} });
    expect([session.status, fields(session)["error"]]).toEqual([422, helps]);
  });
});

const slowly = async (pid: string): Promise<void> => {
  const work = await clone(remote(pid), "main");
  await gitOk(work, "push", "--quiet", "origin", "HEAD:refs/heads/next");
  const from = await gitOk(work, "rev-parse", "HEAD");
  await commitFiles(work, { "late.txt": "late\n" });
  const to = await gitOk(work, "rev-parse", "HEAD");
  const commands = [{ from, to, ref: "refs/heads/next" }];
  const finish = beginPush({ commands, work, url: remote(pid) });
  await eventually(() => expect(isReceiving(pid)).toBe(true));
  expectStatus(await patch(pid, "next"), 200);
  expect(await finish()).toContain("cannot push to the default branch next");
  expect(await tip(pid, "next")).toBe(from);
};

describe("a branch that becomes the default one during a push to it", () => {
  it("is not written if the repository is hosted [G09] [I17]", async () => {
    await slowly(await makeProject(service, { files: {} }));
  });

  it("is not written if the repository is external [G09] [I17]", async () => {
    const { bare, source } = await makeUpstream("main");
    const pid = String(fields(expectStatus(await create(source), 201))["id"]);
    await slowly(pid);
    expect(await gitOk(bare, "rev-parse", "next")).toBe(await tip(pid, "next"));
  });
});

it("a branch that a server may treat as the default one is not pushed to [G09]", async () => {
  const pid = await makeProject(service, { files: {} });
  const work = await clone(remote(pid), "main");
  await commitFiles(work, { "other.txt": "x\n" });
  const pushed = await git(work, "push", "origin", "HEAD:refs/heads/MAIN");
  expect(pushed.stderr).toContain("cannot push to the default branch MAIN");
});

/** The check of a repository at another server, step by step, through the whole service and a stub of the code host. */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import { GithubHost } from "../../git/github/github-host.ts";
import { OWNER } from "../../git/github/github-host-pulls.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  commitFiles,
  deliver,
  expectStatus,
  fields,
  type Fields,
  putSecret,
  SECRET_NAME,
  SECRET,
  webhookEntry,
} from "../../support/service/requests.ts";

let service: TestService;
let host: GithubHost;
let token = "";
let name = "";
const root = mkdtempSync(path.join(tmpdir(), "checked-host-"));
beforeAll(async () => {
  host = await new GithubHost(root).open();
  service = await shareService();
});
afterAll(async () => {
  await service.close();
  await host.close();
  rmSync(root, { recursive: true, force: true });
});

beforeEach(async () => {
  token = host.token();
  name = randomUUID();
  const clone = path.join(root, name);
  mkdirSync(clone);
  await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=trunk", `${name}.git`);
  await gitOk(clone, "init", "--quiet", "--initial-branch=trunk");
  await commitFiles(clone, { "platform.toml": webhookEntry("on-push") });
  await gitOk(clone, "push", "--quiet", path.join(root, `${name}.git`), "HEAD:refs/heads/trunk");
});
afterEach(() => {
  host.fault = () => null;
  host.mayPush = () => true;
  host.installedOn = () => true;
  host.isArchived = false;
  host.servesGit = true;
  host.grants = { contents: "write", pull_requests: "write" };
});

interface Step {
  readonly step: string;
  readonly outcome: string;
  readonly message: string;
  readonly advice: string | null;
}

const github = (more: Fields = {}): Fields => ({
  kind: "github",
  owner: OWNER,
  name,
  api_url: host.apiUrl,
  token,
  ...more,
});
const asApp = (more: Fields = {}): Fields => github({ token: undefined, app: { ...host.app, ...more } });
const ask = (repository: Fields, more: Fields = {}) =>
  service.request("POST", "/v1/repository-checks", { body: { repository, ...more } });
const check = async (repository: Fields, more: Fields = {}) => {
  const answer = expectStatus(await ask(repository, more), 200);
  expect(answer.text).not.toMatch(/canary|PRIVATE/);
  return fields(answer) as unknown as { usable: boolean; default_branch: string | null; steps: Step[] };
};
/** The last step, and the names of those that passed before it. */
const endOf = async (repository: Fields, more: Fields = {}) => {
  const { usable, steps } = await check(repository, more);
  const before = steps.slice(0, -1);
  expect(before.every(({ outcome }) => outcome === "passed")).toBe(true);
  const last = steps.at(-1);
  if (last?.outcome === "failed") expect(last.advice).toMatch(/\.$/);
  return { usable, before: before.map(({ step }) => step), last };
};

const make = async (repository: Fields) => {
  const answer = await service.request("POST", "/v1/projects", {
    body: { name: `checked ${randomUUID()}`, repository },
  });
  return String(fields(expectStatus(answer, 201))["id"]);
};
const again = async (pid: string) =>
  fields(
    expectStatus(await service.request("POST", `/v1/projects/${pid}/repository/check`), 200),
  ) as unknown as {
    usable: boolean;
    steps: Step[];
  };
const at = (more: Fields = {}): Fields => ({
  kind: "git",
  url: `${host.origin}/${OWNER}/${name}.git`,
  password: token,
  ...more,
});

const UP_TO_PUSH = ["host", "credential", "repository", "default_branch", "push"];

describe("the check of a repository at a code host", () => {
  it("passes each step with a token, and changes nothing there", async () => {
    const { usable, default_branch, steps } = await check(github());
    expect({ usable, default_branch }).toEqual({ usable: true, default_branch: "trunk" });
    expect(steps.map(({ step, outcome }) => [step, outcome])).toEqual(
      UP_TO_PUSH.map((step) => [step, "passed"]),
    );
    expect(host.heard.filter(({ call, token: used }) => used === token && !call.startsWith("GET "))).toEqual(
      [],
    );
  });

  it("passes each step as an app, with what its installation was granted", async () => {
    const { usable, steps } = await check({ ...asApp(), pull_requests: true });
    expect(usable).toBe(true);
    expect(steps.map(({ step }) => step)).toEqual([...UP_TO_PUSH, "pull_requests"]);
    expect(steps.at(-1)).toMatchObject({ outcome: "passed", message: "The app may open pull requests." });
  });

  it("names the first step that fails with a token, and what to do", async () => {
    const none = `http://127.0.0.1:9/api/v3`;
    expect(await endOf(github({ api_url: none }))).toMatchObject({
      usable: false,
      before: [],
      last: { step: "host", message: expect.stringContaining("refuses connections") },
    });
    expect(await endOf(github({ token: "ghp_canaryWrong" }))).toMatchObject({
      before: ["host"],
      last: { step: "credential", message: expect.stringContaining("wrong, expired or revoked") },
    });
    expect(await endOf(github({ name: "none" }))).toMatchObject({
      before: ["host", "credential"],
      last: { step: "repository", advice: expect.stringContaining("owner and name") },
    });
    expect(await endOf(github(), { default_branch: "nowhere" })).toMatchObject({
      before: ["host", "credential", "repository"],
      last: { step: "default_branch", message: expect.stringContaining("no branch nowhere") },
    });
    host.mayPush = () => false;
    expect(await endOf(github())).toMatchObject({
      before: UP_TO_PUSH.slice(0, 4),
      last: { step: "push", advice: expect.stringContaining("write access") },
    });
  });

  it("finds what only git shows: no right to push, an archive, a git server that is away", async () => {
    // The user may push, the token may not: the host's API does not tell.
    let asked = 0;
    host.mayPush = () => (asked += 1) < 2;
    expect(await endOf(github())).toMatchObject({
      last: { step: "push", outcome: "failed", message: "Git refuses a push with this credential (403)." },
    });
    host.mayPush = () => true;
    host.isArchived = true;
    expect(await endOf(github())).toMatchObject({
      last: { step: "push", advice: expect.stringContaining("Unarchive") },
    });
    host.isArchived = false;
    host.servesGit = false;
    expect(await endOf(github())).toMatchObject({ last: { step: "push", outcome: "failed" } });
  });

  it("names what is wrong with an app: its key, its installation, its repositories, its permissions", async () => {
    expect(await endOf(asApp({ app_id: "1" }))).toMatchObject({
      before: ["host"],
      last: { step: "credential", advice: expect.stringContaining("private key") },
    });
    expect(await endOf(asApp({ installation_id: "1" }))).toMatchObject({
      before: ["host"],
      last: { step: "credential", message: "The app has no installation with this number." },
    });
    host.installedOn = () => false;
    expect(await endOf(asApp())).toMatchObject({
      before: ["host", "credential"],
      last: { step: "repository", advice: expect.stringContaining("Repository access") },
    });
    host.installedOn = () => true;
    host.grants = { contents: "read" };
    expect(await endOf(asApp())).toMatchObject({ last: { step: "push", outcome: "failed" } });
    host.grants = { contents: "write", pull_requests: "read" };
    expect(await endOf({ ...asApp(), pull_requests: true })).toMatchObject({
      before: UP_TO_PUSH,
      last: { step: "pull_requests", outcome: "failed" },
    });
  });

  it("says that an empty repository needs a first commit, and until when a limit lasts", async () => {
    const empty = randomUUID();
    await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=main", `${empty}.git`);
    expect(await endOf(github({ name: empty }))).toMatchObject({
      last: { step: "default_branch", message: "The repository is empty." },
    });
    host.fault = () => ({ kind: "status", status: 403, headers: { "retry-after": "3000" } });
    expect(await endOf(github())).toMatchObject({
      last: { step: "host", advice: expect.stringContaining("Wait until then") },
    });
  });

  it("is refused with the field that is wrong", async () => {
    for (const more of [
      { token: undefined },
      { token: "two words" },
      { api_url: "http://10.0.0.1/api/v3" },
    ]) {
      const answer = await ask(github(more));
      expect([answer.status, fields(answer)["code"]]).toEqual([400, "invalid_request"]);
      expect(answer.text).toContain("repository.");
    }
  });
});

describe("the check of a project's repository", () => {
  it("uses the stored credential, and ends with the webhook", async () => {
    const pid = await make(github());
    const waiting = await again(pid);
    expect(waiting.steps.map(({ step }) => step)).toEqual([...UP_TO_PUSH, "webhook"]);
    expect(waiting.steps.at(-1)).toMatchObject({
      outcome: "unknown",
      message: "No delivery has arrived for on-push.",
    });
    await putSecret(service, pid, SECRET_NAME, SECRET);
    await deliver(service, `${pid}/on-push`, {
      headers: { "x-platform-signature": `sha256=${"0".repeat(64)}` },
    });
    await expect
      .poll(async () => (await again(pid)).steps.at(-1))
      .toMatchObject({
        step: "webhook",
        outcome: "failed",
        message: expect.stringContaining("signature mismatched"),
      });
    await deliver(service, `${pid}/on-push`);
    await expect
      .poll(async () => (await again(pid)).steps.at(-1))
      .toMatchObject({
        outcome: "passed",
        message: expect.stringContaining("A delivery for on-push arrived"),
      });
    host.tokens.delete(token);
    const lost = await again(pid);
    expect(lost.usable).toBe(false);
    expect(lost.steps[1]).toMatchObject({ step: "credential", outcome: "failed" });
  });

  it("is refused for a repository that the service hosts", async () => {
    const pid = await make({ kind: "hosted" });
    const answer = await service.request("POST", `/v1/projects/${pid}/repository/check`);
    expect([answer.status, fields(answer)["code"]]).toEqual([409, "repository_hosted"]);
  });
});

describe("the check of a repository at any git server", () => {
  it("passes, and leaves the right to push to the first push", async () => {
    const { usable, default_branch, steps } = await check(at());
    expect({ usable, default_branch }).toEqual({ usable: true, default_branch: "trunk" });
    expect(steps.map(({ step, outcome }) => [step, outcome])).toEqual([
      ...UP_TO_PUSH.slice(0, 4).map((step) => [step, "passed"]),
      ["push", "unknown"],
    ]);
  });

  it("passes the push once the server has taken the branch of a session", async () => {
    const pid = await make(at());
    const pushOf = async () => (await again(pid)).steps.find(({ step }) => step === "push");
    expect(await pushOf()).toMatchObject({ outcome: "unknown" });
    expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} }), 201);
    await expect
      .poll(pushOf)
      .toMatchObject({ outcome: "passed", message: expect.stringContaining("took the branch of a session") });
  });

  it("names the step that fails", async () => {
    expect(await endOf(at({ url: "http://127.0.0.1:9/x.git" }))).toMatchObject({ last: { step: "host" } });
    expect(await endOf(at({ password: "canary" }))).toMatchObject({
      before: ["host"],
      last: { step: "credential" },
    });
    expect(await endOf(at({ url: `${host.origin}/${OWNER}/none.git` }))).toMatchObject({
      before: ["host"],
      last: { step: "repository" },
    });
    expect(await endOf(at(), { default_branch: "nowhere" })).toMatchObject({
      last: { step: "default_branch" },
    });
  });
});

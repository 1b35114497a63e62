/** Git over the service's own address (api.md 6): what a clone credential and a person's token may read and write. */
import { randomUUID } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { git, gitOk } from "../../git/git-client.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  commitFiles,
  eventually,
  expectStatus,
  fields,
  listOf,
  makeProject,
  makeUserToken,
  runSession,
  sandboxEnvironment,
  stopSession,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, { files: {} });
});
afterAll(() => service.close());

const remote = (project: string, password: string): string =>
  `http://x:${password}@127.0.0.1:${service.port}/v1/git/${project}.git`;

const clone = async (project: string, password: string): Promise<string> => {
  const directory = mkdtempSync(path.join(service.importRoot, "clone-"));
  await gitOk(directory, "clone", "--quiet", remote(project, password), ".");
  return directory;
};

/** What the daemon asks for at boot. */
const credentialOf = async (sid: string, project = pid): Promise<Fields> => {
  const token = (await sandboxEnvironment(service, sid))["PLATFORM_TOKEN"] ?? "";
  const answer = await service.request("GET", `/v1/projects/${project}/git/clone-credential`, { token });
  return fields(expectStatus(answer, 200));
};
const passwordOf = (credential: Fields): string => (credential["auth"] as { password: string }).password;

/** A session's clone, on its branch, one commit ahead. */
const workOn = async (sid: string) => {
  const password = passwordOf(await credentialOf(sid));
  const directory = await clone(pid, password);
  await gitOk(directory, "checkout", "--quiet", sid);
  await commitFiles(directory, { [`${sid}.txt`]: "work\n" });
  return { directory, password };
};

describe("a clone credential", () => {
  it("states where to clone from and until when, and is different each time [G10]", async () => {
    const sid = await runSession(service, pid);
    const [first, second] = [await credentialOf(sid), await credentialOf(sid)];
    expect(first).toEqual({
      repo_url: `http://platform.internal/v1/git/${pid}.git`,
      auth: { type: "basic", username: "session", password: expect.stringMatching(/^\S{27,}$/) },
      expires_at: expect.any(String),
      bootstrap: "done",
    });
    const between = Date.parse(String(second["expires_at"])) - Date.parse(String(first["expires_at"]));
    expect(between).toBeGreaterThanOrEqual(0);
    expect(passwordOf(second)).not.toBe(passwordOf(first));
  });

  it("pushes to its own session's branch, and nowhere else [G09]", async () => {
    const [sid, other] = [await runSession(service, pid), await runSession(service, pid)];
    const { directory } = await workOn(sid);
    expect((await git(directory, "push", "origin", "HEAD")).code).toBe(0);
    const refused = [
      ["HEAD:refs/heads/main"],
      [`HEAD:refs/heads/${other}`],
      [`HEAD:refs/wip/${sid}`],
      [`HEAD:refs/wip/${other}`],
      ["HEAD:refs/heads/anything"],
      ["HEAD:refs/tags/v1"],
      ["HEAD:refs/notes/commits"],
      [`:refs/heads/${sid}`],
      ["--force", `HEAD~1:refs/heads/${sid}`],
    ];
    for (const args of refused) {
      const { code, stderr } = await git(directory, "push", "origin", ...args);
      expect([args, code]).toEqual([args, 1]);
      expect(stderr).toMatch(/rejected|denied|refused/i);
    }
    const tips = await gitOk(
      directory,
      "ls-remote",
      "origin",
      "refs/heads/main",
      "refs/heads/anything",
      "refs/tags/v1",
    );
    expect(tips.split("\n")).toHaveLength(1);
  });

  it("opens its own project's repository alone [G10]", async () => {
    const foreign = await makeProject(service);
    const password = passwordOf(await credentialOf(await runSession(service, pid)));
    for (const project of [foreign, randomUUID()]) {
      const { code, stderr } = await git(service.importRoot, "ls-remote", remote(project, password));
      expect([code, stderr]).toEqual([128, expect.stringContaining("not found")]);
    }
  });

  it("is not a bearer token, and a bearer token of the sandbox is not a credential [T01]", async () => {
    const sid = await runSession(service, pid);
    const password = passwordOf(await credentialOf(sid));
    expect((await service.request("GET", "/v1/me", { token: password })).status).toBe(401);
    const { PLATFORM_TOKEN: key = "", PLATFORM_CLI_TOKEN: cli = "" } = await sandboxEnvironment(service, sid);
    for (const token of [key, cli]) {
      expect((await git(service.importRoot, "ls-remote", remote(pid, token))).code).toBe(128);
    }
  });
});

describe("a user's token", () => {
  it("cannot read after it was revoked", async () => {
    const { id, token } = await makeUserToken(service);
    expect((await git(service.importRoot, "ls-remote", remote(pid, token))).code).toBe(0);
    await service.request("DELETE", `/v1/tokens/${id}`);
    expect((await git(service.importRoot, "ls-remote", remote(pid, token))).code).toBe(128);
  });
});

const replace = async (project: string, token: string) => {
  const directory = mkdtempSync(path.join(service.importRoot, "first-"));
  await gitOk(directory, "init", "--quiet", "--initial-branch=main");
  await commitFiles(directory, { "platform.toml": `# ${randomUUID()}\n${webhookEntry("pushed")}` });
  return git(directory, "push", "--force", remote(project, token), "HEAD:refs/heads/main");
};

describe("a new repository's first commit", () => {
  it("is replaced by a push with an account-wide token, once, and its manifest is read", async () => {
    const project = await makeProject(service);
    expect((await replace(project, service.token)).code).toBe(0);
    await eventually(async () => {
      const listing = await service.request("GET", `/v1/projects/${project}/triggers`);
      expect(listOf(listing, "triggers")).toMatchObject([{ slug: "pushed" }]);
    });
    expect((await replace(project, service.token)).code).toBe(1);
  });

  it("is not replaced with a token that is bound to the project", async () => {
    const project = await makeProject(service);
    const { token } = await makeUserToken(service, { project_id: project });
    expect((await replace(project, token)).code).toBe(1);
  });

  it("stays once the project has had a session, even a deleted one", async () => {
    const project = await makeProject(service);
    const sid = await runSession(service, project);
    await stopSession(service, project, sid);
    await service.request("DELETE", `/v1/projects/${project}/sessions/${sid}`);
    expect((await replace(project, service.token)).code).toBe(1);
  });
});

const ask = (method: string, target: string, body?: string) =>
  service.request(method, target, {
    token: null,
    headers: { authorization: `Basic ${Buffer.from(`x:${service.token}`).toString("base64")}` },
    ...(body === undefined ? {} : { body }),
  });

describe("a git address", () => {
  it("beside the project's own, as of a relative submodule, is refused with what helps", async () => {
    const { code, stderr } = await git(
      mkdtempSync(path.join(tmpdir(), "beside-")),
      "ls-remote",
      remote(pid, service.token).replace(`${pid}.git`, "lib.git"),
    );
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/^remote: .*relative address.*needs its whole address in \.gitmodules/m);
  });

  it.each([
    ["GET", "/info/refs", 403],
    ["GET", "/info/refs?service=git-archive", 403],
    ["GET", "/HEAD", 404],
    ["GET", "/objects/info/packs", 404],
    ["GET", "/config", 404],
    ["GET", "/../../master-key", 404],
    ["GET", "/git-upload-pack", 405],
    ["POST", "/info/refs?service=git-upload-pack", 405],
  ] as const)("%s %s is %i, in the one shape", async (method, rest, status) => {
    const answer = await ask(method, `/v1/git/${pid}.git${rest}`, method === "POST" ? "0000" : undefined);
    expect(answer.status).toBe(status);
    expect(Object.keys(fields(answer))).toEqual(expect.arrayContaining(["error", "code"]));
  });

  it.each(["nope", "%2e%2e", randomUUID(), randomUUID().toUpperCase()])(
    "with the project %s does not exist",
    async (id) => {
      const answer = await ask("GET", `/v1/git/${id}.git/info/refs?service=git-upload-pack`);
      expect(answer.status).toBe(404);
    },
  );
});

/** What follows from a push: words at the pusher's terminal, and news for readers of open change requests (api.md 6). */
import { mkdtempSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { git, gitOk } from "../../git/git-client.ts";
import { readEvents } from "../../support/service/event-stream.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  commitFiles,
  expectStatus,
  fields,
  invitePerson,
  makeProject,
  mintPassword,
  pushFiles,
  runSession,
  type Fields,
} from "../../support/service/requests.ts";

const PUBLIC_URL = "https://agents.example.org";
let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService({ PLATFORM_PUBLIC_URL: PUBLIC_URL });
  pid = await makeProject(service, { files: {} });
});
afterAll(() => service.close());

const at = (rest = ""): string => `/v1/projects/${pid}/change-requests${rest}`;
const page = (rest: string): string => `${PUBLIC_URL}/#/projects/${pid}/${rest}`;
const propose = async (head: string): Promise<number> => {
  const answer = await service.request("POST", at(), { body: { title: "A change", head_ref: head } });
  return Number(fields(expectStatus(answer, 201))["number"]);
};

/** A clone with one commit ahead of `from`. @returns its directory. */
const work = async (password: string, from = "main"): Promise<string> => {
  const directory = mkdtempSync(path.join(service.importRoot, "work-"));
  const remote = `http://x:${password}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
  await gitOk(directory, "clone", "--quiet", "--branch", from, remote, ".");
  await commitFiles(directory, { [`${path.basename(directory)}.txt`]: "work\n" });
  return directory;
};

/** Pushes; what the service says to it, line by line. */
const push = async (directory: string, ...refs: readonly string[]): Promise<readonly string[]> => {
  const { stderr } = await git(directory, "push", "origin", ...refs);
  return stderr
    .split("\n")
    .filter((line) => line.startsWith("remote:"))
    .map((line) => line.replace(/^remote: ?/, "").trimEnd())
    .filter((line) => line !== "");
};

describe("a push", () => {
  it("of another person to a session's branch suspends own credentials, and no other push does [K20]", async () => {
    const sid = await runSession(service, pid);
    const ben = await invitePerson(service, "Ben");
    const suspended = async () => {
      const target = `/v1/projects/${pid}/sessions/${sid}/own-credentials`;
      return fields(expectStatus(await service.request("GET", target), 200))["suspended"];
    };
    for (const password of [await mintPassword(service, pid, sid), service.token]) {
      // oxlint-disable-next-line no-await-in-loop -- one push follows the other
      await push(await work(password, sid), `HEAD:refs/heads/${sid}`);
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect(await suspended()).toBe(null);
    }
    await push(await work(ben.token, sid), `HEAD:refs/heads/of-ben`);
    expect(await suspended()).toBe(null);
    await push(await work(ben.token, sid), `HEAD:refs/heads/${sid}`);
    expect(await suspended()).toMatchObject({
      act: "push",
      by: { name: "Ben" },
      words: "pushed to the session's branch",
    });
  });

  it("of a session says how and where to open a change request, then where the open one is", async () => {
    const sid = await runSession(service, pid);
    const directory = await work(await mintPassword(service, pid, sid), sid);
    expect(await push(directory, "HEAD")).toEqual([
      `To merge ${sid}, open a change request:`,
      '  platform cr create --title "..."',
      `  ${page(`sessions/${sid}`)}`,
    ]);
    const number = await propose(sid);
    await commitFiles(directory, { "more.txt": "more\n" });
    const told = [
      `${sid} is the branch of change request #${number}:`,
      `  ${page(`change-requests/${number}`)}`,
    ];
    expect(await push(directory, "HEAD")).toEqual(told);
    await service.request("POST", at(`/${number}/close`));
    await commitFiles(directory, { "last.txt": "last\n" });
    expect(await push(directory, "HEAD")).toContain('  platform cr create --title "..."');
  });

  it("of a user also names the project and the branch, and a session's page for its branch", async () => {
    const directory = await work(service.token);
    expect(await push(directory, "HEAD:refs/heads/mine")).toEqual([
      "To merge mine, open a change request:",
      `  platform cr create --project ${pid} --head mine --title "..."`,
      `  ${page("change-requests")}`,
    ]);
    const sid = await runSession(service, pid);
    expect(await push(directory, `HEAD:refs/heads/${sid}`)).toContain(`  ${page(`sessions/${sid}`)}`);
  });

  it("that was refused, is not to a branch, or deletes one has no such message", async () => {
    const directory = await work(service.token);
    await push(directory, "HEAD:refs/heads/doomed");
    for (const refs of [["HEAD:refs/heads/main"], [":refs/heads/doomed"], ["HEAD:refs/tags/v1"]]) {
      expect((await push(directory, ...refs)).join("\n")).not.toContain("change request:");
    }
    const mixed = await push(directory, "HEAD:refs/heads/main", "HEAD:refs/heads/good");
    expect(mixed.filter((line) => line.startsWith("To merge"))).toEqual([
      "To merge good, open a change request:",
    ]);
  });

  it("prints no command with a name that a shell would not take literally", async () => {
    const directory = await work(service.token);
    const told = await push(directory, "HEAD:refs/heads/$(id)");
    expect(told).toEqual(["To merge $(id), open a change request:", `  ${page("change-requests")}`]);
  });

  it("of a session stores what its branch changes, and is new work after a merge", async () => {
    const sid = await runSession(service, pid);
    const shown = async () =>
      fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`), 200));
    expect(await shown()).toMatchObject({ activity: "resting", changes: null, change_request: null });
    const directory = await work(await mintPassword(service, pid, sid), sid);
    await push(directory, "HEAD");
    const changes = {
      files: 1,
      additions: 1,
      deletions: 0,
      head_commit: (await gitOk(directory, "rev-parse", "HEAD")).trim(),
    };
    expect(await shown()).toMatchObject({ activity: "ready_for_review", changes });
    const number = await propose(sid);
    expectStatus(await service.request("POST", at(`/${number}/merge`), { body: {} }), 200);
    expect(await shown()).toMatchObject({ activity: "done", change_request: { number, status: "merged" } });
    await commitFiles(directory, { "after.txt": "two\nlines\n" });
    await push(directory, "HEAD");
    const later = { files: 1, additions: 2, deletions: 0 };
    expect(await shown()).toMatchObject({ activity: "ready_for_review", changes: later });
  });

  it("of many branches mentions the first few", async () => {
    const directory = await work(service.token);
    const told = await push(directory, ...[1, 2, 3, 4, 5].map((n) => `HEAD:refs/heads/many-${n}`));
    expect(told.filter((line) => line.startsWith("To merge"))).toHaveLength(3);
  });
});

const follow = async () => {
  const reader = await readEvents(`${service.url}/v1/projects/${pid}/events`, { token: service.token });
  await reader.until(({ event }) => event === "open");
  return reader;
};
const show = async (number: number): Promise<Fields> =>
  fields(expectStatus(await service.request("GET", at(`/${number}`)), 200));

describe("readers of an open change request", () => {
  it("hear of a push that moved its head", async () => {
    await pushFiles(service, pid, { branch: "moving", files: { "moving.txt": "1\n" } });
    const number = await propose("moving");
    const reader = await follow();
    await pushFiles(service, pid, { branch: "moving", from: "moving", files: { "moving.txt": "2\n" } });
    const { data } = await reader.until(({ event }) => event === "change_request.updated");
    const { base_commit, head_commit } = await show(number);
    expect(data).toMatchObject({ data: { number, status: "open", base_commit, head_commit } });
    reader.close();
  });

  it("hear of a merge that moved its base, and that it can no longer be merged", async () => {
    await pushFiles(service, pid, { branch: "first", files: { "README.md": "first\n" } });
    await pushFiles(service, pid, { branch: "second", files: { "README.md": "second\n" } });
    const [first, second] = [await propose("first"), await propose("second")];
    expect((await show(second))["mergeable"]).toBe(true);
    const reader = await follow();
    expectStatus(await service.request("POST", at(`/${first}/merge`), { body: {} }), 200);
    await reader.until(
      ({ event, data }) =>
        event === "change_request.updated" && (data as { data: Fields }).data["number"] === second,
    );
    expect(await show(second)).toMatchObject({ mergeable: false, conflicts: ["README.md"] });
    const merged = reader.events.filter(
      ({ event, data }) =>
        event === "change_request.updated" && (data as { data: Fields }).data["number"] === first,
    );
    expect(merged).toEqual([]);
    reader.close();
  });
});

describe("a branch that shares no commit with the empty default branch", () => {
  it("is told the push that makes it the content, by its push and by the refused merge", async () => {
    const own = await makeProject(service);
    const clone = mkdtempSync(path.join(service.importRoot, "own-"));
    const remote = `http://x:${service.token}@127.0.0.1:${service.port}/v1/git/${own}.git`;
    await gitOk(clone, "init", "--quiet", "--initial-branch=master");
    await gitOk(clone, "remote", "add", "origin", remote);
    await commitFiles(clone, { "a.txt": "a\n" });
    const command = `git push --force ${PUBLIC_URL}/v1/git/${own}.git master:main`;
    expect(await push(clone, "master")).toEqual([
      "master and main have unrelated histories, and main of this project is still empty.",
      "To make master its content:",
      `  ${command}`,
    ]);
    const requests = `/v1/projects/${own}/change-requests`;
    const opened = await service.request("POST", requests, { body: { title: "It", head_ref: "master" } });
    const { number } = fields(expectStatus(opened, 201));
    const refused = await service.request("POST", `${requests}/${String(number)}/merge`, { body: {} });
    expect([refused.status, fields(refused)["error"]]).toEqual([
      409,
      expect.stringContaining("git push --force origin master:main"),
    ]);
    expect(fields(refused)["error"]).toContain("unrelated histories");
    await gitOk(clone, "push", "--quiet", "--force", "origin", "master:main");
    await gitOk(clone, "switch", "--quiet", "--orphan", "other");
    await commitFiles(clone, { "b.txt": "b\n" });
    expect(await push(clone, "other")).toContain("To merge other, open a change request:");
  });
});

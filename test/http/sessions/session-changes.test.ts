/** The pushed work of a session: commits, files and diff that the default branch does not have. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  expectStatus,
  fields,
  invitePerson,
  makeProject,
  commitTo,
  putSecret,
  SECRET,
  runSession,
  stopSession,
} from "../../support/service/requests.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

const changesOf = async (pid: string, sid: string) =>
  fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/changes`), 200));
const diffOf = async (pid: string, sid: string) => {
  const answer = expectStatus(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/diff`), 200);
  expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
  return answer.text;
};

describe("the changes of a session", () => {
  it("are empty at first, then have what was pushed, and lose what is merged", async () => {
    const pid = await makeProject(service, { files: {} });
    const sid = await runSession(service, pid);
    const empty = await changesOf(pid, sid);
    expect(empty).toMatchObject({ commits_total: 0, commits: [], files_changed: [], files_changed_total: 0 });
    expect(empty["head_commit"]).toBe(empty["base_commit"]);
    expect(await diffOf(pid, sid)).toBe("");

    await commitTo(service, pid, { branch: sid, from: sid, files: { "notes.md": "one\ntwo\n" } });
    const changes = await changesOf(pid, sid);
    expect(changes).toMatchObject({
      base_commit: empty["base_commit"],
      commits_total: 1,
      commits: [{ subject: "Change" }],
      files_changed: [{ path: "notes.md", additions: 2, deletions: 0 }],
      files_changed_total: 1,
    });
    expect(await diffOf(pid, sid)).toContain("+++ b/notes.md");

    // Others' work on the default branch is not the session's.
    await commitTo(service, pid, { branch: "elsewhere", files: { "other.md": "three\n" } });
    const { number } = fields(
      await service.request("POST", `/v1/projects/${pid}/change-requests`, {
        body: { session_id: sid, title: "Notes" },
      }),
    );
    const merge = `/v1/projects/${pid}/change-requests/${String(number)}/merge`;
    expectStatus(await service.request("POST", merge, { body: {} }), 200);
    await stopSession(service, pid, sid);
    expect(await changesOf(pid, sid)).toEqual({
      ...changes,
      commits: [],
      commits_total: 0,
      files_changed: [],
      files_changed_total: 0,
    });
    expect(await diffOf(pid, sid)).toBe("");

    await commitTo(service, pid, { branch: sid, from: sid, files: { "notes.md": "one\ntwo\nthree\n" } });
    expect(await changesOf(pid, sid)).toMatchObject({
      commits_total: 1,
      files_changed: [{ path: "notes.md", additions: 1, deletions: 0 }],
    });
  });

  it("are only its own, if it began from another branch, and none after the merge", async () => {
    const pid = await makeProject(service, { files: {} });
    await commitTo(service, pid, { branch: "topic", files: { "topic.md": "1\n" } });
    const sid = await runSession(service, pid, { base_ref: "topic" });
    await commitTo(service, pid, { branch: sid, from: sid, files: { "own.md": "2\n" } });
    expect(await changesOf(pid, sid)).toMatchObject({
      commits_total: 1,
      files_changed: [{ path: "own.md", additions: 1, deletions: 0 }],
    });
    const { number } = fields(
      await service.request("POST", `/v1/projects/${pid}/change-requests`, {
        body: { session_id: sid, title: "Both" },
      }),
    );
    const merge = `/v1/projects/${pid}/change-requests/${String(number)}/merge`;
    expectStatus(await service.request("POST", merge, { body: {} }), 200);
    expect(await changesOf(pid, sid)).toMatchObject({ commits_total: 0, files_changed_total: 0 });
  });

  it("are read file by file", async () => {
    const pid = await makeProject(service, { files: {} });
    const sid = await runSession(service, pid);
    const files = { "a.md": "one\n", "b/c d.md": "two\n" };
    await commitTo(service, pid, { branch: sid, from: sid, files });
    const at = `/v1/projects/${pid}/sessions/${sid}/diff?path=`;
    const { text } = expectStatus(await service.request("GET", `${at}b%2Fc%20d.md`), 200);
    expect(text).toContain("+two");
    expect(text).not.toContain("+one");
    expect(expectStatus(await service.request("GET", `${at}nothing`), 200).text).toBe("");
    expect((await service.request("GET", at)).status).toBe(400);
  });

  it("show viewers no secret, and a change request warns people who merge it [S13]", async () => {
    const pid = await makeProject(service, { files: {} });
    await service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: null } });
    const viewer = await invitePerson(service, "Vera", { roles: { [pid]: "viewer" } });
    const member = await invitePerson(service, "Mia", { roles: { [pid]: "member" } });
    await putSecret(service, pid, "KEY", SECRET);
    const sid = await runSession(service, pid);
    await commitTo(service, pid, { branch: sid, from: sid, files: { "env.txt": `KEY=${SECRET}\n` } });
    const body = { session_id: sid, title: "Env" };
    const request = fields(await service.request("POST", `/v1/projects/${pid}/change-requests`, { body }));
    const change = `/v1/projects/${pid}/change-requests/${String(request["number"])}`;
    const read = async (path: string, token: string) =>
      expectStatus(await service.request("GET", path, { token }), 200).text;
    for (const path of [`/v1/projects/${pid}/sessions/${sid}/diff`, `${change}/diff`]) {
      // oxlint-disable-next-line no-await-in-loop -- two
      const [shown, masked] = await Promise.all([read(path, member.token), read(path, viewer.token)]);
      expect([shown.includes(SECRET), masked.includes(SECRET), masked.includes("+KEY=")]).toEqual([
        true,
        false,
        true,
      ]);
    }
    const [warning] = JSON.parse(await read(change, viewer.token)).warnings;
    expect(warning).toMatchObject({ file: "env.txt", message: expect.stringContaining("the secret KEY") });
    // Behind more than a search takes, it says where the search ended.
    const lock = `${"a".repeat(99)}\n`.repeat(12_000);
    await commitTo(service, pid, { branch: sid, from: sid, files: { "a.lock": lock } });
    expect(JSON.parse(await read(change, member.token)).warnings).toEqual([
      { file: "a.lock", line: null, message: expect.stringContaining("took its first 1048576 bytes") },
    ]);
  });
});

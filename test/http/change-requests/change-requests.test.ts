/** Change requests through the API (api.md 6): how a session's work is proposed and shown. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  expectStatus,
  fields,
  listOf,
  makeProject,
  commitTo,
  putSecret,
  reached,
  runSession,
  sandboxEnvironment,
  SECRET,
  SECRET_NAME,
  stopSession,
  webhookEntry,
  type Fields,
  type Files,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
});
afterAll(() => service.close());

const at = (rest = ""): string => `/v1/projects/${pid}/change-requests${rest}`;
const open = (body: Fields, token = service.token): Promise<Answer> =>
  service.request("POST", at(), { body: { title: "A change", ...body }, token });
const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];

const pushTo = (branch: string, files: Files, from?: string): Promise<void> =>
  commitTo(service, pid, { branch, files, ...(from === undefined ? {} : { from }) });

describe("a change request", () => {
  it("shows a session's commits, files and diff, from its branch", async () => {
    const sid = await runSession(service, pid);
    expect(seen(await open({ session_id: sid }))).toEqual([422, "no_changes"]);
    await pushTo(sid, { "a.txt": "one\ntwo\n", "README.md": "one\nmore\n" }, sid);
    const opened = fields(expectStatus(await open({ session_id: sid, description: "Why." }), 201));
    expect(opened).toEqual({
      id: expect.any(String),
      project_id: pid,
      number: 1,
      session_id: sid,
      head_ref: sid,
      base_ref: "main",
      title: "A change",
      description: "Why.",
      status: "open",
      created_by: expect.any(String),
      created_at: expect.any(String),
      updated_at: expect.any(String),
      merged_commit: null,
      merged_at: null,
      merged_by: null,
      pull_request: null,
    });
    const shown = fields(await service.request("GET", at("/1")));
    expect(shown).toMatchObject({
      ...opened,
      mergeable: true,
      conflicts: [],
      commits_total: 1,
      files_changed_total: 2,
      commits: [{ subject: "Change", author_name: "Tester", sha: shown["head_commit"] }],
      files_changed: [
        { path: "README.md", additions: 1, deletions: 0 },
        { path: "a.txt", additions: 2, deletions: 0 },
      ],
    });
    const diff = await service.request("GET", at("/1/diff"));
    expect(diff.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(diff.text).toContain("+two");
    await stopSession(service, pid, sid);
    expect(fields(await service.request("GET", at("/1")))["head_commit"]).toBe(shown["head_commit"]);
  });

  it("is unique for a branch: another is 409 while it is open", async () => {
    expect((await open({ head_ref: "feature" })).status).toBe(201);
    expect(seen(await open({ head_ref: "feature" }))).toEqual([409, "already_open"]);
    const raced = `raced-${pid}`;
    await pushTo(raced, { "raced.txt": "x\n" });
    const answers = await Promise.all(Array.from({ length: 8 }, () => open({ head_ref: raced })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([
      201,
      ...Array.from({ length: 7 }, () => 409),
    ]);
  });

  it.each([
    [{}, 400, "invalid_request"],
    [{ head_ref: "feature", session_id: "01a1f7c0-abf2-7c75-a54c-6182cfac0e9c" }, 400, "invalid_request"],
    [{ session_id: "01a1f7c0-abf2-7c75-a54c-6182cfac0e9c" }, 404, "not_found"],
    [{ head_ref: "gone" }, 422, "unknown_head_ref"],
    [{ head_ref: "main" }, 422, "no_changes"],
    [{ head_ref: "-x" }, 400, "invalid_request"],
    [{ head_ref: "feature", title: "" }, 400, "invalid_request"],
  ] as const)("with %j is refused", async (body, status, code) => {
    expect(seen(await open(body))).toEqual([status, code]);
  });

  it("that does not exist is 404; lists are newest first, by status", async () => {
    expect(seen(await service.request("GET", at("/999")))).toEqual([404, "not_found"]);
    expect(seen(await service.request("GET", at("/999/diff")))).toEqual([404, "not_found"]);
    const numbers = listOf(await service.request("GET", at()), "change_requests").map(({ number }) =>
      Number(number),
    );
    expect(numbers).toEqual(numbers.toSorted((a, b) => b - a));
    expect(listOf(await service.request("GET", at("?status=merged")), "change_requests")).toEqual([]);
    expect((await service.request("GET", at("?status=none"))).status).toBe(400);
  });
});

describe("a trigger's token", () => {
  it("can propose only its own session's branch", async () => {
    const answer = await deliver(service, `${pid}/push`);
    const sid = String(fields(expectStatus(answer, 202))["session_id"]);
    await reached(service, pid, sid, "running");
    const token = (await sandboxEnvironment(service, sid))["PLATFORM_CLI_TOKEN"] ?? "";
    const other = await runSession(service, pid);
    await pushTo(sid, { "from-trigger.txt": "x\n" }, sid);
    await pushTo(other, { "from-other.txt": "x\n" }, other);
    for (const body of [{ session_id: other }, { head_ref: other }, { head_ref: "feature" }]) {
      expect(seen(await open(body, token))).toEqual([403, "forbidden"]);
    }
    const opened = fields(expectStatus(await open({ session_id: sid }, token), 201));
    expect(opened).toMatchObject({ session_id: sid, head_ref: sid });
    const read = await service.request("GET", at(`/${opened["number"]}`), { token });
    expect(read.status).toBe(200);
  });

  it("that names its own branch as a ref proposes its session", async () => {
    const sid = String(fields(expectStatus(await deliver(service, `${pid}/push`), 202))["session_id"]);
    await reached(service, pid, sid, "running");
    const token = (await sandboxEnvironment(service, sid))["PLATFORM_CLI_TOKEN"] ?? "";
    await pushTo(sid, { "again.txt": "x\n" }, sid);
    const opened = fields(expectStatus(await open({ head_ref: sid }, token), 201));
    expect(opened["head_ref"]).toBe(sid);
  });
});

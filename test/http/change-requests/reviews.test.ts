/** What people say of a change request (api.md 6): remarks, verdicts, and the approvals that a merge needs. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { auditOf } from "../people/audit-rows.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  commitTo,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  runSession,
  sandboxEnvironment,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
let ben = { id: "", token: "" };
let pid = "";
let number = 0;
beforeAll(async () => {
  service = await shareService();
  ben = await invitePerson(service, "Ben");
});
beforeEach(async () => {
  pid = await makeProject(service, { files: {} });
  await commitTo(service, pid, { branch: "work", files: { "a.txt": "one\ntwo\n" } });
  const opened = await service.request("POST", `/v1/projects/${pid}/change-requests`, {
    body: { title: "A change", head_ref: "work" },
  });
  number = Number(fields(expectStatus(opened, 201))["number"]);
});
afterAll(() => service.close());

const at = (rest = ""): string => `/v1/projects/${pid}/change-requests/${number}${rest}`;
const say = (body: Fields, token = service.token): Promise<Answer> =>
  service.request("POST", at("/remarks"), { body, token });
const said = async (body: Fields, token?: string): Promise<Fields> =>
  fields(expectStatus(await say(body, token), 201));
const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];
const shown = async (): Promise<Fields> => fields(expectStatus(await service.request("GET", at()), 200));
const reviewer = (id: string): string => at(`/reviewers/${id}`);
const merge = (): Promise<Answer> => service.request("POST", at("/merge"), { body: {} });
const push = (text: string): Promise<void> =>
  commitTo(service, pid, { branch: "work", files: { "a.txt": text }, from: "work" });

describe("a remark", () => {
  it("is on lines of a commit, says when the branch has moved since, and is answered and resolved", async () => {
    const place = { file: "a.txt", side: "head", first_line: 1, last_line: 2 };
    const remark = await said({ body: "Why **two**?", place });
    const head = (await shown())["head_commit"];
    expect(remark).toMatchObject({
      kind: "comment",
      commit: head,
      outdated: false,
      place,
      resolved_at: null,
    });
    const lost = await say({ body: "Because.", reply_to: "0190f3b2-0000-7000-8000-00000000dead" });
    expect([lost.status, fields(lost)["error"]]).toEqual([
      409,
      "The remark that this answers does not exist, or is an answer itself.",
    ]);
    const answer = await said({ body: "Because.", reply_to: remark["id"] }, ben.token);
    expect(answer).toMatchObject({ reply_to: remark["id"], created_by: { id: ben.id, name: "Ben" } });
    await push("one\n");
    const remarks = listOf(await service.request("GET", at("/remarks")), "remarks");
    expect(remarks.map(({ id, outdated }) => [id, outdated])).toEqual([
      [remark["id"], true],
      [answer["id"], true],
    ]);
    const path = at(`/remarks/${String(remark["id"])}`);
    const resolved = await service.request("PATCH", path, { body: { resolved: true }, token: ben.token });
    expect(fields(resolved)).toMatchObject({ resolved_by: ben.id });
  });

  it("is changed and deleted by its author alone", async () => {
    const { id } = await said({ body: "Mine." });
    const path = at(`/remarks/${String(id)}`);
    expect(seen(await service.request("PATCH", path, { body: { body: "x" }, token: ben.token }))).toEqual([
      403,
      "forbidden",
    ]);
    expect(seen(await service.request("DELETE", path, { token: ben.token }))).toEqual([403, "forbidden"]);
    expect(fields(await service.request("PATCH", path, { body: { body: "Better." } }))).toMatchObject({
      body: "Better.",
      edited_at: expect.any(String),
    });
    expectStatus(await service.request("DELETE", path), 204);
    expect(seen(await service.request("DELETE", path))).toEqual([404, "not_found"]);
  });

  it.each([
    [{}, "body"],
    [{ body: "x", place: { file: "a", side: "head", first_line: 2, last_line: 1 } }, "last_line"],
    [{ body: "x", kind: "approval", reply_to: "0190f3b2-0000-7000-8000-00000000dead" }, "comment"],
  ])("refuses %j", async (body, word) => {
    const answer = await say(body);
    expect(answer.status).toBe(400);
    expect(String(fields(answer)["error"])).toContain(word);
  });

  it("and a verdict are no agent's", async () => {
    const sid = await runSession(service, pid);
    const token = (await sandboxEnvironment(service, sid))["PLATFORM_CLI_TOKEN"] ?? "";
    expect(seen(await say({ kind: "approval" }, token))).toEqual([403, "forbidden"]);
  });
});

describe("a reviewer", () => {
  it("is a member who is asked, answers with a verdict, and is asked again", async () => {
    const asked = await service.request("PUT", reviewer(ben.id), { body: {} });
    expect(fields(expectStatus(asked, 200))).toMatchObject({ id: ben.id, name: "Ben", answer: null });
    await said({ kind: "changes_requested", body: "No." }, ben.token);
    expect((await shown())["reviewers"]).toMatchObject([{ id: ben.id, answer: "changes_requested" }]);
    const again = await service.request("PUT", reviewer(ben.id), { body: {} });
    expect(fields(again)).toMatchObject({ answer: null });
    expectStatus(await service.request("DELETE", reviewer(ben.id)), 204);
    expect(seen(await service.request("DELETE", reviewer(ben.id)))).toEqual([404, "not_found"]);
  });

  it("finds what she is asked for in her list of all projects, until she comments", async () => {
    const owed = async (): Promise<readonly Fields[]> =>
      listOf(
        await service.request("GET", "/v1/change-requests?reviewer=me", { token: ben.token }),
        "change_requests",
      ).filter(({ project_id: id }) => id === pid);
    expect(await owed()).toEqual([]);
    expectStatus(await service.request("PUT", reviewer(ben.id)), 200);
    expect(await owed()).toMatchObject([{ number, review_asked: { by: { name: expect.any(String) } } }]);
    const hers = await service.request("GET", `/v1/projects/${pid}/change-requests?reviewer=me`);
    expect(listOf(hers, "change_requests")).toEqual([]);
    await said({ body: "Why?" }, ben.token);
    expect(await owed()).toEqual([]);
    expect((await shown())["reviewers"]).toMatchObject([{ id: ben.id, answer: "comment" }]);
  });

  it("is no one who only reads, and no one is asked about a request that has ended", async () => {
    const patched = await service.request("PATCH", `/v1/projects/${pid}`, {
      body: { default_role: "viewer" },
    });
    expectStatus(patched, 200);
    expect(seen(await service.request("PUT", reviewer(ben.id)))).toEqual([422, "not_a_reviewer"]);
    expectStatus(await service.request("POST", at("/close")), 200);
    expect(seen(await service.request("PUT", reviewer(ben.id)))).toEqual([409, "not_open"]);
  });
});

describe("a project that demands an approval", () => {
  beforeEach(async () => {
    const patched = await service.request("PATCH", `/v1/projects/${pid}`, {
      body: { approvals_required: 1 },
    });
    expect(fields(patched)).toMatchObject({ approvals_required: 1 });
  });

  it("merges after another person approved the newest commit, and says what is missing before", async () => {
    expect(seen(await merge())).toEqual([409, "approvals_missing"]);
    // Who opened it does not count.
    await said({ kind: "approval" });
    expect(seen(await merge())).toEqual([409, "approvals_missing"]);
    await said({ kind: "approval" }, ben.token);
    await push("one\n");
    const refused = await merge();
    expect(fields(refused)["details"]).toEqual({ required: 1, given: 0 });
    const before = await shown();
    expect(
      (before["verdicts"] as readonly Fields[]).map(({ counts, why_not: why }) => [counts, why]),
    ).toEqual([
      [false, "who opens a request does not approve it"],
      [false, "it is of an earlier commit"],
    ]);
    await said({ kind: "approval", commit: before["head_commit"] }, ben.token);
    await said({ kind: "changes_requested", body: "No." }, ben.token);
    expect(seen(await merge())).toEqual([409, "approvals_missing"]);
    await said({ kind: "approval" }, ben.token);
    expect(await shown()).toMatchObject({ approvals_required: 1 });
    expectStatus(await merge(), 200);
    expect((await auditOf(service, "change_request.verdict"))[0]).toMatchObject({
      changes: { verdict: "approval" },
    });
    expect(seen(await say({ kind: "approval" }, ben.token))).toEqual([409, "not_open"]);
  });

  it("does not count who lost the role or was deactivated, and the merge says why", async () => {
    const eve = await invitePerson(service, "Eve");
    await said({ kind: "approval" }, ben.token);
    await said({ kind: "approval" }, eve.token);
    await service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: "viewer" } });
    expectStatus(await service.request("POST", `/v1/people/${eve.id}/deactivate`), 200);
    const refused = await merge();
    expect(seen(refused)).toEqual([409, "approvals_missing"]);
    expect(String(fields(refused)["error"])).toContain(
      "The approval of Ben does not count: this person no longer has the role member in the project. " +
        "The approval of Eve does not count: this person is deactivated.",
    );
    const verdicts = (await shown())["verdicts"] as readonly Fields[];
    expect(verdicts.map(({ counts }) => counts)).toEqual([false, false]);
    await service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: "member" } });
    expectStatus(await merge(), 200);
  });

  it("refuses a verdict on a commit that is not the newest any more", async () => {
    const { head_commit: commit } = await shown();
    await push("one\n");
    const refused = await say({ kind: "approval", commit }, ben.token);
    expect(seen(refused)).toEqual([409, "head_moved"]);
  });
});

it("a change request's texts can be changed", async () => {
  const edited = await service.request("PATCH", at(), { body: { title: "Better", description: "Why." } });
  expect(fields(expectStatus(edited, 200))).toMatchObject({ title: "Better", description: "Why." });
  expect(seen(await service.request("PATCH", at(), { body: {} }))).toEqual([400, "invalid_request"]);
});

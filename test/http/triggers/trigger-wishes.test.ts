/** Changes of triggers: the lines of a description, and the change requests for them (api.md 4 "Changes of triggers"). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  webhookEntry,
} from "../../support/service/requests.ts";

const MANIFEST = `# kept\n${webhookEntry("push", "Go")}`;
const NIGHTLY = { type: "cron", slug: "nightly", cron: "0 30 2 * * *", timezone: "Europe/Berlin" };

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, { files: { "platform.toml": MANIFEST, "README.md": "Hello\n" } });
});
afterAll(() => service.close());

const post = (rest: string, body: unknown, project = pid): Promise<Answer> =>
  service.request("POST", `/v1/projects/${project}${rest}`, { body });
const draft = async (body: unknown) => fields(expectStatus(await post("/triggers/drafts", body), 200));
const pathsOf = (answer: Answer) =>
  (fields(answer)["details"] as { issues: { path: string }[] }).issues.map(({ path }) => path);

describe("a new trigger", () => {
  it("is drafted while it is typed: its faults by field, its lines, and its next five instants", async () => {
    const begun = await draft({ ...NIGHTLY, slug: "push" });
    expect(begun["lines"]).toBeNull();
    expect(begun["issues"]).toMatchObject([{ path: "prompt" }, { path: "slug" }]);
    expect(begun["upcoming"]).toHaveLength(5);
    const done = await draft({ ...NIGHTLY, prompt: "Update.\nTest." });
    expect(done).toMatchObject({ issues: [], upcoming: begun["upcoming"] });
    expect(done["lines"]).toContain('prompt = """\nUpdate.\nTest."""');
    const bad = await draft({ ...NIGHTLY, cron: "0 0 2 * *", prompt: "x" });
    expect(bad).toMatchObject({ lines: null, upcoming: [], issues: [{ path: "cron" }] });
    expect(await draft({ ...NIGHTLY, timezone: "Nowhere" })).toMatchObject({ upcoming: [] });
  });

  it("reaches the default branch by the merge of a change request, whose commit is its person's", async () => {
    const wish = { ...NIGHTLY, prompt: "Update." };
    const opened = fields(expectStatus(await post("/triggers/proposals", wish), 201));
    expect(opened).toMatchObject({ status: "open", session_id: null, title: "Add the trigger nightly" });
    const number = String(opened["number"]);
    const detail = fields(await service.request("GET", `/v1/projects/${pid}/change-requests/${number}`));
    expect(detail).toMatchObject({
      mergeable: true,
      files_changed: [{ path: "platform.toml", deletions: 0 }],
      commits: [{ subject: "Add the trigger nightly", author_name: "admin" }],
    });
    const slugs = async () =>
      listOf(await service.request("GET", `/v1/projects/${pid}/triggers`), "triggers").map(
        ({ slug }) => slug,
      );
    expect(await slugs()).toEqual(["push"]);
    expectStatus(await post(`/change-requests/${number}/merge`, {}), 200);
    expect(await slugs()).toEqual(["push", "nightly"]);
    const again = await post("/triggers/proposals", wish);
    expect([again.status, pathsOf(again)]).toEqual([400, ["slug"]]);
    // A closed proposal leaves its branch, so a second one has another name.
    const other = { ...wish, slug: "other" };
    const [one, two] = [await post("/triggers/proposals", other), await post("/triggers/proposals", other)];
    expect(new Set([one, two].map((answer) => fields(expectStatus(answer, 201))["head_ref"])).size).toBe(2);
  });

  it("begins to work at once if its person may merge, and not if she may not", async () => {
    const own = await makeProject(service, { files: { "platform.toml": MANIFEST } });
    const wish = { ...NIGHTLY, prompt: "Update.", merge: true };
    const merged = fields(expectStatus(await post("/triggers/proposals", wish, own), 201));
    expect(merged).toMatchObject({ status: "merged", title: "Add the trigger nightly" });
    const listing = await service.request("GET", `/v1/projects/${own}/triggers`);
    expect(listOf(listing, "triggers").map(({ slug }) => slug)).toEqual(["push", "nightly"]);
    expectStatus(
      await service.request("PATCH", `/v1/projects/${own}`, { body: { merge_role: "owner" } }),
      200,
    );
    const { token } = await invitePerson(service, "Mia");
    const asMember = async (body: unknown) =>
      (await service.request("POST", `/v1/projects/${own}/triggers/push/proposals`, { body, token })).status;
    expect(await asMember({ action: "pause", merge: true })).toBe(403);
    expect(await asMember({ action: "pause" })).toBe(201);
    const requests = await service.request("GET", `/v1/projects/${own}/change-requests`);
    expect(listOf(requests, "change_requests").map(({ status }) => status)).toEqual(["open", "merged"]);
    const hook = await draft({ type: "webhook", slug: "hook" });
    expect(hook["webhook_url"]).toContain(`/v1/webhooks/projects/${pid}/hook`);
  });

  it("is refused with its fields, and leaves nothing", async () => {
    const refused = await post("/triggers/proposals", { type: "webhook", slug: "A b", secret_env: "s" });
    expect([refused.status, pathsOf(refused)]).toEqual([400, ["slug", "prompt", "secret_env"]]);
    const agent = await post("/triggers/proposals", {
      ...NIGHTLY,
      slug: "by-agent",
      prompt: "x",
      agent: "lost",
    });
    expect([agent.status, pathsOf(agent)]).toEqual([400, ["agent"]]);
    const unknown = await post("/triggers/drafts", { ...NIGHTLY, schedule: "x" });
    expect([unknown.status, pathsOf(unknown)]).toEqual([400, ["schedule"]]);
  });

  it("begins a manifest, and is not added to one with a mistake", async () => {
    const [empty, broken] = await Promise.all(
      [{}, { "platform.toml": "[[triggers\n" }].map((files) => makeProject(service, { files })),
    );
    const wish = { ...NIGHTLY, prompt: "x" };
    expectStatus(await post("/triggers/proposals", wish, empty), 201);
    const refused = await post("/triggers/proposals", wish, broken);
    expect([refused.status, fields(refused)["code"]]).toEqual([409, "manifest_not_extended"]);
    expect(fields(refused)["error"]).toContain("line 1");
  });
});

describe("a trigger that exists", () => {
  it("is drafted and changed under its own slug, paused, resumed and deleted", async () => {
    const own = await makeProject(service, {
      files: { "platform.toml": `# kept\n\n${webhookEntry("push", "Go")}` },
    });
    const triggers = async () =>
      listOf(await service.request("GET", `/v1/projects/${own}/triggers`), "triggers");
    const [known] = await triggers();
    const wish = { type: "webhook", slug: "push", secret_env: known?.["secret_env"], prompt: "Went" };
    const drafted = await post("/triggers/drafts", { ...wish, replaces: "push" }, own);
    expect(fields(drafted)).toMatchObject({ issues: [], lines: expect.stringContaining("Went") });
    const acts = [
      [
        "/triggers/proposals",
        { ...wish, title: "Push of {{ body.ref }}", replaces: "push" },
        "Change",
        { prompt: "Went", title: "Push of {{ body.ref }}", enabled: true },
      ],
      ["/triggers/push/proposals", { action: "pause" }, "Pause", { enabled: false }],
      ["/triggers/push/proposals", { action: "resume" }, "Resume", { enabled: true }],
    ] as const;
    for (const [rest, body, verb, found] of acts) {
      const done = fields(expectStatus(await post(rest, { ...body, merge: true }, own), 201));
      expect(done).toMatchObject({ status: "merged", title: `${verb} the trigger push` });
      expect(await triggers()).toMatchObject([found]);
    }
    const again = await post("/triggers/push/proposals", { action: "resume" }, own);
    expect([again.status, fields(again)["code"]]).toEqual([422, "no_changes"]);
    expectStatus(await post("/triggers/push/proposals", { action: "delete", merge: true }, own), 201);
    expect(await triggers()).toEqual([]);
    expectStatus(await post("/triggers/push/proposals", { action: "pause" }, own), 404);
    const other = await post("/triggers/proposals", { ...wish, replaces: "push" }, own);
    expectStatus(other, 404);
  });
});

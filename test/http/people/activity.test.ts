/** What happened in all projects, and the triggers of all projects, through the API (api.md 1, 4). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  commitTo,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  makeUserToken,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
let ben = { id: "", token: "" };
beforeAll(async () => {
  service = await shareService();
  ben = await invitePerson(service, "Ben");
});
afterAll(() => service.close());

const read = async (token = service.token, query = ""): Promise<Fields> =>
  fields(expectStatus(await service.request("GET", `/v1/activity${query}`, { token }), 200));

/** A project with a change request of the owner. */
const opened = async (): Promise<string> => {
  const pid = await makeProject(service, { files: {} });
  await commitTo(service, pid, { branch: "work", files: { "a.txt": "one\n" } });
  const target = `/v1/projects/${pid}/change-requests`;
  expectStatus(await service.request("POST", target, { body: { title: "A change", head_ref: "work" } }), 201);
  return pid;
};

describe("what happened", () => {
  it("is listed with who did it, and is one's own where it is about one's own request", async () => {
    const pid = await opened();
    const target = `/v1/projects/${pid}/change-requests/1`;
    const said = { kind: "changes_requested", body: "Why?" };
    expectStatus(await service.request("POST", `${target}/remarks`, { body: said, token: ben.token }), 201);
    expectStatus(await service.request("PUT", `${target}/reviewers/${ben.id}`), 200);
    const asked = {
      kind: "change_request.review_requested",
      reviewer: { id: ben.id, name: "Ben" },
      own: true,
    };
    const { entries } = await read();
    expect(entries).toMatchObject([
      asked,
      {
        kind: "change_request.remarked",
        person: { id: ben.id, name: "Ben" },
        state: "changes_requested",
        own: true,
      },
      {
        kind: "change_request.opened",
        project: { id: pid },
        change_request: { number: 1, title: "A change" },
        session: null,
        own: true,
      },
    ]);
    expect((await read(ben.token))["entries"]).toMatchObject([asked, { own: false }, { own: false }]);
    expect((await read(ben.token, "?own=true"))["entries"]).toMatchObject([asked]);
  });

  it("is seen until the instant that its reader says, and never until one to come", async () => {
    const see = (at: string) =>
      service.request("POST", "/v1/activity/seen", { body: { at }, token: ben.token });
    expect((await read(ben.token))["seen_at"]).toBe(null);
    expectStatus(await see("2026-01-01T00:00:00.000Z"), 204);
    expect((await read(ben.token))["seen_at"]).toBe("2026-01-01T00:00:00.000Z");
    expectStatus(await see("2999-01-01T00:00:00.000Z"), 204);
    expect(Date.parse(String((await read(ben.token))["seen_at"]))).toBeLessThan(Date.parse("2900-01-01"));
    expectStatus(await see("yesterday"), 400);
  });

  it("is that of one project for a token that is bound to it", async () => {
    const pid = await opened();
    const { token } = await makeUserToken(service, { project_id: pid });
    const { entries } = await read(token);
    expect(entries).toMatchObject([{ kind: "change_request.opened", project: { id: pid } }]);
  });
});

const listTriggers = async (query = "", token = service.token) =>
  expectStatus(await service.request("GET", `/v1/triggers${query}`, { token }), 200);
const CRON = '[[triggers]]\nslug = "nightly"\ntype = "cron"\ncron = "0 30 2 * * *"\nprompt = "Go"\n';

describe("the triggers of all projects", () => {
  it("are listed by project, without projects that have none or are archived", async () => {
    const first = await makeProject(service, {
      files: { "platform.toml": `${CRON}${webhookEntry("push", "Go")}` },
    });
    const archived = await makeProject(service, { files: { "platform.toml": CRON } });
    await service.request("PATCH", `/v1/projects/${archived}`, { body: { status: "archived" } });
    await makeProject(service, { files: {} });
    const broken = await makeProject(service, { files: { "platform.toml": '[[triggers]]\nslug = "x"\n' } });
    await service.request("PATCH", `/v1/projects/${first}`, { body: { triggers_paused: true } });
    const projects = listOf(await listTriggers(), "projects").filter(
      ({ id }) => id === first || id === broken,
    );
    expect(listOf(await listTriggers(), "projects").map(({ id }) => id)).not.toContain(archived);
    expect(projects).toMatchObject([
      { id: broken, triggers: [], stale: false, triggers_paused: false },
      {
        id: first,
        errors: 0,
        triggers_paused: true,
        triggers: [
          { slug: "nightly", type: "cron", cron: "0 30 2 * * *", next_fire_at: null, last_fire: null },
          { slug: "push", type: "webhook" },
        ],
      },
    ]);
    expect(projects[0]?.["errors"]).toBeGreaterThan(0);
    expect(JSON.stringify(projects)).not.toContain('"prompt"');
  });

  it("come page by page, and only of projects that the reader sees", async () => {
    const files = { "platform.toml": CRON };
    const [older, newer] = [await makeProject(service, { files }), await makeProject(service, { files })];
    await service.request("PATCH", `/v1/projects/${newer}`, { body: { default_role: null } });
    const page = await listTriggers("?limit=1");
    expect(listOf(page, "projects").map(({ id }) => id)).toEqual([newer]);
    const next = await listTriggers(`?limit=1&cursor=${String(fields(page)["next_cursor"])}`);
    expect(listOf(next, "projects").map(({ id }) => id)).toEqual([older]);
    const ofBen = listOf(await listTriggers("?limit=1", ben.token), "projects");
    expect(ofBen.map(({ id }) => id)).toEqual([older]);
  });
});

/** Triggers through the API: the listing beside its errors, fires by hand, previews, the ledger (api.md 4, spec.md 4.4). */
import { mkdtempSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  commitFiles,
  deliver,
  expectStatus,
  fields,
  listOf,
  makeProject,
  pushFiles,
  putSecret,
  reached,
  sandboxEnvironment,
  SECRET,
  SECRET_NAME,
  webhookEntry,
  type Fields,
  type Files,
} from "../../support/service/requests.ts";

const CRON = `[[triggers]]
slug = "nightly"
type = "cron"
cron = "0 30 2 * * *"
timezone = "Europe/Berlin"
prompt = "{{ cron.schedule }}|{{ cron.timezone }}|{{ cron.fired_at }}|{{ cron.last_fired_at }}|{{ body.x }}"
`;
const MANUAL = `{{ trigger.slug }}|{{ trigger.type }}|{{ trigger.kind }}|{{ source }}|{{ message.text }}|{{ message.source }}`;
const MANIFEST = [
  webhookEntry("push", MANUAL, 'name = "On push"\ntitle = "Say {{ message.text }}"'),
  CRON,
  webhookEntry("off", "Go", "enabled = false"),
  `[[triggers]]\nslug = "Bad Slug"\ntype = "webhook"\nprompt = "x"\nsecret_env = "S"\n`,
  `[[triggers]]\nslug = "no-secret"\ntype = "webhook"\nprompt = "x"\n`,
  `[[triggers]]\nslug = "five"\ntype = "cron"\ncron = "0 0 2 * *"\nprompt = "x"\n`,
  webhookEntry("push", "second of its name"),
  webhookEntry("lost-agent", "x", 'agent = "unknown"'),
].join("\n");

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, { files: { "platform.toml": MANIFEST } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
});
afterAll(() => service.close());

const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];
const at = (rest: string, project = pid): string => `/v1/projects/${project}${rest}`;
const post = (rest: string, body: unknown, project = pid): Promise<Answer> =>
  service.request("POST", at(rest, project), { body });
const listing = async (project = pid): Promise<Fields> =>
  fields(await service.request("GET", at("/triggers", project)));
const remoteOf = (project: string): string =>
  `http://x:${service.token}@127.0.0.1:${service.port}/v1/git/${project}.git`;
const triggersOf = (list: Fields): readonly Fields[] => list["triggers"] as Fields[];
const errorsOf = (list: Fields): readonly Fields[] => list["errors"] as Fields[];

/** Moves the cursor of a trigger. @returns where it was. */
const setAccounted = (to: Date) =>
  service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const [row] = yield* sql<{ readonly former: number }>`
        SELECT accounted_until AS former FROM trigger_cursors WHERE project_id = ${pid} AND slug = 'nightly'`;
      yield* sql`
        UPDATE trigger_cursors SET accounted_until = ${to} WHERE project_id = ${pid} AND slug = 'nightly'`;
      return new Date(row?.former ?? 0);
    }),
  );

describe("the listing", () => {
  it("contains the good entries beside the errors of the others", async () => {
    const list = await listing();
    expect(triggersOf(list).map(({ slug }) => slug)).toEqual(["push", "nightly", "off"]);
    expect(triggersOf(list)[0]).toEqual({
      slug: "push",
      name: "On push",
      title: "Say {{ message.text }}",
      type: "webhook",
      agent: "default",
      enabled: true,
      prompt: MANUAL,
      secret_env: SECRET_NAME,
      webhook_url: `${service.url}/v1/webhooks/projects/${pid}/push`,
      last_fired_at: null,
      next_fire_at: null,
      upcoming: [],
      last_fire: null,
    });
    expect(errorsOf(list).map(({ index }) => index)).toEqual([3, 4, 5, 6, 7]);
    for (const error of errorsOf(list)) {
      expect(error).toEqual({
        slug: error["slug"],
        index: expect.any(Number),
        path: expect.stringMatching(/^triggers\[\d\]/),
        message: expect.stringMatching(/.+/),
        line: expect.any(Number),
      });
    }
    expect(list["manifest"]).toMatchObject({ commit: expect.stringMatching(/^[0-9a-f]{40}$/), stale: false });
    expect(list["scheduler"]).toEqual({ ticked_at: expect.any(String), late: false });
  });

  it("shows a cron trigger's next five instants, in its zone, in the future", async () => {
    const nightly = triggersOf(await listing()).find(({ slug }) => slug === "nightly");
    const upcoming = nightly?.["upcoming"] as readonly string[];
    expect(nightly).toMatchObject({
      cron: "0 30 2 * * *",
      timezone: "Europe/Berlin",
      next_fire_at: upcoming[0],
    });
    expect(upcoming).toHaveLength(5);
    expect(upcoming.toSorted()).toEqual(upcoming);
    const berlin = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Berlin", timeStyle: "medium" });
    expect(new Set(upcoming.map((instant) => berlin.format(new Date(instant))))).toEqual(
      new Set(["02:30:00"]),
    );
  });

  it("shows no instant as the next one that already has its row: a clock may have been set back [C14]", async () => {
    const accounted = new Date("2126-11-21T12:00:00Z");
    const former = await vi.waitFor(async () => {
      const found = await setAccounted(accounted);
      expect(found.getTime()).toBeGreaterThan(0);
      return found;
    });
    const nightly = triggersOf(await listing()).find(({ slug }) => slug === "nightly");
    expect(nightly?.["next_fire_at"]).toBe("2126-11-22T01:30:00.000Z");
    await setAccounted(former);
  });

  it("has no next instant while its project is paused", async () => {
    await service.request("PATCH", at(""), { body: { triggers_paused: true } });
    const list = await listing();
    expect([list["triggers_paused"], triggersOf(list).map(({ next_fire_at: next }) => next)]).toEqual([
      true,
      [null, null, null],
    ]);
    await service.request("PATCH", at(""), { body: { triggers_paused: false } });
  });

  it("keeps the last good triggers if a newer manifest does not parse, and says so", async () => {
    const project = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
    await putSecret(service, project, SECRET_NAME, SECRET);
    const directory = `${service.importRoot}/stale`;
    await gitOk(service.importRoot, "clone", "--quiet", remoteOf(project), directory);
    await commitFiles(directory, { "platform.toml": `a = 1\n[triggers]\nslug = "x"\n` });
    await gitOk(directory, "push", "--quiet", "origin", "HEAD:refs/heads/broken");
    await service.request("PATCH", at("", project), { body: { default_branch: "broken" } });
    const list = fields(expectStatus(await post("/sync", undefined, project), 200));
    expect(triggersOf(list).map(({ slug }) => slug)).toEqual(["push"]);
    expect(list["manifest"]).toMatchObject({ stale: true });
    expect(errorsOf(list)).toMatchObject([{ message: expect.stringContaining("[[triggers]]") }]);
    expect((await deliver(service, `${project}/push`)).status).toBe(202);
    const read = fields(await service.request("GET", at("", project)));
    expect((read["manifest"] as Fields)["error"]).toEqual(expect.any(String));
  });
});

const slugs = (list: Fields) => triggersOf(list).map(({ slug }) => slug);
const hookProject = async (files: Files) => {
  const project = await makeProject(service, { files });
  await putSecret(service, project, SECRET_NAME, SECRET);
  return project;
};

describe("a default branch that is moved", () => {
  it("to a commit without a manifest disables all triggers that were listed before [M18]", async () => {
    const project = await hookProject({ "platform.toml": webhookEntry("push") });
    expect(slugs(await listing(project))).toEqual(["push"]);
    const directory = mkdtempSync(path.join(service.importRoot, "bare-"));
    await gitOk(directory, "clone", "--quiet", remoteOf(project), ".");
    await gitOk(directory, "rm", "--quiet", "platform.toml");
    await gitOk(directory, "commit", "--quiet", "-m", "Remove the manifest");
    await gitOk(directory, "push", "--quiet", "origin", "HEAD:refs/heads/bare");
    await service.request("PATCH", at("", project), { body: { default_branch: "bare" } });
    expect(seen(await post("/triggers/push/fire", {}, project))).toEqual([404, "not_found"]);
    expect(seen(await deliver(service, `${project}/push`))).toEqual([404, "not_found"]);
    expect(await listing(project)).toMatchObject({ triggers: [], errors: [], manifest: { stale: false } });
    expect(listOf(await service.request("GET", at("/fires", project)), "fires")).toEqual([]);
  });

  it("back to an old manifest, by force and from outside, has the old triggers and their last fire [M19]", async () => {
    const project = await hookProject({ "platform.toml": webhookEntry("push", "first") });
    await deliver(service, `${project}/push`);
    const [before] = triggersOf(await listing(project));
    expect(before?.["last_fired_at"]).toEqual(expect.any(String));

    const repository = path.join(service.dataDir, "repositories", `${project}.git`);
    const old = await gitOk(repository, "rev-parse", "refs/heads/main");
    await pushFiles(service, project, { branch: "new", files: { "platform.toml": webhookEntry("other") } });
    await gitOk(repository, "update-ref", "refs/heads/main", "refs/heads/new");
    expect(slugs(fields(await post("/sync", undefined, project)))).toEqual(["other"]);
    expect((await deliver(service, `${project}/push`)).status).toBe(404);
    expect((await deliver(service, `${project}/other`)).status).toBe(202);

    await gitOk(repository, "update-ref", "refs/heads/main", old);
    const [after, ...others] = triggersOf(fields(await post("/sync", undefined, project)));
    expect([after, others]).toEqual([before, []]);
    expect((await deliver(service, `${project}/other`)).status).toBe(404);
    const sid = String(fields(await deliver(service, `${project}/push`))["session_id"]);
    const session = fields(await service.request("GET", at(`/sessions/${sid}`, project)));
    expect(session["initial_prompt"]).toBe("first");
  });
});

const promptOf = async (answer: Answer): Promise<unknown> => {
  const sid = fields(expectStatus(answer, 202))["session_id"];
  return fields(await service.request("GET", at(`/sessions/${sid}`)))["initial_prompt"];
};

describe("a manual fire", () => {
  it("starts a session with its prompt, on the ledger, and moves last_fired_at", async () => {
    const answer = await post("/triggers/push/fire", { text: "hello {{ source }}", source: "chat" });
    expect(await promptOf(answer)).toBe("push|webhook|git|manual|hello {{ source }}|chat");
    const sid = String(fields(answer)["session_id"]);
    const session = await reached(service, pid, sid, "running");
    const [fire] = listOf(await service.request("GET", at("/fires?slug=push&limit=1")), "fires");
    expect(fire).toEqual({
      id: session["fire_id"],
      trigger_slug: "push",
      kind: "manual",
      status: "fired",
      reason: null,
      scheduled_for: null,
      received_at: expect.any(String),
      delivery_id: null,
      session_id: sid,
      outcome: { state: expect.any(String), code: null },
      session_name: "Say hello {{ source }}",
      started_by: "admin",
      attempts: 1,
      replay_of: null,
      duplicate_of: null,
      verified_with: null,
    });
    expect(session).toMatchObject({
      trigger_slug: "push",
      name: "Say hello {{ source }}",
      agent_name: "default",
    });
    const push = triggersOf(await listing())[0];
    expect(push).toMatchObject({
      last_fire: { id: fire?.["id"], status: "fired", outcome: { state: expect.any(String), code: null } },
      last_fired_at: expect.any(String),
    });
    const environment = await sandboxEnvironment(service, sid);
    expect(environment).toMatchObject({
      PLATFORM_INITIAL_PROMPT: session["initial_prompt"],
      PLATFORM_BOOTSTRAP_AGENT_SESSION: "1",
    });
  });

  it.each(["off", "nightly"])("works on %s, which has no event source", async (slug) => {
    expect((await post(`/triggers/${slug}/fire`, {})).status).toBe(202);
  });

  it("of a schedule has the time of the run and of the last fire, and its session has the day", async () => {
    expectStatus(await post("/triggers/nightly/fire", {}), 202);
    const answer = await post("/triggers/nightly/fire", {});
    const instant = String.raw`\|\d{4}-\d\d-\d\dT[\d:.]+Z`;
    expect(await promptOf(answer)).toMatch(
      new RegExp(String.raw`^0 30 2 \* \* \*\|Europe/Berlin${instant}${instant}\|$`),
    );
    const sid = String(fields(answer)["session_id"]);
    expect(fields(await service.request("GET", at(`/sessions/${sid}`)))["name"]).toMatch(
      /^nightly, \d{4}-\d\d-\d\d$/,
    );
  });

  it("works while the project's triggers are paused", async () => {
    await service.request("PATCH", at(""), { body: { triggers_paused: true } });
    expect(await promptOf(await post("/triggers/push/fire", {}))).toBe("push|webhook|git|manual||");
    await service.request("PATCH", at(""), { body: { triggers_paused: false } });
  });

  it("gives its session a user's power, and a webhook gives the least", async () => {
    const byHand = String(fields(await post("/triggers/push/fire", {}))["session_id"]);
    const byHook = String(fields(await deliver(service, `${pid}/push`))["session_id"]);
    const powers: unknown[] = [];
    for (const sid of [byHand, byHook]) {
      await reached(service, pid, sid, "running");
      const token = (await sandboxEnvironment(service, sid))["PLATFORM_CLI_TOKEN"] ?? "";
      powers.push((await service.request("POST", at("/sessions"), { body: {}, token })).status);
    }
    expect(powers).toEqual([201, 403]);
  });

  it("of an unknown trigger is 404, with a wrong body 400", async () => {
    for (const slug of ["none", "no-secret", "Bad%20Slug"]) {
      expect(seen(await post(`/triggers/${slug}/fire`, {}))).toEqual([404, "not_found"]);
    }
    for (const body of [{ text: 1 }, { more: "x" }, { text: "a\0b" }, { source: "x".repeat(201) }, []]) {
      expect(seen(await post("/triggers/push/fire", body))).toEqual([400, "invalid_request"]);
    }
  });

  it("whose prompt renders to no text is 422 and on the ledger", async () => {
    const project = await makeProject(service, {
      files: { "platform.toml": webhookEntry("blank", " {{ message.text }} ") },
    });
    const answer = await post("/triggers/blank/fire", {}, project);
    expect(seen(answer)).toEqual([422, "prompt_empty"]);
    const fires = listOf(await service.request("GET", at("/fires", project)), "fires");
    expect(fires).toMatchObject([{ status: "failed", reason: "prompt_empty", session_id: null }]);
  });
});

const preview = async (slug: string, body: Fields): Promise<Fields> =>
  fields(expectStatus(await post(`/triggers/${slug}/preview`, body), 200));

describe("a preview", () => {
  it("renders like a real fire, and starts nothing", async () => {
    const before = listOf(await service.request("GET", at("/fires?limit=200")), "fires").length;
    const manual = await preview("push", { kind: "manual", text: "t", source: "s" });
    expect(manual["prompt"]).toBe("push|webhook|git|manual|t|s");
    const cron = await preview("nightly", { kind: "cron", at: "2027-01-01T00:00:00.000Z" });
    expect(String(cron["prompt"])).toMatch(
      /^0 30 2 \* \* \*\|Europe\/Berlin\|2027-01-01T00:00:00.000Z\|.*\|$/,
    );
    const webhook = await preview("off", {
      kind: "webhook",
      body: { a: [1] },
      headers: { "user-agent": "u" },
    });
    expect(webhook["variables"]).toMatchObject({ body: { a: [1] }, headers: { user_agent: "u" } });
    expect(listOf(await service.request("GET", at("/fires?limit=200")), "fires")).toHaveLength(before);
  });

  it("refuses input that is not a fire of that trigger", async () => {
    const deep = JSON.parse("[".repeat(3_000) + "]".repeat(3_000)) as unknown;
    for (const body of [
      {},
      { kind: "other" },
      { kind: "manual", at: "never" },
      { kind: "webhook", body: deep },
      // The limits of a manual fire.
      { kind: "manual", text: "x".repeat(64 * 1024 + 1) },
      { kind: "manual", source: "x".repeat(201) },
    ]) {
      expect(seen(await post("/triggers/push/preview", body))).toEqual([400, "invalid_request"]);
    }
    expect(seen(await post("/triggers/push/preview", { kind: "cron" }))).toEqual([400, "invalid_request"]);
    expect(seen(await post("/triggers/none/preview", { kind: "manual" }))).toEqual([404, "not_found"]);
  });
});

/** What becomes of webhooks at the cap, sent twice, or too many (api.md 4 "Queue", "Webhook" duplicates). */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";
import {
  deliver,
  eventually,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeHookProject,
  runSession,
  stopSession,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

const CAP = 2;
const QUEUE_MAX = 4;

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService({
    PLATFORM_TIER_CAPS: JSON.stringify({ free: CAP }),
    PLATFORM_QUEUE_MAX: String(QUEUE_MAX),
  });
  busyProject = await makeHookProject(service);
});
afterAll(() => service.close());

const sessionsOf = async (project: string, query = ""): Promise<readonly Fields[]> =>
  listOf(await service.request("GET", `/v1/projects/${project}/sessions?limit=200${query}`), "sessions");

const firesOf = async (project: string, query = ""): Promise<readonly Fields[]> =>
  listOf(await service.request("GET", `/v1/projects/${project}/fires?limit=200${query}`), "fires");

const queue = async (): Promise<readonly Fields[]> =>
  listOf(await service.request("GET", "/v1/queue"), "queue");

const account = async (): Promise<Fields> =>
  fields(await service.request("GET", "/v1/me"))["account"] as Fields;

/** A project with the trigger `push`, and as many running sessions as the cap allows in a project beside it. */
let busy: string[] = [];
let busyProject = "";
const fillUp = async (): Promise<void> => {
  busy = await Promise.all(Array.from({ length: CAP }, () => runSession(service, busyProject)));
};

/** Frees every slot and empties the queue: what waits starts and is stopped until nothing waits. */
const emptyOut = () =>
  eventually(async () => {
    for (const project of [pid, busyProject]) {
      const all = await sessionsOf(project);
      const live = all.filter(({ status }) => status === "provisioning" || status === "running");
      await Promise.all(live.map(({ id }) => stopSession(service, project, String(id))));
    }
    expect(await account()).toMatchObject({ active_sessions: 0, queued_fires: 0 });
  });

beforeEach(async () => {
  pid = await makeHookProject(service, webhookEntry("push", "{{ body.n }}"));
});
afterEach(() => emptyOut());

const push = (n: number, delivery?: string): Promise<Answer> =>
  deliver(service, `${pid}/push`, {
    body: JSON.stringify({ n }),
    headers: delivery === undefined ? {} : { "x-platform-delivery": delivery },
  });

const pushWith = (headers: Readonly<Record<string, string>>): Promise<Answer> =>
  deliver(service, `${pid}/push`, { headers, body: { n: 1 } });

describe("a repeated delivery", () => {
  it("fifty times at once starts one session, and all answers have the same id [W33]", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => push(1, "once")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    expect(new Set(answers.map((answer) => fields(answer)["session_id"])).size).toBe(1);
    expect(answers.filter((answer) => fields(answer)["duplicate"] === true)).toHaveLength(49);
    expect(await sessionsOf(pid)).toHaveLength(1);
    const rows = await firesOf(pid);
    expect(rows.filter(({ status }) => status !== "duplicate")).toMatchObject([
      { status: "fired", delivery_id: "once", kind: "webhook", trigger_slug: "push" },
    ]);
  });

  it("without an id is another delivery [W34]", async () => {
    const answers = [await push(1), await push(1)];
    const ids = answers.map((answer) => fields(expectStatus(answer, 202))["session_id"]);
    expect(new Set(ids).size).toBe(2);
  });

  it("is recognised by the first of its headers with a value", async () => {
    const names = ["x-platform-delivery", "x-github-delivery", "webhook-id", "x-gitlab-event-uuid"];
    const answers: Fields[] = [];
    for (const name of names) {
      // oxlint-disable-next-line no-await-in-loop -- one delivery after the other
      const first = fields(await pushWith({ [name]: name }));
      // oxlint-disable-next-line no-await-in-loop
      expect(fields(await pushWith({ [name]: name }))).toMatchObject({ ...first, duplicate: true });
      answers.push(first);
    }
    expect(answers.map(({ duplicate }) => duplicate)).toEqual(names.map(() => undefined));
    const [platform = "", github = ""] = names;
    const both = await pushWith({ [platform]: platform, [github]: "another" });
    const empty = await pushWith({ [platform]: "", [github]: github });
    expect([both, empty].map((answer) => fields(answer)["duplicate"])).toEqual([true, true]);
  });

  it("is distinguished by the end of a long id as well", async () => {
    const long = "x".repeat(300);
    const first = fields(await push(1, `${long}1`));
    expect(fields(await push(1, `${long}2`))["session_id"]).not.toBe(first["session_id"]);
    expect(fields(await push(1, `${long}1`))).toMatchObject({ ...first, duplicate: true });
  });

  it("that waits is answered as waiting, and with its session once it has one", async () => {
    await fillUp();
    const queued = { status: "queued", reason: "account_session_cap" };
    expect(fields(await push(1, "waits"))).toEqual(queued);
    expect(fields(await push(1, "waits"))).toMatchObject({ ...queued, duplicate: true });
    expect(await queue()).toHaveLength(1);
    await stopSession(service, busyProject, busy[0] ?? "");
    await eventually(async () => {
      const [session] = await sessionsOf(pid);
      expect(fields(await push(1, "waits"))).toMatchObject({
        status: "fired",
        session_id: session?.["id"],
        duplicate: true,
      });
    });
  });
});

describe("at the cap", () => {
  it("a webhook is queued before it is answered, and listed in its start order [W35]", async () => {
    await fillUp();
    for (const n of [1, 2, 3]) {
      const answer = await push(n, `d${n}`);
      expect([answer.status, fields(answer)]).toEqual([
        202,
        { status: "queued", reason: "account_session_cap" },
      ]);
      const rows = await firesOf(pid, "&status=queued");
      expect(rows[0]).toMatchObject({ delivery_id: `d${n}`, session_id: null });
    }
    const waiting = await queue();
    expect(waiting.map(({ position }) => position)).toEqual([1, 2, 3]);
    expect(waiting.map(({ trigger_slug: slug, project_id: project }) => [slug, project])).toEqual(
      Array.from({ length: 3 }, () => ["push", pid]),
    );
    expect(await account()).toMatchObject({ active_sessions: CAP, queued_fires: 3, session_cap: CAP });
  });

  it("a full queue refuses before it accepts: 503 with Retry-After, and no row [W35]", async () => {
    await fillUp();
    for (let n = 1; n <= QUEUE_MAX; n += 1) expectStatus(await push(n), 202);
    const answer = await push(99, randomUUID());
    expect([answer.status, fields(answer)["code"]]).toEqual([503, "queue_full"]);
    expect(answer.headers["retry-after"]).toMatch(/^\d+$/);
    expect(await firesOf(pid)).toHaveLength(QUEUE_MAX);
  });

  it("a user's fire is refused, with the number of running sessions", async () => {
    await fillUp();
    const answer = await service.request("POST", `/v1/projects/${pid}/triggers/push/fire`, { body: {} });
    expect([answer.status, fields(answer)]).toMatchObject([
      429,
      { code: "session_cap_reached", details: { limit: CAP, active_sessions: CAP } },
    ]);
    expect(await queue()).toEqual([]);
  });
});

const askFor = (body: Fields = {}, queued = "true"): Promise<Answer> =>
  service.request("POST", `/v1/projects/${pid}/sessions?queue=${queued}`, { body });
const fireNow = async (id: unknown): Promise<Fields> =>
  fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/fires/${String(id)}`), 200));

describe("a person's request with ?queue=true", () => {
  it("starts below the cap, and waits at it until a session ends", async () => {
    expectStatus(await askFor(), 201);
    await emptyOut();
    await fillUp();
    expect((await askFor({}, "false")).status).toBe(429);
    expectStatus(await push(1), 202);
    const answer = expectStatus(await askFor({ initial_prompt: "Tidy up.\nAll of it.", name: "Tidy" }), 202);
    expect(fields(answer)).toEqual({
      status: "queued",
      queue_id: expect.any(String),
      position: 2,
      expires_at: expect.any(String),
    });
    const id = fields(answer)["queue_id"];
    expect((await queue())[1]).toMatchObject({
      fire_id: id,
      kind: "session",
      trigger_slug: null,
      title: "Tidy",
      person: { name: expect.any(String) },
    });
    expect(await fireNow(id)).toMatchObject({
      status: "queued",
      position: 2,
      prompt: "Tidy up.\nAll of it.",
    });
    // It is no run of a trigger.
    expect(await firesOf(pid)).toHaveLength(1);
    for (const session of busy.slice(0, 2)) await stopSession(service, busyProject, session);
    const started = await eventually(async () => {
      const now = await fireNow(id);
      expect(now).toMatchObject({ status: "fired", position: null });
      return String(now["session_id"]);
    });
    expect(fields(await service.request("GET", `/v1/projects/${pid}/sessions/${started}`))).toMatchObject({
      name: "Tidy",
      initial_prompt: "Tidy up.\nAll of it.",
      trigger_slug: null,
      fire_id: id,
      person: { name: expect.any(String) },
    });
    const replay = await service.request("POST", `/v1/projects/${pid}/fires/${String(id)}/replay`);
    expect([replay.status, fields(replay)["code"]]).toEqual([409, "no_trigger"]);
  });

  it("can be cancelled by the one who asked once she is a viewer, and by no other viewer", async () => {
    await fillUp();
    const [eve, otto] = [await invitePerson(service, "Eve"), await invitePerson(service, "Otto")];
    const target = `/v1/projects/${pid}`;
    const asked = await service.request("POST", `${target}/sessions?queue=true`, {
      body: {},
      token: eve.token,
    });
    const id = String(fields(expectStatus(asked, 202))["queue_id"]);
    expectStatus(await service.request("PATCH", target, { body: { default_role: "viewer" } }), 200);
    const cancel = (token: string) => service.request("DELETE", `${target}/fires/${id}`, { token });
    expectStatus(await cancel(otto.token), 403);
    expectStatus(await cancel(eve.token), 204);
  });

  it("waits with its files, and its session begins with a message that has them", async () => {
    const upload = async (name: string): Promise<string> => {
      const target = `/v1/projects/${pid}/attachments?name=${name}`;
      const body = `content of ${name}`;
      return String(fields(expectStatus(await service.request("POST", target, { body }), 201))["id"]);
    };
    await fillUp();
    const attachments = [await upload("a.txt"), await upload("b.txt")];
    const wish = { initial_prompt: "Read both.\nThen go.", attachments };
    const id = fields(expectStatus(await askFor(wish), 202))["queue_id"];
    expect((await queue())[0]).toMatchObject({ fire_id: id, title: "Read both.", files: 2 });
    expect(await fireNow(id)).toMatchObject({ prompt: "Read both.\nThen go." });
    await stopSession(service, busyProject, busy[0] ?? "");
    const sid = await eventually(async () => {
      const now = await fireNow(id);
      expect(now).toMatchObject({ status: "fired" });
      return String(now["session_id"]);
    });
    const session = `/v1/projects/${pid}/sessions/${sid}`;
    const first = await eventually(async () => {
      const items = listOf(await service.request("GET", `${session}/conversation`), "items");
      expect(items).toHaveLength(1);
      return items[0];
    });
    expect(first).toMatchObject({
      author: { kind: "user" },
      content: [
        { type: "text", text: "Read both.\nThen go." },
        { type: "file", name: "a.txt", attachment_id: attachments[0] },
        { type: "file", name: "b.txt", attachment_id: attachments[1] },
      ],
    });
    expect(fields(await service.request("GET", session))).toMatchObject({
      name: "Read both.",
      initial_prompt: null,
    });
    const file = await service.request("GET", `${session}/attachments/${attachments[0]}`);
    expect(file.text).toBe("content of a.txt");
    // A file starts one session.
    expect((await askFor(wish)).status).toBe(400);
  });

  it("is cancelled as a fire is, and gets 503 from a full queue", async () => {
    await fillUp();
    const id = String(fields(expectStatus(await askFor(), 202))["queue_id"]);
    expectStatus(await service.request("DELETE", `/v1/projects/${pid}/fires/${id}`), 204);
    expect(await fireNow(id)).toMatchObject({ status: "cancelled", reason: "requested", session_id: null });
    for (let n = 1; n <= QUEUE_MAX; n += 1) expectStatus(await askFor(), 202);
    const answer = await askFor();
    expect([answer.status, fields(answer)["code"]]).toEqual([503, "queue_full"]);
    expect(answer.headers["retry-after"]).toMatch(/^\d+$/);
  });
});

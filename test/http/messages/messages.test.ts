/** What people say to the agent of a session (api.md 3, messages). The agent is scripted. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  deliver,
  errorCode,
  eventually,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeAccount,
  makeHookProject,
  makeProject,
  makeUserToken,
  putSecret,
  reached,
  refusal,
  runSession,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";
import { PLAN_APPROVED } from "../../../src/domain/conversation/steering.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { nativeItem } from "../../support/world/conversations.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeHookProject(service);
});
afterAll(() => service.close());
beforeEach(() => {
  service.daemon.steering.forget();
});

const target = (sid: string, rest: string, project = pid) =>
  `/v1/projects/${project}/sessions/${sid}/${rest}`;
const post = (sid: string, body: Fields, token?: string) =>
  service.request("POST", target(sid, "messages"), { body, ...(token !== undefined && { token }) });
const posted = async (sid: string, text: string, more: Fields = {}) => {
  const id = randomUUID();
  const answer = expectStatus(await post(sid, { id, text, ...more }), 201);
  return fields(answer)["message"] as Fields;
};
const conversationOf = async (sid: string) =>
  fields(expectStatus(await service.request("GET", target(sid, "conversation")), 200));
const statusOf = async (sid: string, id: unknown) => {
  const { items } = await conversationOf(sid);
  return (items as readonly Fields[]).find((item) => item["id"] === id)?.["status"];
};
const queueOf = async (sid: string) =>
  ((await conversationOf(sid))["queue"] as readonly Fields[]).map(({ id }) => id);
/** Lets a request get under way: it comes before three others. */
const underWay = async (sid: string) => {
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  for (let call = 0; call < 3; call += 1) await conversationOf(sid);
};
const handedTexts = () => service.daemon.steering.handed.map(({ text }) => text);

let rev = 100;
/** The runtime of the session rests, works, or asks. */
const report = (
  sid: string,
  state: "idle" | "running" | "requires_action",
  ended: number,
  more: { readonly waiting_for?: string; readonly rests?: true } = {},
) => {
  rev += 1;
  const turn = { state, waiting_for: null, ...more };
  service.daemon.conversation.say(sid, { type: "turn", turn, ended, rev });
};
const resting = async () => {
  const sid = await runSession(service, pid);
  report(sid, "idle", 0);
  return sid;
};
/** A session whose agent works on its first turn, as the service knows. */
const working = async () => {
  const sid = await resting();
  const { id } = await posted(sid, "Begin.");
  await eventually(async () => expect(await statusOf(sid, id)).toBe("accepted"));
  report(sid, "running", 0);
  return sid;
};
/** The agent's runtime asks something. */
const ask = (sid: string, request: Fields) => {
  rev += 1;
  service.daemon.conversation.say(sid, {
    type: "item",
    item: nativeItem("ask", rev, {
      kind: "request",
      status: "running",
      content: [],
      completed_at: null,
      request: { kind: "permission", title: "bash", patterns: ["git push"], questions: [], ...request },
    }),
  });
};
/** The session's request, once it is shown. */
const shown = async (sid: string) => {
  const id = await eventually(async () => {
    const [open] = (await conversationOf(sid))["requests"] as readonly Fields[];
    expect(open).toBeDefined();
    return String(open?.["id"]);
  });
  return { sid, id, answer: target(sid, `requests/${id}/answer`) };
};
const asking = async (request: Fields) => {
  const sid = await runSession(service, pid);
  ask(sid, request);
  report(sid, "requires_action", 0);
  return shown(sid);
};
const question = {
  kind: "question",
  title: "Colour",
  questions: [{ title: "Colour", text: "Which?", options: [], multiple: false }],
} as const;

const plan = {
  kind: "plan",
  title: "",
  patterns: [],
  plan: { text: "1. Write a.", modes: ["build", "careful"].map((mode) => ({ id: mode, name: mode })) },
} as const;

/** A session whose agent's first turn has ended with a plan. */
const planned = async () => {
  const asked = await asking(plan);
  report(asked.sid, "requires_action", 1, { waiting_for: "ask", rests: true });
  await eventually(async () =>
    expect((await conversationOf(asked.sid))["state"]).toMatchObject({ waiting_for: asked.id }),
  );
  return asked;
};

describe("a message", () => {
  it("reaches an agent that rests, by its user, and is accepted", async () => {
    const sid = await resting();
    const message = await posted(sid, "Add a test.", {
      model: "platform/fast",
      agent: "build",
      effort: "high",
    });
    expect(message).toMatchObject({
      kind: "message",
      role: "user",
      author: { kind: "user" },
      content: [{ type: "text", text: "Add a test." }],
      model: "platform/fast",
      agent: "build",
      effort: "high",
    });
    await eventually(async () => expect(await statusOf(sid, message["id"])).toBe("accepted"));
    expect(service.daemon.steering.handed).toMatchObject([
      { id: message["id"], text: "Add a test.", model: "platform/fast", agent: "build", effort: "high" },
    ]);
  });

  it("waits while the agent works, and goes out at the turn's end, in order", async () => {
    const sid = await working();
    const [one, two] = [await posted(sid, "One."), await posted(sid, "Two.")];
    expect([one["status"], two["status"]]).toEqual(["queued", "queued"]);
    expect(await queueOf(sid)).toEqual([one["id"], two["id"]]);
    report(sid, "idle", 1);
    await eventually(() => expect(handedTexts()).toEqual(["Begin.", "One."]));
    report(sid, "idle", 2);
    await eventually(() => expect(handedTexts()).toEqual(["Begin.", "One.", "Two."]));
  });

  it("may be posted again with the same id and text, and is sent once", async () => {
    const sid = await working();
    const body = { id: randomUUID(), text: "Once." };
    const answers = await Promise.all([post(sid, body), post(sid, body), post(sid, body)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 201]);
    expect(refusal(await post(sid, { ...body, text: "Other." }))).toEqual([409, "id_taken"]);
    for (const other of [{ model: "a/b" }, { effort: "high" }])
      expect(refusal(await post(sid, { ...body, ...other }))).toEqual([409, "id_taken"]);
    report(sid, "idle", 1);
    await eventually(() => expect(handedTexts()).toEqual(["Begin.", "Once."]));
    expect(expectStatus(await post(sid, body), 200)).toBeDefined();
  });

  it("is refused if it is blank, too long, badly addressed, or contains a secret", async () => {
    const sid = await runSession(service, pid);
    const id = randomUUID();
    for (const wrong of [
      { id, text: "" },
      { id, text: " \n" },
      { id, text: "é".repeat(70_000) },
      { id: "1", text: "Go." },
      { id, text: "Go.", model: "fast" },
      { id, text: "Go.", agent: "../x" },
      { id, text: "Go.", effort: "Very High" },
      { id, text: "Go.", delivery: "now" },
      { id, text: "Go.", more: 1 },
    ])
      expect([wrong, (await post(sid, wrong)).status]).toEqual([wrong, 400]);
    await putSecret(service, pid, "API_KEY", "sk-very-secret");
    expect(refusal(await post(sid, { id, text: "Use sk-very-secret." }))).toEqual([422, "secret_in_message"]);
    expect(await queueOf(sid)).toEqual([]);
  });

  it("is refused when 20 wait", async () => {
    const sid = await working();
    for (let count = 0; count < 20; count += 1) await posted(sid, `Message ${count}`);
    expect(refusal(await post(sid, { id: randomUUID(), text: "One more." }))).toEqual([429, "queue_full"]);
  });

  it("cannot be cancelled if the agent had it, although it waits again after its sandbox was lost", async () => {
    const sid = await working();
    const { id } = await posted(sid, "Had already.");
    // The record knows it before the conversation's actor does.
    await service.inside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`UPDATE conversation_items SET status = 'accepted' WHERE id = ${String(id)}::uuid`,
      ),
    );
    const answer = await service.request("DELETE", target(sid, `messages/${String(id)}`));
    expect(refusal(answer)).toEqual([409, "already_sent"]);
    expect(await statusOf(sid, id)).toBe("accepted");
  });

  it("can be cancelled while it waits, and not later", async () => {
    const sid = await working();
    const { id } = await posted(sid, "Never mind.");
    const cancel = () => service.request("DELETE", target(sid, `messages/${String(id)}`));
    expect((await cancel()).status).toBe(204);
    expect((await cancel()).status).toBe(204);
    expect(await statusOf(sid, id)).toBe("cancelled");
    const [begin] = service.daemon.steering.handed;
    const sent = await service.request("DELETE", target(sid, `messages/${begin?.id ?? ""}`));
    expect(refusal(sent)).toEqual([409, "already_sent"]);
    expect((await service.request("DELETE", target(sid, `messages/${randomUUID()}`))).status).toBe(404);
  });

  it("restarts a session that has stopped, and waits for its new sandbox", async () => {
    const sid = await resting();
    await stopSession(service, pid, sid);
    const { id } = await posted(sid, "Go on.");
    await reached(service, pid, sid, "running");
    report(sid, "idle", 0);
    await eventually(async () => expect(await statusOf(sid, id)).toBe("accepted"));
  });

  it("during a stop waits for it, restarts the session once, and goes out then", async () => {
    const sid = await working();
    service.daemon.saves.closeUnsafe();
    const stopped = stopSession(service, pid, sid);
    await eventually(async () => expect(service.daemon.saving()).toBe(1));
    const { id } = await posted(sid, "Go on.");
    const { id: second } = await posted(sid, "And this.");
    expect(await queueOf(sid)).toEqual([id, second]);
    service.daemon.saves.openUnsafe();
    await stopped;
    await reached(service, pid, sid, "running");
    report(sid, "idle", 0);
    await eventually(async () => expect(await statusOf(sid, id)).toBe("accepted"));
    expect(handedTexts()).toEqual(["Begin.", "Go on."]);
    const audit = await service.request("GET", `/v1/projects/${pid}/audit?action=session.restart`);
    const rows = (fields(audit)["events"] as readonly Fields[]).filter(({ target: of }) => of === sid);
    expect(rows.map(({ outcome }) => outcome).toSorted()).toContain("done");
  });

  it("to a stopped session is not kept if the account has no free slot", async () => {
    const token = await makeAccount(service, 1);
    const project = await makeProject(service, { token });
    const at = (rest = "") => `/v1/projects/${project}/sessions${rest}`;
    const first = String(
      fields(expectStatus(await service.request("POST", at(), { token, body: {} }), 201))["id"],
    );
    await eventually(async () => {
      const row = fields(await service.request("GET", at(`/${first}`), { token }));
      expect(row["status"]).toBe("running");
    });
    expectStatus(await service.request("POST", at(`/${first}/stop`), { token }), 200);
    expectStatus(await service.request("POST", at(), { token, body: {} }), 201);
    const body = { id: randomUUID(), text: "Go on." };
    const refused = await service.request("POST", at(`/${first}/messages`), { token, body });
    expect(refusal(refused)).toEqual([429, "session_cap_reached"]);
    const read = fields(await service.request("GET", at(`/${first}/conversation`), { token }));
    expect(read["queue"]).toEqual([]);
  });
});

describe("an interrupt", () => {
  it("ends the turn, and holds the queue until a person says so", async () => {
    const sid = await working();
    const { id } = await posted(sid, "Next.");
    const interrupt = await service.request("POST", target(sid, "interrupt"), { body: {} });
    expect(fields(expectStatus(interrupt, 200))).toEqual({ interrupted: true });
    await eventually(() => expect(service.daemon.steering.interrupted).toEqual([1]));
    report(sid, "idle", 1);
    await eventually(async () => {
      expect(await conversationOf(sid)).toMatchObject({ queue_held: true, state: { state: "idle" } });
    });
    expect(await statusOf(sid, id)).toBe("queued");
    expectStatus(await service.request("POST", target(sid, "queue/resume"), { body: {} }), 204);
    await eventually(async () => expect(await statusOf(sid, id)).toBe("accepted"));
    expect(await conversationOf(sid)).toMatchObject({ queue_held: false });
  });

  it("ends a turn of which the actor hears later than the reader", async () => {
    const sid = await runSession(service, pid);
    await conversationOf(sid);
    await service.inside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`UPDATE conversations SET turn_state = 'running' WHERE session_id = ${sid}::uuid`,
      ),
    );
    const interrupt = service.request("POST", target(sid, "interrupt"), { body: {} });
    await underWay(sid);
    report(sid, "running", 0);
    expect(fields(expectStatus(await interrupt, 200))).toEqual({ interrupted: true });
    await eventually(() => expect(service.daemon.steering.interrupted).toEqual([1]));
  });

  it("of an agent that rests changes nothing", async () => {
    const sid = await resting();
    const interrupt = await service.request("POST", target(sid, "interrupt"), { body: {} });
    expect(fields(expectStatus(interrupt, 200))).toEqual({ interrupted: false });
  });

  it("by an urgent message puts it before the others", async () => {
    const sid = await working();
    await posted(sid, "Later.");
    await posted(sid, "At once.", { delivery: "interrupt" });
    await eventually(() => expect(service.daemon.steering.interrupted).toEqual([1]));
    report(sid, "idle", 1);
    await eventually(() => expect(handedTexts()).toEqual(["Begin.", "At once."]));
  });
});

describe("a request", () => {
  it("gets one answer: of two people at once one wins, and the other learns who did [D05]", async () => {
    const { id, sid, answer } = await asking({});
    const { token: ada } = await makeUserToken(service, { name: "Ada" });
    const answers = await Promise.all([
      service.request("POST", answer, { body: { choice: "once" } }),
      service.request("POST", answer, { body: { choice: "reject", message: "No." }, token: ada }),
    ]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    const won = answers.find(({ status }) => status === 200);
    const lost = answers.find(({ status }) => status === 409);
    const request = fields(won ?? answers[0])["request"] as Fields;
    expect(request).toMatchObject({ id, answer: { by: { kind: "user" } } });
    expect(errorCode(lost ?? answers[0])).toBe("request_settled");
    expect(fields(lost ?? answers[0])["details"]).toMatchObject({ answer: request["answer"] });
    await eventually(() => expect(service.daemon.steering.answered).toHaveLength(1));
    expect(service.daemon.steering.answered).toMatchObject([{ request_id: "ask" }]);
    expect(await conversationOf(sid)).toMatchObject({ state: { state: "requires_action" } });
  });

  it("takes its answer also where its actor hears of it later", async () => {
    const sid = await runSession(service, pid);
    ask(sid, {});
    // The actor hears of it with the turn.
    const { answer } = await shown(sid);
    const given = service.request("POST", answer, { body: { choice: "once" } });
    await underWay(sid);
    report(sid, "requires_action", 0);
    expectStatus(await given, 200);
    await eventually(() => expect(service.daemon.steering.answered).toMatchObject([{ request_id: "ask" }]));
  });

  it("needs an answer of its own kind, and another person's suspends own credentials [K20]", async () => {
    const { sid, answer } = await asking(question);
    const { token } = await invitePerson(service, "Ada");
    const refused = async (body: Fields) => (await service.request("POST", answer, { body })).status;
    expect(await refused({ choice: "once" })).toBe(400);
    expect(await refused({ answers: [] })).toBe(400);
    expect(await refused({ answers: [["Blue"], ["Red"]] })).toBe(400);
    expect(await refused({})).toBe(400);
    expectStatus(await service.request("POST", answer, { body: { answers: [["Blue"]] }, token }), 200);
    const { suspended } = fields(await service.request("GET", target(sid, "own-credentials")));
    expect(suspended).toMatchObject({ act: "answer", by: { name: "Ada" } });
    await eventually(() =>
      expect(service.daemon.steering.answered).toEqual([
        { request_id: "ask", answer: { answers: [["Blue"]] } },
      ]),
    );
  });

  it("takes no answer that contains a secret [D07]", async () => {
    await putSecret(service, pid, "DEPLOY_KEY", "dk-very-secret");
    const refused = async (at: string, body: Fields) => refusal(await service.request("POST", at, { body }));
    const permission = await asking({});
    const why = { choice: "reject", message: "Use dk-very-secret." };
    expect(await refused(permission.answer, why)).toEqual([422, "secret_in_message"]);
    const asked = await asking(question);
    const words = { answers: [["Blue", "or dk-very-secret"]] };
    expect(await refused(asked.answer, words)).toEqual([422, "secret_in_message"]);
    expect(service.daemon.steering.answered).toEqual([]);
    expectStatus(await service.request("POST", asked.answer, { body: { answers: [["Blue"]] } }), 200);
    await eventually(() => expect(service.daemon.steering.answered).toHaveLength(1));
  });

  it("of a trigger's session is declined at once, because it has no person [D10]", async () => {
    const sid = String(fields(expectStatus(await deliver(service, `${pid}/push`), 202))["session_id"]);
    await reached(service, pid, sid, "running");
    ask(sid, {});
    report(sid, "requires_action", 0);
    await eventually(() =>
      expect(service.daemon.steering.answered).toEqual([
        { request_id: "ask", answer: { declined: "unattended" } },
      ]),
    );
    const [request] = (await conversationOf(sid))["requests"] as readonly Fields[];
    expect(request).toMatchObject({ answer: { by: null, declined: "unattended" } });
  });

  it("whose session has ended says that a message answers it", async () => {
    const { sid, answer } = await planned();
    await stopSession(service, pid, sid);
    const late = await service.request("POST", answer, { body: { approve: true } });
    expect([late.status, fields(late)["error"]]).toEqual([
      409,
      "The agent's turn ended before an answer came. Answer with a message.",
    ]);
  });

  it("that is a plan begins a turn in the mode that its approval chose", async () => {
    const { sid, id, answer } = await planned();
    expect(fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`))).toMatchObject({
      activity: "needs_you",
      waits_for: { kind: "plan", id, text: "Write a." },
    });
    for (const body of [{ choice: "once" }, { answers: [["Yes"]] }, { approve: true, mode: "plan" }])
      expect((await service.request("POST", answer, { body })).status).toBe(400);
    const approve = { approve: true, mode: "careful" };
    expectStatus(await service.request("POST", answer, { body: approve }), 200);
    expect(refusal(await service.request("POST", answer, { body: approve }))).toEqual([
      409,
      "request_settled",
    ]);
    await eventually(() => {
      expect(service.daemon.steering.answered).toEqual([{ request_id: "ask", answer: approve }]);
      expect(service.daemon.steering.handed).toMatchObject([{ text: PLAN_APPROVED, agent: "careful" }]);
    });
    const [newest] = (await conversationOf(sid))["items"] as readonly Fields[];
    expect(newest).toMatchObject({ role: "user", author: { kind: "user" }, agent: "careful" });
  });

  it("that is a plan is not kept if its sandbox has just stopped and the account has no free slot", async () => {
    const token = await makeAccount(service, 1);
    const project = await makeProject(service, { token });
    const at = (rest = "") => `/v1/projects/${project}/sessions${rest}`;
    const call = (method: string, rest: string, body?: Fields) =>
      service.request(method, at(rest), { token, ...(body !== undefined && { body }) });
    const sid = String(fields(expectStatus(await call("POST", "", {}), 201))["id"]);
    const status = async () => fields(await call("GET", `/${sid}`))["status"];
    await eventually(async () => expect(await status()).toBe("running"));
    ask(sid, plan);
    report(sid, "requires_action", 1, { waiting_for: "ask", rests: true });
    const open = async () =>
      fields(await call("GET", `/${sid}/conversation`))["requests"] as readonly Fields[];
    await eventually(async () => expect(await open()).toHaveLength(1));
    const [{ id } = {}] = await open();
    expectStatus(await call("POST", `/${sid}/stop`), 200);
    await eventually(async () => expect(await status()).toBe("stopped"));
    expectStatus(await call("POST", "", {}), 201);
    // As it is before the conversation hears of the stop.
    await service.inside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`UPDATE conversation_items SET status = 'pending'
          WHERE session_id = ${sid}::uuid AND id = ${String(id)}::uuid`,
      ),
    );
    const refused = await call("POST", `/${sid}/requests/${String(id)}/answer`, { approve: true });
    expect(refusal(refused)).toEqual([429, "session_cap_reached"]);
    const read = fields(await call("GET", `/${sid}/conversation`));
    expect(read["queue"]).toEqual([]);
  });

  it("that is unknown, or another kind of item, is not found", async () => {
    const sid = await runSession(service, pid, { initial_prompt: "Begin." });
    for (const id of [randomUUID(), sid])
      expect(
        (await service.request("POST", target(sid, `requests/${id}/answer`), { body: { choice: "once" } }))
          .status,
      ).toBe(404);
  });
});

describe("what a session offers", () => {
  it("is told while it runs, with the service's price of a model", async () => {
    const price = { input: 3, cached: 0.3, output: 15 };
    const sonnet = { id: "anthropic/claude-sonnet-4-6", name: "Sonnet", context: 200_000 };
    const former = service.daemon.steering.offers;
    service.daemon.steering.offers = { ...former, models: [...former.models, sonnet] };
    const sid = await runSession(service, pid);
    const models = () => service.request("GET", target(sid, "models"));
    expect(listOf(await models(), "models")).toEqual([
      { id: "platform/fast", name: "Fast" },
      { ...sonnet, price },
    ]);
    service.daemon.steering.offers = former;
    await stopSession(service, pid, sid);
    expect(refusal(await models())).toEqual([409, "session_not_running"]);
  });
});

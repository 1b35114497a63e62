/** A person's notices about her own sessions by mail and in her chat, over the API and real servers. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import {
  errorCode,
  eventually,
  expectStatus,
  fields,
  invitePerson,
  issuesOf,
  makeProject,
  reached,
  type Fields,
} from "../support/service/requests.ts";
import { startTestService, type TestService } from "../support/service/service.ts";
import { TestMailServer } from "../support/servers/mail-server.ts";
import { answering, ReceiverServer } from "../support/servers/receiver.ts";
import { auditOf } from "./people/audit-rows.ts";

const OWN = "/v1/me/notices";

let service: TestService;
let mailServer: TestMailServer;
let chat: ReceiverServer;
let pid = "";
beforeAll(async () => {
  chat = await ReceiverServer.open();
  mailServer = await TestMailServer.open();
  service = await startTestService({
    PLATFORM_WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
    PLATFORM_PUBLIC_URL: "https://platform.example.org",
    PLATFORM_NAME: "Workshop",
    PLATFORM_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
    PLATFORM_MAIL_FROM: "Workshop <workshop@example.org>",
    PLATFORM_TIER_CAPS: '{"free": 1000}',
  });
});
beforeEach(async () => {
  chat.behaviour = answering(200, "ok");
  mailServer.replies.clear();
  pid = await makeProject(service, { name: `greeter ${randomUUID()}` });
});
afterAll(async () => {
  await service?.close();
  await mailServer?.close();
  await chat?.close();
});

/** A member of the project, with the address that a provider verified at her sign-in. */
const person = async (name: string) => {
  const { id, token } = await invitePerson(service, name, { roles: { [pid]: "member" } });
  const address = `${id}@example.org`;
  await service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* sql`
        INSERT INTO identities (id, issuer, subject, name, email, user_id, created_at)
        VALUES (${randomUUID()}, 'https://sso.example.org', ${id}, ${name}, ${address}, ${id}, now())`;
    }),
  );
  return { id, token, address };
};
const request = (method: string, rest: string, token: string, body?: Fields) =>
  service.request(method, `${OWN}${rest}`, { token, ...(body !== undefined && { body }) });
const set = async (place: "mail" | "chat", token: string, body: Fields): Promise<Fields> => {
  const all = fields(expectStatus(await request("PUT", `/${place}`, token, body), 200));
  return all[place] as Fields;
};
const own = async (token: string) =>
  fields(expectStatus(await request("GET", "", token), 200)) as Record<"mail" | "chat", Fields>;
const chatAt = (path: string, more: Fields = {}) => ({
  tells: ["finished"],
  format: "slack",
  url: `${chat.url}/${path}`,
  ...more,
});
const mailTo = (address: string) => mailServer.received.filter(({ to }) => to === address);

/** A running session of a person. */
const start = async (token: string, body: Fields = {}): Promise<string> => {
  const answer = await service.request("POST", `/v1/projects/${pid}/sessions`, { token, body });
  const sid = String(fields(expectStatus(answer, 201))["id"]);
  await reached(service, pid, sid, "running");
  return sid;
};

/** The agent of the session ends its turns. */
const endTurns = (sid: string, states: readonly ("completed" | "interrupted")[]) =>
  service.inside(
    Effect.gen(function* () {
      const sessions = yield* Sessions;
      const sandboxId = (yield* sessions.get(sid))?.sandboxId ?? "";
      for (const [index, state] of states.entries()) {
        const now = Date.UTC(2026, 10, 20, 12, index);
        const turn = { sandboxId, number: index + 1, state, error: null, now } as const;
        yield* sessions.noteTurn(sid, { ...turn, at: new Date(now).toISOString() });
      }
    }),
  );

describe("a person's own notices", () => {
  it("come by mail and in her chat once, for her own session, and to no other person", async () => {
    const [ann, ben] = [await person("Ann"), await person("Ben")];
    await set("mail", ann.token, { tells: ["finished"] });
    await set("chat", ann.token, chatAt(ann.id));
    await set("mail", ben.token, { tells: ["asked", "finished"] });
    const sid = await start(ann.token, { name: "Fix the build" });
    await endTurns(sid, ["interrupted", "completed"]);
    await eventually(() => {
      expect([mailTo(ann.address).length, chat.at(`/${ann.id}`).length]).toEqual([1, 1]);
    });
    // Events are read in their order: the end of Ben's own turn comes after all of Ann's.
    const his = await start(ben.token, { name: "Ben's" });
    await endTurns(his, ["completed"]);
    await eventually(() => expect(mailTo(ben.address)).toHaveLength(1));
    expect([mailTo(ann.address).length, chat.at(`/${ann.id}`).length]).toEqual([1, 1]);
    const [{ text = "", from = "" } = {}] = mailTo(ann.address);
    expect(from).toBe("workshop@example.org");
    expect(text).toMatch(/^Subject: greeter .*the agent has\s+finished in Fix the build$/ms);
    expect(text.replaceAll("=\n", "")).toContain(
      `https://platform.example.org/#/projects/${pid}/sessions/${sid}`,
    );
    expect(chat.at(`/${ann.id}`)[0]?.json).toEqual({
      text: expect.stringMatching(/: the agent has finished in Fix the build\. <https:\S+\|Open>$/),
    });
    await eventually(async () => {
      const { mail, chat: hers } = await own(ann.token);
      expect([mail, hers]).toMatchObject([
        { last_delivery: { status: "delivered", last_try: { status: 250 } } },
        { last_delivery: { status: "delivered", last_try: { status: 200 } } },
      ]);
    });
  });

  it("are not sent to a person who has lost the project", async () => {
    const ann = await person("Ann");
    await set("mail", ann.token, { tells: ["finished"] });
    const sid = await start(ann.token, {});
    expectStatus(
      await service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: null } }),
      200,
    );
    expectStatus(await service.request("DELETE", `/v1/projects/${pid}/members/${ann.id}`), 204);
    await endTurns(sid, ["completed"]);
    await eventually(async () => {
      expect((await own(ann.token)).mail["last_delivery"]).toMatchObject({
        status: "cancelled",
        last_try: { error: "The person may not see the project any more." },
      });
    });
    expect(mailTo(ann.address)).toEqual([]);
    expect((await own(ann.token)).mail).toMatchObject({ status: "enabled", failing_since: null });
  });

  it("say why a test did not arrive, and leave no delivery", async () => {
    const { token, id, address } = await person("Ann");
    expect((await request("POST", "/mail/test", token)).status).toBe(404);
    await set("mail", token, { tells: ["asked"] });
    await set("chat", token, chatAt(id));
    const tested = async (place: string) =>
      fields(expectStatus(await request("POST", `/${place}/test`, token), 200));
    expect(await tested("mail")).toMatchObject({ delivered: true, status: 250, error: null });
    expect(mailTo(address)[0]?.text).toMatch(/^Subject: Workshop: this is a test$/m);
    expect(await tested("chat")).toMatchObject({ delivered: true, status: 200, answer: "ok" });
    mailServer.replies.set("RCPT", "550 5.1.1 no such user here");
    chat.behaviour = answering(404, "no_service");
    expect(await tested("mail")).toMatchObject({
      delivered: false,
      error: "The mail server refuses the address: 550 5.1.1 no such user here",
    });
    expect(await tested("chat")).toMatchObject({ delivered: false, status: 404, answer: "no_service" });
    expect((await own(token)).mail["last_delivery"]).toBe(null);
  });

  it("are off at first, and need a verified address", async () => {
    const { token } = await invitePerson(service, "Carol");
    expect(await own(token)).toMatchObject({
      mail: { status: "off", tells: [], address: null, unavailable: "no_address" },
      chat: { status: "off", tells: [], format: null, url: null },
    });
    expect(errorCode(await request("PUT", "/mail", token, { tells: ["asked"] }))).toBe("mail_no_address");
  });

  it("keep the address of a chat secret, and change what they tell without it", async () => {
    const { token, id } = await person("Ann");
    const added = await set("chat", token, chatAt(`T000/secret-${id}`));
    expect(added).toMatchObject({ status: "enabled", format: "slack", url: `${chat.url}/…${id.slice(-4)}` });
    const changed = await set("chat", token, { tells: ["asked"] });
    expect(changed).toMatchObject({ tells: ["asked"], format: "slack", url: added["url"] });
    const rows = await auditOf(service, "notices.saved");
    expect(rows[0]).toMatchObject({ target: "slack", changes: { tells: ["asked"] } });
    const stored = await service.inside(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient;
        return yield* sql`SELECT outbound_webhooks::text AS row, encode(envelope, 'escape') AS envelope FROM outbound_webhooks`;
      }),
    );
    for (const text of [JSON.stringify(rows), JSON.stringify(stored), JSON.stringify(await own(token))])
      expect(text).not.toContain(`secret-${id}`);
    expectStatus(await request("DELETE", "/chat", token), 204);
    expect((await auditOf(service, "notices.removed"))[0]).toMatchObject({ target: "chat" });
    expect((await own(token)).chat).toMatchObject({ status: "off", url: null });
    const refused = await request("PUT", "/chat", token, { tells: ["asked"] });
    expect(issuesOf(refused)).toMatchObject([{ path: "url" }]);
    const inside = await request("PUT", "/chat", token, chatAt("", { url: "https://10.0.0.7/hook" }));
    expect(issuesOf(inside)).toMatchObject([{ path: "url", message: expect.stringContaining("private") }]);
  });
});

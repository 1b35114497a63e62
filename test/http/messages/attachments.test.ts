/** Files that people attach to messages (api.md 3, attachments). The agent is scripted. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ATTACHMENT_MAX } from "../../../src/domain/conversation/attachment.ts";
import { CONVERSATION_KEPT_MAX } from "../../../src/store/ports/sessions/conversations.ts";
import {
  errorCode,
  eventually,
  expectStatus,
  fields,
  makeProject,
  putSecret,
  runSession,
  type Fields,
} from "../../support/service/requests.ts";
import type { Answer } from "../../support/service/service.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";

const PNG = Buffer.from("\x89PNG\r\n\x1a\n and more", "latin1");

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service);
});
afterAll(() => service.close());
beforeEach(() => service.daemon.steering.forget());

const target = (sid: string, rest: string) => `/v1/projects/${pid}/sessions/${sid}/${rest}`;

/** A request with a body of any bytes. */
const raw = (path: string, init: RequestInit = {}) =>
  // oxlint-disable-next-line no-restricted-globals -- a client of its own, for bodies that are no JSON
  fetch(`${service.url}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${service.token}`, ...init.headers },
  });

const upload = (sid: string, name: string, content: Uint8Array<ArrayBuffer> | string, type?: string) =>
  raw(target(sid, `attachments?name=${encodeURIComponent(name)}`), {
    method: "POST",
    body: content,
    headers: type === undefined ? {} : { "content-type": type },
  });

const attached = async (
  sid: string,
  name: string,
  content: Uint8Array<ArrayBuffer> | string,
  type?: string,
) => {
  const answer = await upload(sid, name, content, type);
  expect(answer.status).toBe(201);
  return (await answer.json()) as Fields;
};

const post = (sid: string, body: Fields) =>
  service.request("POST", target(sid, "messages"), { body: { id: randomUUID(), ...body } });

const refusedAs = (answer: Answer, status: number) => errorCode(expectStatus(answer, status));

const rest = (sid: string) =>
  service.daemon.conversation.say(sid, {
    type: "turn",
    turn: { state: "idle", waiting_for: null },
    ended: 0,
    rev: 1,
  });

describe("an attachment", () => {
  let sid = "";
  beforeAll(async () => {
    sid = await runSession(service, pid);
  });

  it("is kept with its name, kind, size and hash, and read back as it was", async () => {
    const record = await attached(sid, "../../screen shot.png", PNG, "application/octet-stream");
    expect(record).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "screen shot.png",
      media_type: "image/png",
      bytes: PNG.length,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const answer = await raw(target(sid, `attachments/${String(record["id"])}`));
    expect(answer.status).toBe(200);
    expect(Buffer.from(await answer.arrayBuffer()).equals(PNG)).toBe(true);
    expect(answer.headers.get("content-type")).toBe("image/png");
    expect(answer.headers.get("content-disposition")).toBe(
      `inline; filename="screen shot.png"; filename*=UTF-8''screen%20shot.png`,
    );
  });

  it("that is a page can only be downloaded, and runs nothing", async () => {
    const page = "<script>alert(1)</script>";
    const { id } = await attached(sid, 'größe"\r\nset-cookie: a.html', page, "text/html");
    const { headers } = await raw(target(sid, `attachments/${String(id)}`));
    expect(headers.get("content-type")).toBe("application/octet-stream");
    expect(headers.get("content-disposition")).toBe(
      "attachment; filename=\"gr__e_set-cookie: a.html\"; filename*=UTF-8''gr%C3%B6%C3%9Fe%22set-cookie%3A%20a.html",
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox");
    expect(headers.get("set-cookie")).toBe(null);
  });

  it("is refused without a name, without content, or if it is too large", async () => {
    const unnamed = await raw(target(sid, "attachments"), { method: "POST", body: "a" });
    expect([unnamed.status, await unnamed.json()]).toMatchObject([400, { code: "invalid_request" }]);
    const empty = await upload(sid, "a", "");
    expect([empty.status, await empty.json()]).toMatchObject([400, { code: "invalid_request" }]);
    const large = await upload(sid, "a", Buffer.alloc(ATTACHMENT_MAX + 1));
    expect([large.status, await large.json()]).toMatchObject([413, { code: "body_too_large" }]);
    expect((await attached(sid, "a", Buffer.alloc(ATTACHMENT_MAX, 1)))["bytes"]).toBe(ATTACHMENT_MAX);
  });

  it("is refused if it holds the value of a secret, and is not kept", async () => {
    await putSecret(service, pid, "TOKEN", "a canary of a value");
    const answer = await upload(sid, "a.bin", Buffer.from("\xff\xfe a canary of a value \xff", "latin1"));
    expect([answer.status, await answer.json()]).toMatchObject([
      422,
      { code: "secret_in_message", details: { secret: "TOKEN" } },
    ]);
  });

  it("finds no more room in a full conversation", async () => {
    const full = await runSession(service, pid);
    await attached(full, "a", "a");
    await service.inside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`UPDATE conversations SET bytes = ${CONVERSATION_KEPT_MAX} WHERE session_id = ${full}`,
      ),
    );
    const answer = await upload(full, "b", "b");
    expect([answer.status, await answer.json()]).toMatchObject([413, { code: "conversation_full" }]);
  });

  it("of another session is not found", async () => {
    const [one, other] = [await runSession(service, pid), await runSession(service, pid)];
    const { id } = await attached(one, "a", "a");
    expect((await raw(target(other, `attachments/${String(id)}`))).status).toBe(404);
    expect((await raw(target(one, "attachments/none"))).status).toBe(400);
    expectStatus(await post(other, { text: "Look.", attachments: [id] }), 400);
  });
});

describe("a message with attachments", () => {
  it("reaches the agent after its files, which travel once", async () => {
    const sid = await runSession(service, pid);
    rest(sid);
    const files = [await attached(sid, "b.txt", "the second"), await attached(sid, "a.png", PNG)];
    const ids = files.map(({ id }) => id);
    service.daemon.steering.answerNext({ outcome: "busy", turn: 1 });
    const answer = expectStatus(await post(sid, { text: "Compare them.", attachments: ids }), 201);
    expect(fields(answer)["message"]).toMatchObject({
      content: [
        { type: "text", text: "Compare them." },
        { type: "file", name: "b.txt", media_type: "text/plain", attachment_id: ids[0] },
        { type: "file", name: "a.png", media_type: "image/png", attachment_id: ids[1] },
      ],
    });
    rest(sid);
    service.daemon.conversation.say(sid, {
      type: "turn",
      turn: { state: "idle", waiting_for: null },
      ended: 1,
      rev: 2,
    });
    await eventually(() => expect(service.daemon.steering.handed).toHaveLength(3));
    expect(service.daemon.steering.handed[0]).toMatchObject({ text: "Compare them.", attachments: files });
    const { attached: got } = service.daemon.steering;
    expect([...got.values()].map((content) => Buffer.from(content))).toEqual([
      Buffer.from("the second"),
      PNG,
    ]);
  });

  it("may do without a text, but not without both", async () => {
    const sid = await runSession(service, pid);
    const { id } = await attached(sid, "a.txt", "a");
    const answer = expectStatus(await post(sid, { attachments: [id] }), 201);
    expect(fields(answer)["message"]).toMatchObject({ content: [{ type: "file", name: "a.txt" }] });
    for (const body of [{}, { attachments: [] }])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(refusedAs(await post(sid, body), 400)).toBe("invalid_request");
  });

  it("is refused with an unknown attachment, with one twice, with too many, or with too much", async () => {
    const sid = await runSession(service, pid);
    const text = "Look.";
    const { id } = await attached(sid, "a.txt", "a");
    expect(refusedAs(await post(sid, { text, attachments: [id, randomUUID()] }), 400)).toBe(
      "invalid_request",
    );
    expect(refusedAs(await post(sid, { text, attachments: [id, id] }), 400)).toBe("invalid_request");
    const many = Array.from({ length: 11 }, () => randomUUID());
    expect(refusedAs(await post(sid, { text, attachments: many }), 400)).toBe("invalid_request");
    const large: unknown[] = [];
    for (let count = 0; count < 3; count += 1)
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      large.push((await attached(sid, "large", Buffer.alloc(9 * 1024 * 1024, 1)))["id"]);
    const refused = await post(sid, { text, attachments: large });
    expect(refusedAs(refused, 400)).toBe("invalid_request");
    expect(JSON.stringify(fields(refused))).toContain(String(25 * 1024 * 1024));
  });

  it("is the same message only with the same attachments", async () => {
    const sid = await runSession(service, pid);
    const [one, other] = [await attached(sid, "a", "a"), await attached(sid, "b", "b")];
    const id = randomUUID();
    const body = { id, text: "Look.", attachments: [one["id"]] };
    expectStatus(await post(sid, body), 201);
    expectStatus(await post(sid, body), 200);
    expect(refusedAs(await post(sid, { ...body, attachments: [other["id"]] }), 409)).toBe("id_taken");
    expect(refusedAs(await post(sid, { id, text: "Look." }), 409)).toBe("id_taken");
  });

  it("names its files in the transcript", async () => {
    const sid = await runSession(service, pid);
    const { id } = await attached(sid, "error.log", "a");
    expectStatus(await post(sid, { text: "Why?", attachments: [id] }), 201);
    const markdown = await (await raw(target(sid, "conversation.md"))).text();
    expect(markdown).toContain("[file: error.log]");
    expect(await (await raw(target(sid, "conversation.json"))).text()).toContain(String(id));
  });
});

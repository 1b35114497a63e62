/** The one shape of every error (api.md 1 "Errors", "Bad input", "Bodies"), the router's own answers included. */
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { errorCode, fields, issuesOf, listOf, makeProject, refusal } from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service);
});
afterAll(() => service.close());

const MIB = 1024 * 1024;

describe("an invalid address", () => {
  it.each([
    "/nothing",
    "/v1",
    "/v1/",
    "/v1/me/",
    "//v1/me",
    "/v1//me",
    "/V1/me",
    "/v1/me/extra",
    "/v1/projects/",
    "/v1/%6De%2F",
    "/v1/webhooks",
    "/dashboard",
    "/../package.json",
    "/%2e%2e/package.json",
    "/app.js/..%2f..%2fpackage.json",
    "/openapi.json/",
    "/v1/gitx",
  ])("%s is 404 [W28]", async (target) => {
    expect(refusal(await service.request("GET", target))).toEqual([404, "not_found"]);
  });

  it.each(["/push/", "//push", "/push/extra", ""])("of a webhook with %j is 404 [W28]", async (rest) => {
    const answer = await service.request("POST", `/v1/webhooks/projects/${pid}${rest}`, { body: "{}" });
    expect(refusal(answer)).toEqual([404, "not_found"]);
  });

  it("of a webhook without a slug is 400, as one with a wrong slug", async () => {
    const [none, wrong] = await Promise.all(
      ["", "On%20Issue"].map((slug) =>
        service.request("POST", `/v1/webhooks/projects/${pid}/${slug}`, { body: "{}" }),
      ),
    );
    expect(none?.status).toBe(400);
    expect(none?.json).toEqual(wrong?.json);
  });
});

describe("a path of the daemon", () => {
  it.each(["platform/env", "platform", "platform/../platform/env", "platform?x", "proxy/8000/"])(
    "%s is not reachable through the relay [X06]",
    async (rest) => {
      const target = `/v1/projects/${pid}/sessions/${randomUUID()}/runtime/${rest}`;
      expect(refusal(await service.request("POST", target))).toEqual([404, "not_found"]);
    },
  );
});

describe("a wrong method", () => {
  it("is 405 with Allow, and no other site may read it [W27]", async () => {
    const answer = await service.request("PUT", `/v1/projects/${pid}`);
    expect(refusal(answer)).toEqual([405, "method_not_allowed"]);
    expect(answer.headers["allow"]).toBe("GET, PATCH, DELETE");
    const names = Object.keys(answer.headers).filter((name) => name.startsWith("access-control"));
    expect(names).toEqual([]);
  });

  it.each(["HEAD", "GET", "PUT", "DELETE", "OPTIONS"])(
    "%s of a webhook fires nothing [W27]",
    async (method) => {
      const answer = await service.request(method, `/v1/webhooks/projects/${pid}/push`, { token: null });
      expect([answer.status, answer.headers["allow"]]).toEqual([405, "POST"]);
    },
  );

  it("HEAD is answered like GET without its body, or not at all", async () => {
    const answer = await service.request("HEAD", "/v1/me");
    expect([200, 405]).toContain(answer.status);
    expect(answer.text).toBe("");
  });
});

const json = { "content-type": "application/json" };

const create = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  service.request("POST", `/v1/projects/${pid}/sessions`, { body, headers });

describe("a body", () => {
  it.each(["{", "", "nope", '{"name": }', "[", '"\ud800', "{}{}"])(
    "that is not JSON, %j, is 400",
    async (text) => {
      const answer = await create(text, json);
      expect(refusal(answer)).toEqual([400, "invalid_request"]);
      expect(issuesOf(answer)).toHaveLength(1);
    },
  );

  it.each(["null", "[]", "1", '"x"', "true"])("that is not an object, %s, is 400", async (text) => {
    expect(refusal(await create(text, json))).toEqual([400, "invalid_request"]);
  });

  it.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
  ])("of type %s is 415", async (type) => {
    const answer = await create("{}", { "content-type": type });
    expect(refusal(answer)).toEqual([415, "unsupported_media_type"]);
  });

  it.each([
    ["POST", `/v1/people/${randomUUID()}/reactivate`],
    ["DELETE", `/v1/tokens/${randomUUID()}`],
  ])("of an endpoint without fields is empty or an empty object: %s", async (method, target) => {
    const send = (body: string, type = "application/json") =>
      service.request(method, target, { stream: body, headers: { "content-type": type } });
    for (const body of ["", "{}"]) expect((await send(body)).status).toBe(404);
    const unknown = await send('{"nonsense":1,"more":2}');
    expect(refusal(unknown)).toEqual([400, "invalid_request"]);
    expect(fields(unknown)["error"]).toBe("Unknown field `nonsense`.");
    expect(issuesOf(unknown).map(({ path }) => path)).toEqual(["nonsense", "more"]);
    for (const body of ["not json", "null", "[]", "1"])
      expect(fields(await send(body))["error"]).toBe("The body must be empty, or an empty JSON object.");
    expect(refusal(await send("x", "text/plain"))).toEqual([415, "unsupported_media_type"]);
    expect(refusal(await send("x".repeat(MIB + 1)))).toEqual([413, "body_too_large"]);
  });

  it("larger than 1 MiB is 413, with or without a length, and ends the connection", async () => {
    const text = JSON.stringify({ initial_prompt: "x".repeat(MIB) });
    const chunked = Readable.from([text.slice(0, MIB / 2), text.slice(MIB / 2)]);
    for (const body of [text, chunked]) {
      const answer = await service.request("POST", `/v1/projects/${pid}/sessions`, {
        stream: body,
        headers: json,
      });
      expect(refusal(answer)).toEqual([413, "body_too_large"]);
      expect(answer.headers["connection"]).toBe("close");
    }
  });

  it("just below 1 MiB is read", async () => {
    const answer = await create(JSON.stringify({ initial_prompt: "x".repeat(MIB - 100) }), json);
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
  });

  it("that is invalid is answered with each wrong field and its path", async () => {
    const answer = await create({ name: 5, metadata: "m", initial_prompt: "" });
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
    const paths = issuesOf(answer).map(({ path }) => path);
    expect(paths.toSorted()).toEqual(["initial_prompt", "metadata", "name"]);
    expect(issuesOf(answer).every(({ message }) => message !== "")).toBe(true);
  });

  it.each([
    [
      { prompt: "x" },
      "Unknown field `prompt`. Known: base_ref, from, agent_name, agent_model, effort, mode, initial_prompt, attachments, name, metadata.",
    ],
    [{ name: 5 }, "`name` must be a string."],
    [{ name: "" }, "`name` must have at least 1 character."],
    [{ name: " " }, "`name` must not be blank."],
    [{ name: "\0" }, "`name` must be text without NUL characters and unpaired surrogates."],
    [{ name: "x".repeat(201) }, "`name` must have at most 200 characters."],
    [[], "The body must be an object."],
  ])("%j is refused in plain words", async (body, sentence) => {
    const answer = await create(body);
    expect(fields(answer)["error"]).toBe(sentence);
    expect(issuesOf(answer)).toHaveLength(1);
  });

  it.each([
    ["POST", "/v1/tokens", {}, "Missing field `name`."],
    ["PATCH", "", { status: "gone" }, '`status` must be "active" or "archived".'],
    ["PATCH", "", { triggers_paused: "yes" }, "`triggers_paused` must be true or false."],
    ["GET", "/sessions?limit=201", undefined, "`limit` must be between 1 and 200."],
    ["GET", "/sessions?limit=x", undefined, "`limit` must be a number."],
    [
      "GET",
      "/change-requests?page=2",
      undefined,
      "Unknown query parameter `page`. Known: limit, cursor, status, session_id, reviewer.",
    ],
    ["GET", "/sessions/1", undefined, "`sid` must be a lower-case UUID."],
  ])("%s %s with %j is refused in plain words", async (method, rest, body, sentence) => {
    const at = rest.startsWith("/v1") ? rest : `/v1/projects/${pid}${rest}`;
    expect(fields(await service.request(method, at, { body }))["error"]).toBe(sentence);
  });

  it("with thousands of errors is answered with a few of them", async () => {
    const unknown = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`field_${index}`, 1]));
    expect(issuesOf(await create(unknown))).toHaveLength(20);
  });

  it.each([
    ["a session", "POST", "/sessions", { status: "running" }],
    ["a session", "POST", "/sessions", { id: randomUUID() }],
    ["a session", "POST", "/sessions", { account_id: randomUUID() }],
    ["a session", "POST", "/sessions", { project_id: randomUUID() }],
    ["a session", "POST", "/sessions", { __proto__: { status: "running" }, constructor: 1 }],
    ["a project", "PATCH", "", { account_id: randomUUID() }],
    ["a project", "PATCH", "", { id: randomUUID() }],
    ["a project", "PATCH", "", { repository: { kind: "hosted" } }],
    ["a project", "PATCH", "", { created_by: randomUUID() }],
    ["a secret", "PUT", "/secrets/NAME", { value: "x", name: "OTHER" }],
    ["a change request", "POST", "/change-requests", { title: "t", head_ref: "main", status: "merged" }],
    ["a merge", "POST", "/change-requests/1/merge", { merged_by: randomUUID() }],
  ])("with a field that %s does not accept is 400 [T06]", async (_, method, rest, body) => {
    const answer = await service.request(method, `/v1/projects/${pid}${rest}`, { body });
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
  });

  it.each([
    ["POST", "/v1/tokens", { name: "t", origin: "session" }],
    ["POST", "/v1/tokens", { name: "t", account_id: randomUUID() }],
    ["POST", "/v1/tokens", { name: "t", user_id: randomUUID() }],
    ["POST", "/v1/projects", { name: "p", repository: { kind: "hosted", path: "/etc" } }],
    ["POST", "/v1/projects", { name: "p", repository: { kind: "hosted" }, account_id: randomUUID() }],
  ])("%s %s with %j is 400 [T06]", async (method, target, body) => {
    expect(refusal(await service.request(method, target, { body }))).toEqual([400, "invalid_request"]);
  });
});

describe("text that no store or environment can hold", () => {
  it.each(["%00", "a%00b", "x".repeat(129)])("the slug %s of a query is 400", async (slug) => {
    const answer = await service.request("GET", `/v1/projects/${pid}/fires?slug=${slug}`);
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
  });

  it.each([
    ["POST", "/v1/tokens", { name: "a\0b" }],
    ["POST", "/v1/projects", { name: "a\0b", repository: { kind: "hosted" } }],
    ["POST", "/v1/projects", { name: "\ud800", repository: { kind: "hosted" } }],
    ["POST", "SESSIONS", { name: "a\0b" }],
    ["POST", "SESSIONS", { initial_prompt: "a\0b" }],
    ["POST", "SESSIONS", { initial_prompt: "\udc00" }],
    ["POST", "SESSIONS", { metadata: { key: "a\0b" } }],
    ["POST", "SESSIONS", { metadata: { "a\0b": 1 } }],
    ["POST", "SESSIONS", { metadata: { key: "\ud800" } }],
    ["POST", "SESSIONS", { base_ref: "a\0b" }],
    ["POST", "SESSIONS", { agent_name: "a\0b" }],
    ["POST", "SESSIONS", { agent_model: "a/\0b" }],
    ["POST", "CHANGES", { title: "a\0b", head_ref: "main" }],
    ["POST", "CHANGES", { title: "t", description: "a\0b", head_ref: "main" }],
    ["POST", "CHANGES", { title: "t", head_ref: "a\0b" }],
    ["POST", "CHANGES/1/merge", { message: "a\0b" }],
  ])("%s %s %j is 400", async (method, where, body) => {
    const target = where
      .replace("SESSIONS", `/v1/projects/${pid}/sessions`)
      .replace("CHANGES", `/v1/projects/${pid}/change-requests`);
    expect(refusal(await service.request(method, target, { body }))).toEqual([400, "invalid_request"]);
  });

  it("a prompt of 96 KiB is counted in bytes, as the environment counts them", async () => {
    const tooLong = { initial_prompt: "€".repeat(33 * 1024) };
    expect(refusal(await create(tooLong))).toEqual([400, "invalid_request"]);
    expect((await create({ initial_prompt: "€".repeat(32 * 1024) })).status).toBe(201);
  });

  it.each([300, 5_000, 50_000])("metadata nested %i deep is 400, not a failure", async (depth) => {
    const body = `{"metadata": {"deep": ${"[".repeat(depth)}${"]".repeat(depth)}}}`;
    const answer = await create(body, json);
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
  });
});

/** test/domain/ids.test.ts has the other forms. */
const NO_UUIDS = [
  "x",
  "018F4B1E-7C1A-7D3E-8F00-000000000000",
  "a%2fb",
  "018f4b1e-7c1a-7d3e-8f00-000000000000%0a",
];
/** Invalid escapes: Node's own decoder throws on them. */
const BROKEN = ["%ff", "%E0%A4%A", "%", "%zz"];

describe("an invalid id", () => {
  it.each(NO_UUIDS)("%s is 400 in every place of an id [W25]", async (id) => {
    const targets = [
      ["GET", `/v1/projects/${id}`],
      ["GET", `/v1/projects/${id}/events`],
      ["GET", `/v1/projects/${id}/triggers`],
      ["GET", `/v1/projects/${pid}/sessions/${id}`],
      ["GET", `/v1/projects/${pid}/sessions/${id}/events`],
      ["GET", `/v1/projects/${pid}/sessions/${id}/logs`],
      ["GET", `/v1/projects/${pid}/sessions/${id}/runtime/x`],
      ["POST", `/v1/projects/${id}/sessions/${randomUUID()}/ports/3000/x`],
      ["POST", `/v1/projects/${pid}/sessions/${id}/stop`],
      ["DELETE", `/v1/tokens/${id}`],
      ["POST", `/v1/webhooks/projects/${id}/push`],
    ] as const;
    for (const [method, target] of targets) {
      const answer = await service.request(method, target);
      expect([method, target, answer.status]).toEqual([method, target, 400]);
      errorCode(answer);
    }
  });

  it.each(BROKEN)("%s, a broken escape, is 400 [W25]", async (id) => {
    for (const target of [
      `/v1/projects/${id}`,
      `/v1/projects/${pid}/sessions/${id}`,
      `/v1/git/${id}.git/info/refs`,
    ]) {
      expect(refusal(await service.request("GET", target))).toEqual([400, "malformed_request"]);
    }
    const webhook = await service.request("POST", `/v1/webhooks/projects/${id}/push`);
    expect(refusal(webhook)).toEqual([400, "malformed_request"]);
  });

  it("is also 400 for a token that is bound to a project", async () => {
    const made = await service.request("POST", "/v1/tokens", { body: { name: "bound", project_id: pid } });
    const token = String(fields(made)["token"]);
    expect((await service.request("GET", "/v1/projects/x", { token })).status).toBe(400);
  });

  it.each(["0", "-1", "1.5", "x", "2147483648", "1e3000", "/", "%20"])(
    "the number %j of a change request is refused",
    async (number) => {
      const answer = await service.request("GET", `/v1/projects/${pid}/change-requests/${number}`);
      expect([400, 404]).toContain(answer.status);
      errorCode(answer);
    },
  );
});

const forged = (text: string): string => Buffer.from(text).toString("base64url");

describe("a list", () => {
  const lists = [
    ["/v1/tokens", "tokens"],
    ["/v1/projects", "projects"],
    ["/v1/projects/PID/sessions", "sessions"],
    ["/v1/projects/PID/fires", "fires"],
    ["/v1/projects/PID/change-requests", "change_requests"],
  ] as const;

  it.each(lists)("%s refuses forged cursors [T07]", async (pattern) => {
    const cursors = [
      "x",
      "%00",
      "null",
      "1",
      forged("1"),
      forged(`1.${pid}`).concat("="),
      forged(`-1.${pid}`),
      forged(`99999999999999999.${pid}`),
      forged("1.00000000-0000-0000-0000-000000000000"),
      forged(`1.${pid}' OR 1=1 --`),
      "x".repeat(600),
    ];
    for (const cursor of cursors) {
      const answer = await service.request("GET", `${pattern.replace("PID", pid)}?cursor=${cursor}`);
      expect([cursor, ...refusal(answer)]).toEqual([cursor, 400, "invalid_request"]);
    }
  });

  it.each(lists)("%s accepts a limit from 1 to 200 and no unknown parameter", async (pattern, plural) => {
    const target = pattern.replace("PID", pid);
    for (const query of [
      "limit=0",
      "limit=201",
      "limit=x",
      "limit=1.5",
      "limit=-1",
      "limit=1&limit=2",
      "page=2",
    ]) {
      const answer = await service.request("GET", `${target}?${query}`);
      expect([query, ...refusal(answer)]).toEqual([query, 400, "invalid_request"]);
    }
    for (const query of ["limit=1", "limit=200"]) {
      expect(listOf(await service.request("GET", `${target}?${query}`), plural)).toBeInstanceOf(Array);
    }
  });
});

const asked = async (id: string) =>
  (await service.request("GET", "/v1/me", { headers: { "x-request-id": id } })).headers["x-request-id"];

describe("x-request-id", () => {
  it("is returned if it is valid", async () => {
    for (const id of ["a", "req-1.2_3", "x".repeat(128)]) expect(await asked(id)).toBe(id);
  });

  it("is replaced if it is invalid", async () => {
    const uuid = /^[0-9a-f-]{36}$/;
    for (const id of ["", "a b", "a,b", "<x>", "x".repeat(129), "é"]) expect(await asked(id)).toMatch(uuid);
  });

  it("is in every answer, and differs from request to request", async () => {
    const targets = ["/v1/me", "/nothing", "/healthz", "/", "/v1/projects/x", "/v1/projects/%ff", "/docs"];
    const ids = await Promise.all(
      targets.map(
        async (target) => (await service.request("GET", target, { token: null })).headers["x-request-id"],
      ),
    );
    expect(new Set(ids).size).toBe(targets.length);
    expect(ids).not.toContain(undefined);
  });
});

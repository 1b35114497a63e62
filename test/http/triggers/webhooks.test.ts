/** The webhook receiver: signatures, bodies and the order of its checks (spec.md 4.1, 5.4, 7.1; api.md 4 "Webhook"). */
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  expectStatus,
  fields,
  hmac,
  listOf,
  makeProject,
  putSecret,
  SECRET,
  SECRET_NAME,
  webhookEntry,
} from "../../support/service/requests.ts";

const MIB = 1024 * 1024;
const PLATFORM = "x-platform-signature";
const HUB = "x-hub-signature-256";

const MANIFEST = [
  webhookEntry("push", "{{ body.action }}|{{ body.raw }}|{{ body }}"),
  webhookEntry("headers", "{{ headers.content_type }}|{{ headers.user_agent }}|{{ headers.forwarded_for }}"),
  webhookEntry("nameless", "Go\\u0000{{ body.x }}", 'name = "a\\u0000b"'),
  webhookEntry("off", "Go", "enabled = false"),
  webhookEntry("a".repeat(128)),
  `[[triggers]]\nslug = "bare"\ntype = "webhook"\nprompt = "Go"\nsecret_env = "NOT_SET"\n`,
  `[[triggers]]\nslug = "nightly"\ntype = "cron"\nprompt = "Go"\ncron = "0 0 2 * * *"\n`,
].join("\n");

let service: TestService;
let pid = "";
let other = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, { files: { "platform.toml": MANIFEST } });
  other = await makeProject(service, { files: { "platform.toml": MANIFEST } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
  await putSecret(service, other, SECRET_NAME, "another project's secret");
});
afterAll(() => service.close());

const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];

/** The prompt of the session that the delivery spawned. */
const promptOf = async (answer: Answer): Promise<unknown> => {
  const sid = fields(expectStatus(answer, 202))["session_id"];
  return fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`))["initial_prompt"];
};

const push = (body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
  deliver(service, `${pid}/push`, { body, headers });

const fireCount = async (): Promise<number> =>
  listOf(await service.request("GET", `/v1/projects/${pid}/fires?limit=200`), "fires").length;

describe("a signature", () => {
  const body = '{"action": "opened"}';
  const digest = hmac(body);

  it.each([
    ["with its prefix", { [PLATFORM]: `sha256=${digest}` }],
    ["in the code host's header", { [HUB]: `sha256=${digest}` }],
    ["with blanks around it, which HTTP takes off [W06]", { [PLATFORM]: ` \t${digest} ` }],
  ])("%s fires", async (_, headers) => {
    const answer = await push(body, headers);
    expect(Object.keys(fields(expectStatus(answer, 202)))).toEqual(["status", "session_id"]);
    expect(fields(answer)["status"]).toBe("fired");
  });

  it.each([
    ["another body's", hmac("other")],
    ["another secret's", hmac(body, "other")],
  ])("%s is 401", async (_, value) => {
    const before = await fireCount();
    for (const header of [PLATFORM, HUB]) {
      expect(seen(await push(body, { [header]: value }))).toEqual([401, "invalid_signature"]);
    }
    expect(await fireCount()).toBe(before);
  });

  it("that is missing, or in a place other than a header, is 401 [W10] [W11]", async () => {
    const target = `/v1/webhooks/projects/${pid}/push`;
    const asks = [
      service.request("POST", target, { body, token: null }),
      service.request("POST", target, { body, token: service.token }),
      service.request("POST", `${target}?${PLATFORM}=${digest}`, { body, token: null }),
      service.request("POST", target, { body, token: null, headers: { cookie: `${PLATFORM}=${digest}` } }),
    ];
    for (const answer of await Promise.all(asks)) expect(seen(answer)).toEqual([401, "invalid_signature"]);
  });

  it("of one project's secret is invalid for every other project [W39]", async () => {
    expect(seen(await deliver(service, `${other}/push`, { body }))).toEqual([401, "invalid_signature"]);
  });
});

const unsigned = (target: string) =>
  service.request("POST", `/v1/webhooks/projects/${target}`, { token: null });

describe("the checks run in order", () => {
  it("400 for a malformed address, before any lookup", async () => {
    for (const target of ["nope/push", `${pid}/`, `${pid}/Push`, `${randomUUID().toUpperCase()}/push`]) {
      expect(seen(await unsigned(target))).toEqual([400, "invalid_webhook_address"]);
    }
  });

  it.each(["a%0a", "a%2Fb", "%e2%84%aa"])("the slug %j is 400 [W26]", async (slug) => {
    const answer = await unsigned(`${pid}/${encodeURI(decodeURIComponent(slug)).replaceAll("/", "%2F")}`);
    expect(seen(answer)).toEqual([400, "invalid_webhook_address"]);
  });

  it("the same 404 for every trigger that does not listen, before the secret or signature check [W29]", async () => {
    const archived = await makeProject(service, { files: { "platform.toml": MANIFEST } });
    await service.request("PATCH", `/v1/projects/${archived}`, { body: { status: "archived" } });
    const paused = await makeProject(service, { files: { "platform.toml": MANIFEST } });
    await service.request("PATCH", `/v1/projects/${paused}`, { body: { triggers_paused: true } });
    const targets = [
      `${pid}/off`,
      `${pid}/nightly`,
      `${pid}/none`,
      `${randomUUID()}/push`,
      `${archived}/push`,
      `${paused}/push`,
    ];
    const texts = await Promise.all(
      targets.map(async (target) => {
        const answer = await unsigned(target);
        expect([target, answer.status]).toEqual([target, 404]);
        return answer.text;
      }),
    );
    expect(new Set(texts).size).toBe(1);
    expect(texts[0]).not.toContain("push");
  });

  it("409 for a missing secret, before the signature [W30]", async () => {
    expect(seen(await unsigned(`${pid}/bare`))).toEqual([409, "secret_not_configured"]);
    const empty = await service.request("PUT", `/v1/projects/${pid}/secrets/NOT_SET`, {
      body: { value: "" },
    });
    expect(empty.status).toBe(400);
    const answer = await deliver(service, `${pid}/bare`, { headers: { [PLATFORM]: hmac("{}", "") } });
    expect(seen(answer)).toEqual([409, "secret_not_configured"]);
  });
});

describe("a body", () => {
  it.each([
    ["that is no JSON is raw text [W13]", "a=1&b=2", '|a=1&b=2|{"raw":"a=1&b=2"}'],
    [
      "with tokens in it renders them not [P05]",
      '{"action":"{{ body.raw }}"}',
      '{{ body.raw }}||{"action":"{{ body.raw }}"}',
    ],
  ])("%s", async (_, body, prompt) => {
    expect(await promptOf(await push(body))).toBe(prompt);
  });

  it("whose prompt is too long fails visibly, and once for one delivery [P07]", async () => {
    const body = JSON.stringify({ action: "x".repeat(97 * 1024) });
    const headers = { "x-platform-delivery": randomUUID() };
    for (const attempts of [1, 2]) {
      const answer = await push(body, headers);
      expect(seen(answer)).toEqual([500, "prompt_too_large"]);
      const list = listOf(await service.request("GET", `/v1/projects/${pid}/fires?status=failed`), "fires");
      const rows = list.filter(({ delivery_id: id }) => id === headers["x-platform-delivery"]);
      expect(rows).toMatchObject([{ reason: "prompt_too_large", session_id: null, attempts }]);
    }
  });

  it("of 25 MiB is read, one byte more is 413, with or without a length [W17]", async () => {
    const most = new Uint8Array(25 * MIB).fill(32);
    const over = new Uint8Array(25 * MIB + 1).fill(32);
    expect((await deliver(service, `${pid}/headers`, { body: most })).status).toBe(202);
    const target = `/v1/webhooks/projects/${pid}/headers`;
    const told = await service.request("POST", target, { body: over, token: null });
    expect(seen(told)).toEqual([413, "body_too_large"]);
    const untold = await service.request("POST", target, {
      stream: Readable.from([over.subarray(0, 20 * MIB), over.subarray(20 * MIB)]),
      token: null,
    });
    expect(seen(untold)).toEqual([413, "body_too_large"]);
  });

  it("of a trigger with a NUL in its name and prompt still fires", async () => {
    const listing = fields(await service.request("GET", `/v1/projects/${pid}/triggers`));
    const known = (listing["triggers"] as { slug: string }[]).some(({ slug }) => slug === "nameless");
    // Either the manifest is told that it cannot be so, or the fire works: never a failure of the service.
    expect((await deliver(service, `${pid}/nameless`)).status).toBe(known ? 202 : 404);
  });
});

/** The webhook receiver: signatures, bodies and the order of its checks (spec.md 4.1, 5.4, 7.1; api.md 4 "Webhook"). */
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestService } from "../support/service/service.ts";
import { shareService } from "../support/service/shared.ts";
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
} from "../support/service/requests.ts";

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
    ["nothing [W05]", ""],
    ["a no-break space [W06]", `${digest}\u00a0`],
    ["another body's", hmac("other")],
    ["another secret's", hmac(body, "other")],
  ])("%s is 401", async (_, value) => {
    const before = await fireCount();
    for (const header of [PLATFORM, HUB]) {
      expect(seen(await push(body, { [header]: value }))).toEqual([401, "invalid_signature"]);
    }
    expect(await fireCount()).toBe(before);
  });

  it("that is wrong in the platform's header is 401 even if the other is right", async () => {
    const answer = await push(body, { [PLATFORM]: hmac("other"), [HUB]: `sha256=${digest}` });
    expect(seen(answer)).toEqual([401, "invalid_signature"]);
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

  it("follows its secret: a new one counts at once, a removed one is 409 [W31]", async () => {
    const mine = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
    await putSecret(service, mine, SECRET_NAME, "first");
    const ask = (secret: string) =>
      deliver(service, `${mine}/push`, { body, headers: { [PLATFORM]: hmac(body, secret) } });
    expect((await ask("first")).status).toBe(202);
    await putSecret(service, mine, SECRET_NAME, "second");
    expect([(await ask("first")).status, (await ask("second")).status]).toEqual([401, 202]);
    await service.request("DELETE", `/v1/projects/${mine}/secrets/${SECRET_NAME}`);
    expect(seen(await ask("second"))).toEqual([409, "secret_not_configured"]);
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

  it.each([
    "-a",
    "_a",
    "A",
    "a b",
    "a%20b",
    "a%0a",
    "%0aa",
    "a%2Fb",
    "a.b",
    "\u212a".toLowerCase() + "!",
    "%e2%84%aa",
  ])("the slug %j is 400 [W26]", async (slug) => {
    const answer = await unsigned(`${pid}/${encodeURI(decodeURIComponent(slug)).replaceAll("/", "%2F")}`);
    expect(seen(answer)).toEqual([400, "invalid_webhook_address"]);
  });

  it("a slug has 128 characters at most [W26]", async () => {
    expect((await deliver(service, `${pid}/${"a".repeat(128)}`)).status).toBe(202);
    expect((await unsigned(`${pid}/${"a".repeat(129)}`)).status).toBe(400);
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

  it("listens again when the project is active and its triggers run", async () => {
    const mine = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
    await putSecret(service, mine, SECRET_NAME, SECRET);
    for (const change of [{ status: "archived" }, { triggers_paused: true }]) {
      await service.request("PATCH", `/v1/projects/${mine}`, { body: change });
      expect((await deliver(service, `${mine}/push`)).status).toBe(404);
      await service.request("PATCH", `/v1/projects/${mine}`, {
        body: { status: "active", triggers_paused: false },
      });
      expect((await deliver(service, `${mine}/push`)).status).toBe(202);
    }
  });
});

const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

describe("a body", () => {
  it.each([
    ["that is empty is {} [W12]", "", "||{}"],
    ["that is no JSON is raw text [W13]", "a=1&b=2", '|a=1&b=2|{"raw":"a=1&b=2"}'],
    ["with a byte order mark is JSON [W15]", '\ufeff{"action":"x"}', 'x||{"action":"x"}'],
    ["that is a number renders as one [W16]", "5", "||5"],
    ["that is an array renders as one [W16]", "[1,2]", "||[1,2]"],
    ["that is null is nothing [W16]", "null", "||"],
    ["with a key twice keeps the last [W24]", '{"action":"a","action":"b"}', 'b||{"action":"b"}'],
    ["with a NUL loses it [P09]", '{"action":"a\\u0000b"}', 'ab||{"action":"a\\u0000b"}'],
    [
      "with tokens in it renders them not [P05]",
      '{"action":"{{ body.raw }}"}',
      '{{ body.raw }}||{"action":"{{ body.raw }}"}',
    ],
  ])("%s", async (_, body, prompt) => {
    expect(await promptOf(await push(body))).toBe(prompt);
  });

  it("that is not UTF-8 is signed by its bytes and read with replacement characters [W14]", async () => {
    const bytes = Buffer.from([0x7b, 0xff, 0xfe, 0x7d]);
    expect(await promptOf(await push(bytes))).toBe(
      `|{\ufffd\ufffd}|${JSON.stringify({ raw: "{\ufffd\ufffd}" })}`,
    );
  });

  it("that is compressed is never inflated [W19]", async () => {
    const body = gzipSync(Buffer.alloc(8 * MIB));
    const answer = await deliver(service, `${pid}/headers`, {
      body,
      headers: { "content-encoding": "gzip" },
    });
    expect((await promptOf(answer)) as string).toBe("||");
  });

  it("nested a million deep is raw text, and too long for a prompt [W22]", async () => {
    expect(((await promptOf(await push(deep(1_000)))) as string).startsWith("|[[[")).toBe(true);
    expect(seen(await push(deep(1_000_000)))).toEqual([500, "prompt_too_large"]);
  });

  it("with a prototype in it changes no prototype [W23]", async () => {
    const body = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"action":"x"}';
    expect((await push(body)).status).toBe(202);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("is JSON whatever its content type", async () => {
    const answer = await push('{"action":"x"}', { "content-type": "text/plain" });
    expect(await promptOf(answer)).toBe('x||{"action":"x"}');
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

  it("comes with its headers as text without control characters, bounded [W37]", async () => {
    const answer = await deliver(service, `${pid}/headers`, {
      body: "{}",
      headers: {
        "content-type": "text/<b>x</b>",
        "user-agent": "agent {{ body }}",
        "x-forwarded-for": "1.2.3.4".repeat(1_500),
      },
    });
    const prompt = String(await promptOf(answer));
    expect(prompt.startsWith("text/<b>x</b>|agent {{ body }}|1.2.3.4")).toBe(true);
    expect(prompt.length).toBeLessThan(6_000);
  });

  it("of a trigger with a NUL in its name and prompt still fires", async () => {
    const listing = fields(await service.request("GET", `/v1/projects/${pid}/triggers`));
    const known = (listing["triggers"] as { slug: string }[]).some(({ slug }) => slug === "nameless");
    // Either the manifest is told that it cannot be so, or the fire works: never a failure of the service.
    expect((await deliver(service, `${pid}/nameless`)).status).toBe(known ? 202 : 404);
  });
});

describe("third-party senders", () => {
  it("another library's HMAC is valid", async () => {
    const at = new Date(1_790_000_000_000);
    const payload = '{"action":"x"}';
    const signer = new Webhook(Buffer.from(SECRET).toString("base64"));
    const given = signer.sign("msg_1", at, payload).replace("v1,", "");
    // It signs id, instant and payload as one text: that text is our body here.
    const body = `msg_1.${Math.floor(at.getTime() / 1000)}.${payload}`;
    const headers = { [PLATFORM]: Buffer.from(given, "base64").toString("hex") };
    expect(await promptOf(await push(body, headers))).toBe(`|${body}|${JSON.stringify({ raw: body })}`);
  });
});

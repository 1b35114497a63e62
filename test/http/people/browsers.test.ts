/** Signed-in browsers as rows: their list, their ends, and what ends with them (api.md 2, 3; threats.md T03, T08). */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";
import {
  eventually,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  makeUserToken,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService();
  pid = await makeProject(service);
  expectStatus(await service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: null } }), 200);
});
afterAll(() => service.close());

/** A browser that is signed in with the token. */
const browser = async (token: string, agent = "Firefox") => {
  const headers = { "user-agent": agent };
  const answer = await service.request("POST", "/dashboard/session", {
    token: null,
    body: { token },
    headers,
  });
  const cookie = String(expectStatus(answer, 200).headers["set-cookie"]).split(";")[0] ?? "";
  const own = { cookie, "x-csrf-token": String(fields(answer)["csrf"]) };
  const ask = (method: string, target: string): Promise<Answer> =>
    service.request(method, target, { token: null, headers: own });
  /** Opens the project's events. @returns a promise for their end */
  const follow = async () => {
    const stream = await fetch(`${service.url}/v1/projects/${pid}/events`, { headers: { cookie } });
    expect(stream.status).toBe(200);
    const reader = stream.body?.getReader();
    await reader?.read();
    return {
      ended: (async () => {
        for (;;) if ((await reader?.read())?.done !== false) return "ended";
      })().catch(() => "ended"),
    };
  };
  return { cookie, ask, follow };
};

const listed = async (ask: (method: string, target: string) => Promise<Answer>) =>
  listOf(expectStatus(await ask("GET", "/v1/me/browsers"), 200), "browsers");

describe("the list of browsers", () => {
  it("shows a person hers alone, and which of them asks", async () => {
    const ben = await invitePerson(service, "Ben");
    const [phone, laptop] = [await browser(ben.token, "Phone"), await browser(ben.token, "Laptop")];
    const shown = await listed(laptop.ask);
    // The invitation's browser is the first.
    expect(shown.map(({ user_agent, current }) => [user_agent, current])).toEqual([
      ["Laptop", true],
      ["Phone", false],
      [null, false],
    ]);
    expect(shown[0]).toMatchObject({ signed_in_by: "token", address: "127.0.0.1" });
    expect((await listed(phone.ask)).map(({ current }) => current)).toEqual([false, true, false]);
    const all = await service.request("GET", "/v1/me/browsers", { token: ben.token });
    expect(listOf(all, "browsers").every(({ current }) => current === false)).toBe(true);
    expect((await listed((method, target) => service.request(method, target))).length).toBe(0);
  });

  it("is not for tokens of one project", async () => {
    const { token } = await makeUserToken(service, { project_id: pid });
    expect((await service.request("GET", "/v1/me/browsers", { token })).status).toBe(403);
  });

  it("ends one that its person chooses, and answers another person's as unknown", async () => {
    const ben = await invitePerson(service, "Ben");
    const [phone, laptop] = [await browser(ben.token, "Phone"), await browser(ben.token)];
    const [, stolen] = await listed(laptop.ask);
    const target = `/v1/me/browsers/${String(stolen?.["id"])}`;
    expect((await service.request("DELETE", target)).status).toBe(404);
    expect((await laptop.ask("DELETE", `/v1/me/browsers/${randomUUID()}`)).status).toBe(404);
    expect((await phone.ask("GET", "/v1/me")).status).toBe(200);
    expectStatus(await laptop.ask("DELETE", target), 204);
    expect((await phone.ask("GET", "/v1/me")).status).toBe(401);
    expectStatus(await laptop.ask("DELETE", "/v1/me/browsers"), 204);
    expect((await laptop.ask("GET", "/v1/me")).status).toBe(401);
    expect((await service.request("GET", "/v1/me", { token: ben.token })).status).toBe(200);
  });
});

/** Ways in which a browser's session ends, for a member of the project. */
const ENDS: readonly (readonly [
  string,
  (of: {
    readonly ben: { readonly id: string };
    readonly tokenId: string;
    readonly own: Awaited<ReturnType<typeof browser>>;
    readonly other: Awaited<ReturnType<typeof browser>>;
  }) => Promise<Answer>,
  number,
])[] = [
  ["signs out", ({ own }) => own.ask("DELETE", "/dashboard/session"), 401],
  ["is signed out by another one of its person", ({ other }) => other.ask("DELETE", "/v1/me/browsers"), 401],
  [
    "loses the token that signed it in",
    ({ tokenId }) => service.request("DELETE", `/v1/tokens/${tokenId}`),
    401,
  ],
  [
    "belongs to a person who is deactivated",
    ({ ben }) => service.request("POST", `/v1/people/${ben.id}/deactivate`),
    401,
  ],
  [
    "belongs to a person who loses her role",
    ({ ben }) => service.request("DELETE", `/v1/projects/${pid}/members/${ben.id}`),
    404,
  ],
];

describe.each(ENDS)("a browser that %s", (_, end, status) => {
  it("loses its streams at once, and the next request is refused [T03]", async () => {
    const ben = await invitePerson(service, "Ben", { roles: { [pid]: "member" } });
    const made = await service.request("POST", "/v1/tokens", { token: ben.token, body: { name: "t" } });
    const { id, token } = fields(expectStatus(made, 201));
    const [own, other] = [await browser(String(token)), await browser(ben.token)];
    const stream = await own.follow();
    const ended = await end({ ben, tokenId: String(id), own, other });
    expect([200, 204]).toContain(ended.status);
    expect(await stream.ended).toBe("ended");
    await eventually(async () => expect((await own.ask("GET", `/v1/projects/${pid}`)).status).toBe(status));
  });
});

describe("a signed-in browser", () => {
  it("costs no statement more than a token does", async () => {
    const texts: string[] = [];
    const counted = await startTestService({}, { requestStatements: (text) => texts.push(text) });
    const signedIn = await counted.request("POST", "/dashboard/session", {
      token: null,
      body: { token: counted.token },
    });
    const cookie = String(signedIn.headers["set-cookie"]).split(";")[0] ?? "";
    await counted.request("GET", "/v1/me");
    const cost = async (options: Parameters<typeof counted.request>[2]) => {
      texts.length = 0;
      expectStatus(await counted.request("GET", "/v1/tokens", options), 200);
      return texts.length;
    };
    const ofToken = await cost({});
    expect(ofToken).toBeGreaterThan(0);
    expect(await cost({ token: null, headers: { cookie } })).toBe(ofToken);
    await counted.close();
  });

  it("has a cookie that is no token, and its token is no cookie [T08]", async () => {
    const { cookie } = await browser(service.token);
    const secret = cookie.split("=")[1] ?? "";
    expect((await service.request("GET", "/v1/me", { token: secret })).status).toBe(401);
    const headers = { cookie: `platform_dashboard=${service.token}` };
    expect((await service.request("GET", "/v1/me", { token: null, headers })).status).toBe(401);
    const git = { authorization: `Basic ${Buffer.from(`x:${secret}`).toString("base64")}` };
    const refs = `/v1/git/${pid}.git/info/refs?service=git-upload-pack`;
    expect((await service.request("GET", refs, { token: null, headers: git })).status).toBe(401);
  });
});

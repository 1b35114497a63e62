/** The client's address behind the operator's proxies, wherever the service keeps or uses it (threats.md T17). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestService, type TestService } from "../support/service/service.ts";
import { eventually, expectStatus, fields, listOf, makeProject } from "../support/service/requests.ts";
import { auditOf } from "./people/audit-rows.ts";

const CLIENT = "203.0.113.7";

let behind: TestService;
let direct: TestService;
beforeAll(async () => {
  [behind, direct] = await Promise.all([
    startTestService({ PLATFORM_TRUSTED_PROXIES: "127.0.0.0/8, ::1" }),
    startTestService(),
  ]);
});
afterAll(() => Promise.all([behind.close(), direct.close()]));

const signIn = async (service: TestService, forwarded: string, token = service.token) => {
  const headers = { "x-forwarded-for": forwarded };
  const answer = await service.request("POST", "/dashboard/session", {
    token: null,
    body: { token },
    headers,
  });
  const cookie = String(answer.headers["set-cookie"]).split(";")[0] ?? "";
  return {
    answer,
    ask: (target: string) => service.request("GET", target, { token: null, headers: { cookie } }),
  };
};

describe("behind a trusted proxy", () => {
  it("rows, browsers and refused sign-ins have the client's address, whatever it forges [T17]", async () => {
    const { ask } = await signIn(behind, `10.0.0.1, unknown, ${CLIENT}, 127.0.0.9`);
    const [browser] = listOf(expectStatus(await ask("/v1/me/browsers"), 200), "browsers");
    expect(browser).toMatchObject({ address: CLIENT });
    expect((await auditOf(behind, "sign_in"))[0]).toMatchObject({ address: CLIENT, outcome: "done" });
    await signIn(behind, `127.0.0.1, ${CLIENT}`, "platform_pat_unknown");
    expect((await auditOf(behind, "sign_in"))[0]).toMatchObject({ address: CLIENT, outcome: "refused" });
  });

  it("a person who decides about a program sees the address of the program [T17]", async () => {
    const begun = await behind.request("POST", "/v1/device-logins", {
      token: null,
      headers: { "x-forwarded-for": CLIENT },
      stream: "client_name=laptop",
    });
    const { ask } = await signIn(behind, CLIENT);
    expectStatus(await ask("/v1/me"), 200);
    const look = await behind.request("POST", "/v1/device-logins/look", {
      body: { code: fields(expectStatus(begun, 200))["user_code"] },
    });
    expect(fields(expectStatus(look, 200))).toMatchObject({ address: CLIENT });
  });

  it("a refused webhook has the client's address", async () => {
    const pid = await makeProject(behind);
    const headers = { "x-forwarded-for": CLIENT };
    await behind.request("POST", `/v1/webhooks/projects/${pid}/nothing`, { token: null, body: {}, headers });
    await eventually(async () => {
      const refused = await behind.request("GET", `/v1/projects/${pid}/webhook-refusals`);
      expect(listOf(expectStatus(refused, 200), "webhook_refusals")[0]).toMatchObject({ address: CLIENT });
    });
  });

  it("no header changes the service's own address, not even a proxy's", async () => {
    const headers = {
      "x-forwarded-for": CLIENT,
      "x-forwarded-host": "evil.example",
      "x-forwarded-proto": "https",
      "x-forwarded-port": "1",
      forwarded: "host=evil.example;proto=https",
    };
    const link = await behind.request("POST", "/dashboard/links", { headers });
    expect(String(fields(expectStatus(link, 201))["url"])).toMatch(`${behind.url}/`);
    const begun = await behind.request("POST", "/v1/device-logins", {
      token: null,
      headers,
      stream: "client_name=laptop",
    });
    expect(fields(expectStatus(begun, 200))["verification_uri"]).toBe(`${behind.url}/#/device`);
    const entered = await signIn(behind, CLIENT);
    expect(String(entered.answer.headers["set-cookie"])).not.toContain("Secure");
  });
});

describe("without a trusted proxy", () => {
  it.each([CLIENT, "127.0.0.1", Array.from({ length: 1_500 }, () => "1.1.1.1").join(",")])(
    "the address is the connection's, and a header counts for nothing [T17]",
    async (forwarded) => {
      await signIn(direct, forwarded);
      expect((await auditOf(direct, "sign_in"))[0]).toMatchObject({ address: "127.0.0.1" });
    },
  );
});

/** Signing in a program without a browser (RFC 8628), by a standard OAuth client. */
import * as oauth from "openid-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectStatus, fields, listOf, makeProject } from "../../support/service/requests.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

/** An OAuth client of the service. */
const client = (): oauth.Configuration => {
  const configuration = new oauth.Configuration(
    {
      issuer: service.url,
      device_authorization_endpoint: `${service.url}/v1/device-logins`,
      token_endpoint: `${service.url}/v1/device-logins/token`,
    },
    "any-client",
    undefined,
    oauth.None(),
  );
  oauth.allowInsecureRequests(configuration);
  return configuration;
};

const begin = (configuration = client(), client_name = "Build robot") =>
  oauth.initiateDeviceAuthorization(configuration, { client_name });

const tokensNamed = async (name: string) =>
  listOf(await service.request("GET", "/v1/tokens"), "tokens").filter((token) => token["name"] === name);

const decide = (how: "look" | "approve" | "deny", body: unknown, token?: string) =>
  service.request("POST", `/v1/device-logins/${how}`, { body, ...(token !== undefined && { token }) });

/** Sends a form without an OAuth client. */
const send = async (path: string, form: Readonly<Record<string, string>>) => {
  const answer = await fetch(`${service.url}${path}`, { method: "POST", body: new URLSearchParams(form) });
  return {
    status: answer.status,
    headers: answer.headers,
    body: (await answer.json()) as Record<string, unknown>,
  };
};

const ask = (device_code: string) =>
  send("/v1/device-logins/token", {
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    device_code,
  });

describe("a program without a browser", () => {
  it("is signed in by the person who types its code, with what she chose", async () => {
    const configuration = client();
    const begun = await begin(configuration, "Whole way");
    expect(begun).toMatchObject({
      verification_uri: `${service.url}/#/device`,
      expires_in: 600,
      interval: 2,
    });
    expect(begun.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    const polled = oauth.pollDeviceAuthorizationGrant(configuration, begun);
    const project = await makeProject(service);
    const typed = begun.user_code.toLowerCase().replace("-", " ");
    const looked = fields(expectStatus(await decide("look", { code: typed }), 200));
    expect(looked).toMatchObject({ client: "Whole way", address: "127.0.0.1" });
    // eslint-disable-next-line no-restricted-properties -- the service has the real clock
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    expectStatus(await decide("approve", { code: typed, project_id: project, expires_at }), 200);
    const { access_token: token, expires_in: life = 0 } = await polled;
    expect([life > 3500, life <= 3600]).toEqual([true, true]);
    const me = fields(await service.request("GET", "/v1/me", { token }));
    expect(me).toMatchObject({ user: { name: "admin" }, token: { origin: "user", project_id: project } });
    expect(await tokensNamed("Whole way")).toMatchObject([{ project_id: project }]);
  });

  it("is on the audit record, with its approver, and without its codes [T14]", async () => {
    const begun = await begin(client(), "On record");
    const denied = await begin(client(), "Denied");
    expectStatus(await decide("approve", { code: begun.user_code }), 200);
    expectStatus(await decide("deny", { code: denied.user_code }), 204);
    const token = String((await ask(begun.device_code)).body["access_token"]);
    const events = listOf(await service.request("GET", "/v1/audit?limit=3"), "events");
    const me = { kind: "person", name: "admin" };
    expect(events).toMatchObject([
      { action: "token.created", actor: me, outcome: "done", changes: { name: "On record" } },
      { action: "device_login.denied", actor: me, changes: { client: "Denied" } },
      { action: "device_login.approved", actor: me, changes: { client: "On record" } },
    ]);
    for (const secret of [begun.user_code, begun.user_code.replace("-", ""), begun.device_code, token])
      expect(JSON.stringify(events)).not.toContain(secret);
  });

  it("is told that it was denied, and its code is over", async () => {
    const configuration = client();
    const begun = await begin(configuration);
    expectStatus(await decide("deny", { code: begun.user_code }), 204);
    await expect(oauth.pollDeviceAuthorizationGrant(configuration, begun)).rejects.toMatchObject({
      error: "access_denied",
    });
    expect(fields(expectStatus(await decide("approve", { code: begun.user_code }), 404))["code"]).toBe(
      "code_invalid",
    );
    expect((await ask(begun.device_code)).body["error"]).toBe("expired_token");
  });

  it.each([{ code: "AEIO-UAEI" }, { code: "BCDF" }, { code: "" }])(
    "has no such code: $code",
    async ({ code }) => {
      const refused = fields(expectStatus(await decide("look", { code }), 400));
      expect(refused["error"]).toBe("`code` must be the eight letters that the program shows.");
    },
  );

  it("gets no project that its person does not see, and no time in the past", async () => {
    const begun = await begin();
    const code = begun.user_code;
    expectStatus(await decide("approve", { code, project_id: "0198e0a0-0000-7000-8000-000000000001" }), 404);
    expectStatus(await decide("approve", { code, expires_at: "2020-01-01T00:00:00.000Z" }), 400);
    expect((await ask(begun.device_code)).body["error"]).toBe("authorization_pending");
  });

  it("is refused in the standard's words if its form is wrong", async () => {
    const named = (client_name: string) => send("/v1/device-logins", { client_name });
    for (const name of ["", " ", "x".repeat(101)])
      // oxlint-disable-next-line no-await-in-loop -- each by itself
      expect(await named(name)).toMatchObject({ status: 400, body: { error: "invalid_request" } });
    expect((await send("/v1/device-logins/token", { grant_type: "password" })).body["error"]).toBe(
      "unsupported_grant_type",
    );
    expect((await ask("unknown")).body["error"]).toBe("expired_token");
    const huge = await send("/v1/device-logins", { client_name: "x".repeat(5000) });
    expect(huge.status).toBe(413);
  });
});

/** Tokens that need their person's sign-in at a provider, over the real service (docs/operate/sign-in.md). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  expectStatus,
  fields,
  invitePerson,
  makeProject,
  runSession,
  sandboxEnvironment,
} from "../../support/service/requests.ts";
import { auditOf } from "./audit-rows.ts";
import { ageSignIns, Browser, startSignInWorld, type SignInWorld, withToken } from "./sign-in-world.ts";

let world: SignInWorld;
let service: TestService;
beforeAll(async () => {
  world = await startSignInWorld();
  service = world.open;
});
beforeEach(() => world.reset());
afterAll(() => world.close());

const basic = (token: string) => ({ authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}` });

/** Ben, who has a token, added his GitHub identity, and did not sign in for 31 days. */
const ben = async (id: number) => {
  world.github.user = { id, login: `ben-${id}`, name: "Ben" };
  const person = await invitePerson(service, "Ben", { role: "owner" });
  const { browser, csrf } = await withToken(service, person.token);
  expectStatus(await browser.signIn("github", { link: true }, csrf), 303);
  const pid = await makeProject(service, { files: { "a.txt": "a\n" } });
  const request: typeof service.request = (method, target, options) =>
    service.request(method, target, { token: person.token, ...options });
  const sid = await runSession({ ...service, request }, pid);
  await ageSignIns(service, person.id);
  const ask = (method: string, target: string) => service.request(method, target, { token: person.token });
  return { ...person, browser, pid, sid, ask };
};

describe("a token of a person who signed in too long ago", () => {
  it("is refused with the place where to sign in, and works again after it [T18]", async () => {
    const { ask, browser, token, pid, id } = await ben(7001);
    const refused = expectStatus(await ask("GET", "/v1/me"), 401);
    expect(refused.json).toEqual({
      error: expect.stringContaining(`Sign in at ${service.url}/ with `) as string,
      code: "sign_in_required",
      details: { sign_in_url: `${service.url}/` },
    });
    const relayed = await ask("GET", `/v1/projects/${pid}/sessions/${pid}/runtime/x`);
    expect(fields(expectStatus(relayed, 401))["code"]).toBe("sign_in_required");
    // A 401 would make git forget the password.
    const refs = `/v1/git/${pid}.git/info/refs?service=git-upload-pack`;
    const cloned = await service.request("GET", refs, { token: null, headers: basic(token) });
    expect(fields(expectStatus(cloned, 403))["code"]).toBe("sign_in_required");
    // The browser that the token opened needs it too, and the token opens no new one.
    expect(await browser.me()).toBe(401);
    const opened = await new Browser(service).ask("POST", "/dashboard/session", { token });
    expect(fields(expectStatus(opened, 401))["code"]).toBe("sign_in_required");
    const row = (await auditOf(service, "request")).find(({ actor }) => (actor as { id: string }).id === id);
    expect(row).toMatchObject({ outcome: "refused", changes: { why: "sign_in_required" } });

    const again = new Browser(service);
    expectStatus(await again.signIn("github"), 303);
    expect(await again.me()).toMatchObject({ id });
    expectStatus(await ask("GET", "/v1/me"), 200);
    expect(await browser.me()).toMatchObject({ id });
  });

  it("does not stop the agents that she started [T18]", async () => {
    const { sid } = await ben(7002);
    const { PLATFORM_CLI_TOKEN: token = "" } = await sandboxEnvironment(service, sid);
    expectStatus(await service.request("GET", "/v1/me", { token }), 200);
  });

  it("is as good as ever where no provider is set", async () => {
    const plain = await shareService();
    const person = await invitePerson(plain, "Ben");
    await ageSignIns(plain, person.id);
    expectStatus(await plain.request("GET", "/v1/me", { token: person.token }), 200);
    await plain.close();
  });
});

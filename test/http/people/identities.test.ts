/** A person's identities at providers, over the real service: their list and their removal. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { expectStatus, invitePerson, listOf } from "../../support/service/requests.ts";
import { auditOf } from "./audit-rows.ts";
import { Browser, startSignInWorld, type SignInWorld, withToken } from "./sign-in-world.ts";

let world: SignInWorld;
let service: TestService;
beforeAll(async () => {
  world = await startSignInWorld();
  service = world.invitedOnly;
});
beforeEach(() => world.reset());
afterAll(() => world.close());

const identitiesOf = async (token: string) =>
  listOf(expectStatus(await service.request("GET", "/v1/me/identities", { token }), 200), "identities");

const remove = (id: unknown, token: string) =>
  service.request("DELETE", `/v1/me/identities/${String(id)}`, { token });

/** A person with a token, with an identity at each provider. */
const person = async (number: number) => {
  world.idp.claims = { ...world.idp.claims, sub: `p-${number}` };
  world.github.user = { id: number, login: `p-${number}`, name: "Pat" };
  const made = await invitePerson(service, "Pat");
  const { browser, csrf } = await withToken(service, made.token);
  for (const provider of ["oidc", "github"] as const)
    expectStatus(await browser.signIn(provider, { link: true }, csrf), 303);
  return { ...made, browser, csrf };
};

describe("a person's identities", () => {
  it("are listed with their providers, for herself alone", async () => {
    const { token } = await person(8001);
    const common = { created_at: expect.any(String) as string, last_sign_in_at: null };
    expect(await identitiesOf(token)).toMatchObject([
      { provider: "oidc", issuer: world.idp.issuer, subject: "p-8001", name: "Ada", ...common },
      { provider: "github", issuer: "https://github.com", subject: "8001", name: "Pat", ...common },
    ]);
    await new Browser(service).signIn("github");
    expect((await identitiesOf(token))[1]).toMatchObject({ last_sign_in_at: expect.any(String) as string });
    expect(await identitiesOf(service.token)).toEqual([]);
  });

  it("end their browsers when they are removed, and can be added again [T19]", async () => {
    const { id, token, browser, csrf } = await person(8002);
    const [byGithub, byOidc] = [new Browser(service), new Browser(service)];
    await byGithub.signIn("github");
    await byOidc.signIn("oidc");
    const [, github] = await identitiesOf(token);
    expect((await remove(github?.["id"], service.token)).status).toBe(404);
    expect((await remove(randomUUID(), token)).status).toBe(404);
    expectStatus(await remove(github?.["id"], token), 204);
    expect([await byGithub.me(), (await byOidc.me()) !== 401]).toEqual([401, true]);
    expect((await auditOf(service, "identity.removed"))[0]).toMatchObject({
      actor: { id },
      target: id,
      changes: { issuer: "https://github.com", subject: "8002", name: "Pat" },
    });
    // The identity has no person now.
    expectStatus(await new Browser(service).signIn("github"), 403);
    expectStatus(await browser.signIn("github", { link: true }, csrf), 303);
    await byGithub.signIn("github");
    expect(await byGithub.me()).toMatchObject({ id });
  });
});

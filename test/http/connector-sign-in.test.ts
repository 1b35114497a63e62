/** Signing in to a connector, using its tokens, and the end of a sign-in. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { textOf } from "./executor-world.ts";
import { ConnectorWorld } from "./connector-sign-in-world.ts";

let world: ConnectorWorld;
beforeAll(async () => {
  world = await ConnectorWorld.start();
});
afterAll(() => world.close());
beforeEach(() => world.reset());

describe("a connector with oauth", () => {
  it("is signed in to by a person, and its tools are called with a token that the agent never sees", async () => {
    const project = await world.project();
    expect(await world.connector(project)).toMatchObject({ state: "needs_credential", sign_in: null });
    await world.signIn(project);
    expect(await world.connector(project)).toMatchObject({
      state: "ready",
      auth: "oauth",
      credential: null,
      sign_in: { status: "signed_in", issuer: world.login.issuer, renewed_at: null, failure: null },
    });
    world.server.answers.set("read", ({ headers }) => ({
      content: [{ type: "text", text: `asked with ${headers.authorization}` }],
    }));
    expect(textOf(await world.read(project))).toBe("asked with Bearer [redacted]");
    const form = world.login.tokenForms[0];
    expect(form?.get("resource")).toBe(world.server.url);
    expect(form?.get("redirect_uri")).toBe(`${world.service.url}/dashboard/callback/connector`);
  });
});

/** Previews of two services on one database: what one of them says of a link or a token holds at the other. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { Installation, TOKEN, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

const ROUNDS = 10;

const scope = Effect.runSync(Scope.make());
const installations: Installation[] = [];
let here: Life;
let there: Life;
let session = "";

beforeAll(async () => {
  const settings = {
    DATABASE_URL: await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope)),
    PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
    PLATFORM_SANDBOX_PROVIDER: "simulated",
    // Both are behind one name.
    PLATFORM_PREVIEW_URL: "http://*.preview.example.com",
  };
  const start = async () => {
    const installation = await Installation.open();
    installations.push(installation);
    return { installation, life: await installation.start(settings) };
  };
  const first = await start();
  here = first.life;
  there = (await start()).life;
  const projectId = await here.project(first.installation.sample);
  const { id } = await here.call("POST", `/v1/projects/${projectId}/sessions`, {});
  await here.session(projectId, String(id), ["running"]);
  session = `/v1/projects/${projectId}/sessions/${String(id)}`;
}, TEST_MS);
afterAll(async () => {
  for (const life of [here, there]) await life?.end("SIGTERM");
  for (const installation of installations) await installation.close();
  await Effect.runPromise(Scope.close(scope, Exit.void));
}, TEST_MS);

const visit = async (life: Life, target: string, headers: Readonly<Record<string, string>>) => {
  const asked = request(`${life.url}${target}`, { headers, agent: false });
  asked.end();
  const [{ statusCode, headers: told }] = (await once(asked, "response")) as [IncomingMessage];
  return { status: statusCode, cookie: told["set-cookie"]?.[0]?.split(";")[0] };
};

const link = async (token = TOKEN) => {
  const answer = await fetch(`${here.url}${session}/preview`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ port: 5173 }),
  });
  const { url } = (await answer.json()) as { readonly url: string };
  const { host, pathname, search } = new URL(url);
  return { host, target: `${pathname}${search}` };
};

it("opens a link once, despite concurrent clicks on both services", async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { host, target } = await link();
    const presses = [here, there, here, there].map((life) => visit(life, target, { host }));
    const answers = await Promise.all(presses);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 401, 401, 401]);
    expect(answers.filter(({ cookie }) => cookie !== undefined)).toHaveLength(1);
  }
});

it("accepts the other service's cookie, until its token is revoked on either", async () => {
  for (const [opener, revoker] of [
    [here, there],
    [there, here],
  ] as const) {
    const made = await here.call("POST", "/v1/tokens", { name: "previews" });
    const { host, target } = await link(String(made["token"]));
    const { cookie = "" } = await visit(opener, target, { host });
    const statuses = () =>
      Promise.all([here, there].map(async (life) => (await visit(life, "/", { host, cookie })).status));
    // Let through, by the one that has not the sandbox to the one that has it: nothing is behind a simulated one's port.
    expect(await statuses()).toEqual([502, 502]);
    await revoker.call("DELETE", `/v1/tokens/${String(made["id"])}`);
    expect(await statuses()).toEqual([401, 401]);
  }
});

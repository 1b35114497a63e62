/** Project secrets through the API (api.md 5): what is refused, and that no value comes back anywhere. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Keyring } from "../../../src/services/keyring.ts";
import { sealSecret } from "../../../src/domain/secret/secret.ts";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { Secrets } from "../../../src/store/ports/projects/secrets.ts";
import { readEvents } from "../../support/service/event-stream.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  fields,
  makeProject,
  runSession,
  stopSession,
  webhookEntry,
} from "../../support/service/requests.ts";

const KIB = 1024;

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, {
    files: { "platform.toml": `[env]\nrequired = ["NEEDED"]\noptional = ["MAYBE"]\n${webhookEntry("push")}` },
  });
});
afterAll(() => service.close());

const put = (name: string, value: unknown, project = pid): Promise<Answer> =>
  service.request("PUT", `/v1/projects/${project}/secrets/${name}`, { body: { value } });
const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];
const list = async (project = pid) => fields(await service.request("GET", `/v1/projects/${project}/secrets`));

describe("a secret's name", () => {
  it.each([
    ["PLATFORM_X", "reserved_name"],
    ["PATH", "unsafe_name"],
    ["A=B", "invalid_name"],
    ["A\0B", "invalid_name"],
    ["\u{ff30}LATFORM_X", "invalid_name"],
  ])("%j is refused as %s [S01] [S02] [S03] [S05]", async (name, code) => {
    expect(seen(await put(encodeURIComponent(name), "x"))).toEqual([400, code]);
  });

  it("has no length limit of its own", async () => {
    expect((await put(`A${"B".repeat(1_000)}`, "x")).status).toBe(201);
  });
});

it("can be deleted even if its name is refused today", async () => {
  const project = await makeProject(service);
  const { id: userId } = fields(await service.request("GET", "/v1/me"))["user"] as { readonly id: string };
  await service.inside(
    Effect.gen(function* () {
      const place = { projectId: project, name: "HTTP_PROXY", version: 1 };
      const keyring = (yield* Keyring).secrets;
      const envelope = sealSecret(keyring, place, { value: "a proxy", nonce: new Uint8Array(12) });
      yield* (yield* Secrets).put({ ...place, envelope }, { userId, now: 0 });
    }),
  );
  const sid = await runSession(service, project);
  await stopSession(service, project, sid);
  expect((await service.request("DELETE", `/v1/projects/${project}/secrets/HTTP_PROXY`)).status).toBe(204);
  expect((await list(project))["secrets"]).toEqual([]);
});

it("reports whether its value is masked in logs, at its setting and in the listing", async () => {
  const project = await makeProject(service);
  expect(fields(await put("SHORT", "12345", project))).toMatchObject({ name: "SHORT", masked: false });
  expect(fields(await put("LONG", "123456", project))).toMatchObject({ name: "LONG", masked: true });
  const { secrets } = await list(project);
  expect(secrets).toEqual([
    expect.objectContaining({ name: "LONG", masked: true }),
    expect.objectContaining({ name: "SHORT", masked: false }),
  ]);
});

describe("a secret's value", () => {
  it.each([
    ["with a NUL", "a\0b"],
    ["no text", 5],
  ])("that is %s is refused [S04]", async (_, value) => {
    expect((await put("VALUE", value)).status).toBe(400);
  });

  it("reaches the sandbox byte for byte [S04]", async () => {
    const project = await makeProject(service);
    const values = {
      LINES: "line\nend\n",
      LETTERS: "ünï€ 🎉",
      LONG: "x".repeat(64 * KIB),
      BLANKS: " blanks ",
      PATTERNS: "{{ body }} $& ${x}",
    };
    for (const [name, value] of Object.entries(values))
      expect((await put(name, value, project)).status).toBe(201);
    const sid = await runSession(service, project);
    const given = await service.inside(
      Effect.map(
        Effect.flatMap(SimulatedSandboxes, ({ all }) => all),
        (all) => [...all.values()].find(({ spec }) => spec.sessionId === sid),
      ),
    );
    expect(given?.spec.secrets).toEqual(values);
    expect(given?.spec.environment["LINES"]).toBeUndefined();
    await stopSession(service, project, sid);
  });

  it("belongs to a set of at most 1 MiB [S04]", async () => {
    const project = await makeProject(service);
    const statuses: number[] = [];
    for (let n = 0; n < 17; n += 1)
      statuses.push((await put(`BIG_${n}`, "x".repeat(64 * KIB), project)).status);
    expect(statuses.indexOf(400)).toBeGreaterThanOrEqual(15);
    expect(statuses.slice(0, 15)).toEqual(Array.from({ length: 15 }, () => 201));
  });
});

describe("the secrets of a project", () => {
  it("are listed by name with the manifest's declarations, and a revision that changes", async () => {
    const before = await list();
    expect(before["declared"]).toEqual({ required: ["NEEDED"], optional: ["MAYBE"], missing: ["NEEDED"] });
    expect((await put("NEEDED", "one")).status).toBe(201);
    const first = await list();
    expect((await put("NEEDED", "two")).status).toBe(200);
    const second = await list();
    expect((await service.request("DELETE", `/v1/projects/${pid}/secrets/NEEDED`)).status).toBe(204);
    const third = await list();
    expect((await service.request("DELETE", `/v1/projects/${pid}/secrets/NEEDED`)).status).toBe(404);
    expect(new Set([before, first, second, third].map(({ revision }) => revision)).size).toBe(4);
    expect(first["declared"]).toMatchObject({ missing: [] });
    const names = (listing: typeof first) =>
      (listing["secrets"] as { name: string }[]).map(({ name }) => name);
    expect([names(first).includes("NEEDED"), names(third).includes("NEEDED")]).toEqual([true, false]);
  });

  it("accept concurrent writes of one name: each is answered, and one value remains", async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => put("RACED", `value ${n}`)));
    for (const { status } of answers) expect([200, 201, 409]).toContain(status);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  });
});

it("appear in no answer, log line, event, ledger row or database column as plain text [S06] [S10]", async () => {
  const canary = "canary-7f3a9c1e5b2d";
  const project = await makeProject(service, {
    files: { "platform.toml": webhookEntry("push", "{{ body }}{{ env }}") },
  });
  const events = await readEvents(`${service.url}/v1/projects/${project}/events`, { token: service.token });
  const answers: Answer[] = [];
  const ask = async (method: string, rest: string, body?: unknown) => {
    const answer = await service.request(method, `/v1/projects/${project}${rest}`, { body });
    answers.push(answer);
    return answer;
  };
  await ask("PUT", "/secrets/HOOK_SECRET", { value: canary });
  await ask("PUT", "/secrets/OTHER", { value: `${canary}\n` });
  await ask("PUT", "/secrets/PATH", { value: canary });
  await ask("PUT", "/secrets/OTHER", { value: `${canary}\0` });
  await ask("PUT", "/secrets/OTHER", { value: canary, more: canary.length });
  answers.push(await deliver(service, `${project}/push`, { body: "{}" }));
  const sid = await runSession(service, project);
  service.daemon.become("unreachable");
  for (const rest of [
    "",
    "/secrets",
    "/triggers",
    "/fires",
    "/sessions",
    `/sessions/${sid}`,
    `/sessions/${sid}/sandbox`,
  ]) {
    await ask("GET", rest);
  }
  await ask("GET", `/sessions/${sid}/logs?follow=0`);
  await ask("POST", "/triggers/push/preview", { kind: "manual" });
  await ask("DELETE", "/secrets/OTHER");
  await ask("POST", `/sessions/${sid}/stop`);
  service.daemon.become("ready");
  await events.until(({ data }) => JSON.stringify(data).includes("stopped"));
  events.close();
  const rows = await service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const tables = yield* sql<{ readonly name: string }>`
        SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`;
      const found = yield* Effect.forEach(
        tables,
        ({ name }) =>
          sql`SELECT ${name} AS name FROM ${sql(name)} AS row WHERE row::text LIKE ${`%${canary}%`}
          OR row::text LIKE ${`%${Buffer.from(canary).toString("hex")}%`}`,
      );
      return found.flat();
    }),
  );
  expect(rows).toEqual([]);
  const everything = [
    ...answers.map(({ text }) => text),
    ...service.logs,
    JSON.stringify(events.events),
  ].join("\n");
  expect(everything).toContain("HOOK_SECRET");
  expect(everything).not.toContain(canary);
});

const tryIt = (name: string): Promise<Answer> =>
  service.request("POST", `/v1/projects/${pid}/secrets/${name}/try`);

const trying = (name: string, value: string): Promise<Answer> =>
  service.request("PUT", `/v1/projects/${pid}/secrets/${name}`, { body: { value, try: true } });

describe("a model's key", () => {
  it("is tried if it is set, and no other secret is", async () => {
    expect(seen(await tryIt("NPM_TOKEN"))).toEqual([409, "not_a_model_key"]);
    expect((await tryIt("GROQ_API_KEY")).status).toBe(404);
    await put("GROQ_API_KEY", "gsk-canary-8812");
    const answer = await tryIt("GROQ_API_KEY");
    // The service of the tests asks no provider.
    expect([answer.status, fields(answer)]).toMatchObject([200, { provider: "groq", outcome: "unknown" }]);
    expect(answer.text).not.toContain("canary");
    const { secrets } = await list();
    expect(secrets).toContainEqual(expect.objectContaining({ name: "GROQ_API_KEY", provider: "groq" }));
  });

  it("is saved only if its provider accepts it, where the caller wishes it to be tried", async () => {
    const refusal = await trying("MISTRAL_API_KEY", "canary-5512");
    expect(seen(refusal)).toEqual([422, "provider_refused"]);
    expect(fields(refusal)["error"]).toBe(
      "api.mistral.ai is not asked by this service. Check whether this service's machine can reach the provider. Sandboxes need to reach it, too. Nothing was saved.",
    );
    expect(seen(await trying("MISTRAL_API_KEY", "a key"))).toEqual([422, "provider_refused"]);
    expect((await list())["secrets"]).not.toContainEqual(
      expect.objectContaining({ name: "MISTRAL_API_KEY" }),
    );
    expect((await trying("NO_MODEL_KEY", "any value")).status).toBe(201);
    expect((await put("MISTRAL_API_KEY", "canary-5512")).status).toBe(201);
  });
});

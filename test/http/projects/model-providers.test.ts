/** `/v1/model-providers`: the account's providers of models. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  reached,
  refusal,
} from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

const TARGET = "/v1/model-providers";
const KEY = "sk-canary-of-the-account";

let service: TestService;
let server: Server;
let url: string;
const asked: IncomingMessage[] = [];
let listed: readonly string[] = ["large", "two words", "small"];

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(request);
    if (request.url === "/moved/models")
      return void response.writeHead(302, { location: "/v1/models" }).end();
    const isKnown = request.headers.authorization === `Bearer ${KEY}`;
    response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" });
    response.end(
      JSON.stringify(
        isKnown
          ? { data: listed.map((id) => ({ id })) }
          : { error: { message: `No account has the key ${request.headers.authorization?.slice(7)}.` } },
      ),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  service = await startTestService(
    { PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1,localhost", PLATFORM_AGENT_RUNTIMES: "claude-code" },
    { needsModel: true },
  );
});
afterAll(async () => {
  await service?.close();
  server.close();
});

const post = (body: object, token?: string) =>
  service.request("POST", TARGET, { body, ...(token !== undefined && { token }) });
const patch = (id: unknown, body: object) => service.request("PATCH", `${TARGET}/${String(id)}`, { body });
const acme = (name: string, more: object = {}) => ({
  name,
  kind: "openai-compatible",
  base_url: url,
  key: KEY,
  ...more,
});

describe("a provider of models", () => {
  it("gives projects without a key of their own a model, in the menus and for a session", async () => {
    const pid = await makeProject(service);
    const get = async (rest: string) =>
      fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/${rest}`), 200));
    const start = () => service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} });
    expect(expectStatus(await start(), 422).json).toMatchObject({ code: "no_model" });
    const { id } = fields(expectStatus(await post(acme("menu")), 201));
    expect((await get("setup"))["model"]).toMatchObject({ model: "menu/large", source: "account" });
    const options = await get("session-options");
    expect(options).toMatchObject({ default_model: "menu/large", models: ["menu/large", "menu/small"] });
    expectStatus(await patch(id, { prices: { small: { input: 1, cached: 1, output: 2 } } }), 200);
    expect((await get("session-options"))["model_choices"]).toEqual([
      { id: "menu/large" },
      { id: "menu/small", price: { input: 1, cached: 1, output: 2 } },
    ]);
    expect(options["runtimes"]).toContainEqual(
      expect.objectContaining({ name: "opencode", provider_models: ["menu/large", "menu/small"] }),
    );
    expectStatus(await start(), 201);
    expectStatus(await service.request("DELETE", `${TARGET}/${String(id)}`), 204);
  });

  it("is tried when it is saved, offers what it lists, and never shows its key", async () => {
    const made = fields(expectStatus(await post(acme("first")), 201));
    expect(made).toMatchObject({ name: "first", has_key: true, models: ["large", "small"] });
    expect(made["tried_at"]).toMatch(/^\d{4}-/);
    expect(asked.at(-1)?.url).toBe("/v1/models");
    const member = await invitePerson(service, "Ben");
    const read = await service.request("GET", TARGET, { token: member.token });
    const { models_left_out: leftOut, ...shown } = made;
    expect(leftOut).toBe(0);
    expect(listOf(read, "model_providers")).toContainEqual(shown);
    expect(`${read.text}${service.logs.join("\n")}`).not.toContain(KEY);
  });

  it("has a default that an agent can work with, whatever it lists first", async () => {
    const former = listed;
    listed = ["text-embedding-3", "large"];
    const { id, models } = fields(expectStatus(await post(acme("sorted")), 201));
    expect(models).toEqual(["large", "text-embedding-3"]);
    listed = former;
    expectStatus(await service.request("DELETE", `${TARGET}/${String(id)}`), 204);
  });

  it("is not saved if it refuses, and its own words say why, without the key", async () => {
    const wrong = "sk-wrong-key";
    const answer = expectStatus(await post(acme("second", { key: wrong })), 422);
    expect(answer.json).toMatchObject({ code: "provider_refused" });
    expect(String(fields(answer)["error"])).toMatch(
      /rejects the key \(401\)\. It says: No account has the key \(key\)\..*Nothing was saved\.$/,
    );
    expect(answer.text).not.toContain(wrong);
    const saved = await post(acme("second", { key: wrong, models: ["m"], try: false }));
    expect(fields(expectStatus(saved, 201))).toMatchObject({ models: ["m"], tried_at: null });
  });

  it("may have a private address only where the operator allows it, and the refusal names the setting", async () => {
    const wish = acme("third", { base_url: "http://10.0.0.1/v1" });
    const answer = expectStatus(await post(wish), 422);
    expect(fields(answer)["error"]).toContain(
      "add 10.0.0.1 to the hosts of PLATFORM_CONNECTOR_ALLOW_HOSTS, and restart the service. The service calls the provider",
    );
    const untried = await post({ ...wish, models: ["m"], try: false });
    expect(expectStatus(untried, 422).json).toEqual(answer.json);
  });

  it("that redirects is not saved, and the refusal names the redirect", async () => {
    const answer = expectStatus(await post(acme("moved", { base_url: url.replace("/v1", "/moved") })), 422);
    expect(fields(answer)["error"]).toBe(
      `${new URL(url).host} answers with a redirect to ${url}/models, which is not followed. Its base URL may be another one. Nothing was saved.`,
    );
  });

  it("says how many of its models were left out", async () => {
    const former = listed;
    listed = Array.from({ length: 203 }, (_, index) => `m${index}`);
    const made = fields(expectStatus(await post(acme("many")), 201));
    expect([(made["models"] as readonly string[]).length, made["models_left_out"]]).toEqual([200, 3]);
    listed = former;
    expectStatus(await service.request("DELETE", `${TARGET}/${String(made["id"])}`), 204);
  });

  it("keeps its key when its models change, and asks for it again before it is sent to another host", async () => {
    const { id } = fields(expectStatus(await post(acme("fourth")), 201));
    const narrowed = fields(expectStatus(await patch(id, { models: ["small"] }), 200));
    expect(narrowed).toMatchObject({ models: ["small"], has_key: true });
    const before = asked.length;
    const elsewhere = { base_url: url.replace("127.0.0.1", "localhost"), try: false };
    expect(expectStatus(await patch(id, elsewhere), 400).text).toContain("given again");
    expect(asked).toHaveLength(before);
    expect(fields(expectStatus(await patch(id, { ...elsewhere, key: "" }), 200))).toMatchObject({
      has_key: false,
    });
  });

  it("has a name of its own, a known form, and goes with its key", async () => {
    const { id } = fields(expectStatus(await post(acme("fifth")), 201));
    expect(expectStatus(await post(acme("fifth")), 409).json).toMatchObject({ code: "name_taken" });
    expectStatus(await post(acme("No")), 400);
    expectStatus(await post({ name: "bare", kind: "openai-compatible", key: KEY }), 400);
    expectStatus(await post(acme("none", { try: false })), 400);
    expectStatus(await service.request("DELETE", `${TARGET}/${String(id)}`), 204);
    expectStatus(await service.request("DELETE", `${TARGET}/${String(id)}`), 404);
  });
});

const postTo = (target: string, body: object, token?: string) =>
  service.request("POST", target, { body, ...(token !== undefined && { token }) });
const optionsFor = async (pid: string, token?: string) => {
  const target = `/v1/projects/${pid}/session-options`;
  return fields(
    expectStatus(await service.request("GET", target, token === undefined ? {} : { token }), 200),
  );
};
/** A provider `layered` among the options. */
const row = (owner: string, models: readonly string[], unused: string | null): unknown =>
  expect.objectContaining({ name: "layered", owner, models, unused });

describe("a provider of a project or a person", () => {
  it("is tried as the account's, is seen below its owner only, and the narrowest one is used and is the default", async () => {
    const pid = await makeProject(service);
    const ben = await invitePerson(service, "Ben");
    const wide = fields(expectStatus(await postTo(TARGET, acme("layered")), 201));
    const ofProject = `/v1/projects/${pid}/model-providers`;
    const refused = expectStatus(await postTo(ofProject, acme("layered", { key: "sk-wrong" })), 422);
    expect(refused.json).toMatchObject({ code: "provider_refused" });
    const shared = fields(
      expectStatus(await postTo(ofProject, acme("layered", { models: ["shared"] })), 201),
    );
    const own = fields(
      expectStatus(
        await postTo("/v1/me/model-providers", acme("layered", { models: ["own"] }), ben.token),
        201,
      ),
    );
    expect([wide["owner"], shared["owner"], own["owner"]]).toEqual(["account", "project", "person"]);
    const again = expectStatus(await postTo("/v1/me/model-providers", acme("layered"), ben.token), 409);
    expect(again.text).toContain("You have a model provider layered.");
    const hers = await optionsFor(pid, ben.token);
    expect(hers).toMatchObject({ default_model: "layered/own" });
    expect(hers["providers"]).toEqual(
      expect.arrayContaining([
        row("person", ["own"], null),
        row("project", ["shared"], "person"),
        row("account", ["large", "small"], "person"),
      ]),
    );
    const others = await optionsFor(pid);
    expect(others).toMatchObject({ default_model: "layered/shared" });
    expect(others["providers"]).toContainEqual(row("account", ["large", "small"], "project"));
    const setup = fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/setup`), 200));
    expect(setup["model"]).toMatchObject({ model: "layered/shared", source: "project" });
    for (const target of [`${TARGET}/${String(own["id"])}`, `${ofProject}/${String(own["id"])}`])
      expectStatus(await service.request("DELETE", target), 404);
    expect(listOf(await service.request("GET", "/v1/me/model-providers"), "model_providers")).toEqual([]);
    expect(listOf(await service.request("GET", ofProject), "model_providers")).toEqual([shared]);
    expectStatus(await service.request("DELETE", `${TARGET}/${String(wide["id"])}`), 204);
  });
});

const MANIFEST = `
[agents.claude]
runtime = "claude-code"

[agents.wrong]
runtime = "claude-code"
model = "antropic/large"

[agents.set-up]
model = "own/large"

[[triggers]]
slug = "yearly"
type = "cron"
cron = "0 0 0 1 1 *"
agent = "wrong"
prompt = "Hi"
`;

describe("a model whose provider is unknown, or not spoken by the runtime", () => {
  const UNKNOWN = [422, "unknown_model"];
  let pid = "";
  let talk: unknown;
  const at = (rest: string) => `/v1/projects/${pid}/${rest}`;
  const start = (agent: string, model?: string) =>
    service.request("POST", at("sessions"), { body: { agent_name: agent, agent_model: model } });
  beforeAll(async () => {
    pid = await makeProject(service, { files: { "platform.toml": MANIFEST } });
    const made = await post(acme("talk", { kind: "anthropic", models: ["large"], try: false }));
    talk = fields(expectStatus(made, 201))["id"];
    expectStatus(await post(acme("chat", { models: ["large"], try: false })), 201);
  });

  it("is refused where a session is created, with what there is", async () => {
    const mistyped = await start("claude", "antropic/large");
    expect(refusal(mistyped)).toEqual(UNKNOWN);
    expect(mistyped.text).toContain("no model provider antropic");
    expect(mistyped.text).toContain("talk/large");
    expect(refusal(await start("claude", "chat/large"))).toEqual(UNKNOWN);
    expect(refusal(await start("default", "antropic/large"))).toEqual(UNKNOWN);
    expect(refusal(await start("wrong"))).toEqual(UNKNOWN);
    // A provider may have more models than it lists.
    expectStatus(await start("claude", "talk/unlisted"), 201);
    expectStatus(await start("default", "chat/unlisted"), 201);
  });

  it("is not refused if the repository configures providers of its own", async () => {
    const files = { "platform.toml": MANIFEST, "opencode.json": '{"provider": {"own": {}}}' };
    const other = await makeProject(service, { files });
    const body = { agent_name: "set-up" };
    expectStatus(await service.request("POST", `/v1/projects/${other}/sessions`, { body }), 201);
    expect(refusal(await start("set-up"))).toEqual(UNKNOWN);
  });

  it("is the problem of its agent in the menus, and why a fire fails", async () => {
    const options = fields(expectStatus(await service.request("GET", at("session-options")), 200));
    expect(options["agent_choices"]).toMatchObject([
      { name: "default", problem: null },
      { name: "claude", problem: null },
      { name: "set-up", problem: expect.stringContaining("no model provider own") as string },
      { name: "wrong", problem: expect.stringContaining("no model provider antropic") as string },
    ]);
    const fired = await service.request("POST", at("triggers/yearly/fire"), { body: {} });
    expect(refusal(fired)).toEqual(UNKNOWN);
    const [fire] = listOf(await service.request("GET", at("fires")), "fires");
    expect(fire).toMatchObject({ status: "failed", reason: "unknown_model" });
  });

  it("is refused with a message, and at a restart once its provider is gone", async () => {
    const sid = String(fields(expectStatus(await start("claude", "talk/large"), 201))["id"]);
    await reached(service, pid, sid, "running");
    const say = (model?: string) =>
      service.request("POST", at(`sessions/${sid}/messages`), {
        body: { id: randomUUID(), text: "Hi", model },
      });
    expect(refusal(await say("chat/large"))).toEqual(UNKNOWN);
    expectStatus(await say("talk/unlisted"), 201);
    expectStatus(await service.request("POST", at(`sessions/${sid}/stop`), { body: {} }), 200);
    await reached(service, pid, sid, "stopped");
    expectStatus(await service.request("DELETE", `${TARGET}/${String(talk)}`), 204);
    expect(refusal(await say())).toEqual([409, "unknown_model"]);
  });
});

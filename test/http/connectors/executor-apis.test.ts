/** Connectors of the kinds `openapi` and `http` through the whole gateway. The API behind them is a real server. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { json, PETS, startPetsServer, type PetsServer } from "../../support/servers/pets-server.ts";
import {
  eventually,
  expectStatus,
  fields,
  listOf,
  mergeFiles,
  type Fields,
} from "../../support/service/requests.ts";
import { openapiEntry, RULES } from "./executor-apis-entries.ts";
import { CREDENTIAL, ExecutorWorld, textOf } from "./executor-world.ts";

let world: ExecutorWorld;
let pets: PetsServer;
beforeAll(async () => {
  world = await ExecutorWorld.start();
  pets = await startPetsServer();
});
afterAll(async () => {
  await world.close();
  await pets.close();
});
beforeEach(() => {
  pets.requests.length = 0;
  pets.answer = null;
  pets.description = PETS;
});

const openapi = (more: string): string => openapiEntry(pets.url, more);

const FILE = `description_file = "api/pets.yaml"\nauth = "bearer"\n`;

const http = (operations: string, more = ""): string => `
[[connectors]]
slug = "pets"
kind = "http"
url = "${pets.url}"
headers = { "X-Team" = "core" }
${more}
${operations}${RULES}`;

const operation = (name: string, path: string, more = ""): string => `
[[connectors.operations]]
name = "${name}"
description = "Does ${name}."
path = "${path}"
parameters = [ { name = "id", in = "path", type = "integer" } ]
${more}
`;

const listed = async (pid: string): Promise<Fields> => {
  const answer = await world.service.request("GET", `/v1/projects/${pid}/connectors`);
  return listOf(expectStatus(answer, 200), "connectors")[0] ?? {};
};

const toolsOf = async (pid: string): Promise<readonly string[]> =>
  ((await world.catalogueOf(pid, "pets"))["tools"] as readonly Fields[]).map(
    ({ name, request, state }) => `${name}: ${request}, ${state}`,
  );

const accept = async (pid: string): Promise<void> => {
  const { pin } = fields(expectStatus(await world.change(pid, { action: "refresh" }, "pets"), 200));
  expectStatus(await world.change(pid, { action: "accept", pin }, "pets"), 200);
};

/** A project whose description is a file, connected and accepted. */
const connected = async (more = FILE): Promise<string> => {
  const pid = await world.newProject(openapi(more), { "api/pets.yaml": PETS });
  await world.connect(pid, "pets");
  return pid;
};

describe("a connector of the kind openapi", () => {
  it("has its tools as soon as its file is on the default branch, without a credential and a request", async () => {
    const pid = await world.newProject(openapi(FILE), { "api/pets.yaml": PETS });
    await eventually(async () =>
      expect(await toolsOf(pid)).toEqual([
        "add_pet: POST /pets, new",
        "delete_pets_petId: DELETE /pets/{petId}, new",
        "find_owner: POST /owners/search, new",
        "get_pet: GET /pets/{petId}, new",
        "list_pets: GET /pets, new",
        "rename_pet: PATCH /pets/{petId}, new",
      ]),
    );
    expect((await world.catalogueOf(pid, "pets"))["left_out"]).toContainEqual({
      name: "set_photo",
      why: "Its body is neither JSON nor a form: multipart/form-data.",
    });
    await eventually(async () =>
      expect(await listed(pid)).toMatchObject({
        kind: "openapi",
        state: "needs_credential",
        usable: 0,
        to_accept: 6,
      }),
    );
    expect(pets.requests).toEqual([]);
  });

  it("is found, called by name and by search, on record, with a credential that the agent never sees", async () => {
    const project = await connected();
    const { by, rows } = await world.freshSession(project);
    const names = await world.withClient(async (client) => (await client.listTools()).tools, { by, project });
    expect(names.map(({ name }) => name)).toContain("pets_get_pet");
    expect(textOf(await world.call("find_tools", { query: "adds a pet" }, { by, project }))).toContain(
      "pets_add_pet",
    );
    const result = await world.withClient(
      (client) => client.callTool({ name: "pets_get_pet", arguments: { petId: 1 } }),
      { by, project },
    );
    expect(result).toMatchObject({
      content: [{ type: "text", text: '{"id":1,"name":"Tom","kind":"cat"}' }],
      structuredContent: { id: 1, name: "Tom", kind: "cat" },
    });
    const added = await world.call(
      "call_tool",
      { name: "pets_add_pet", arguments: { body: { name: "Kit" }, "X-Request-Id": "r-1" } },
      { by, project },
    );
    expect(textOf(added)).toBe('{"kind":"cat","name":"Kit","id":3}');
    expect(
      pets.requests.map(({ method, target, headers }) => [method, target, headers.authorization]),
    ).toEqual([
      ["GET", "/api/pets/1", `Bearer ${CREDENTIAL}`],
      ["POST", "/api/pets", `Bearer ${CREDENTIAL}`],
    ]);
    expect(pets.requests[1]?.headers["x-request-id"]).toBe("r-1");
    expect(JSON.stringify(pets.requests)).not.toContain(by);
    expect(await rows()).toMatchObject([
      { tool: "add_pet", outcome: "ok", upstream_status: 201, rule: "*", origin: pets.origin },
      { tool: "get_pet", outcome: "ok", upstream_status: 200, arguments_preview: '{"petId":1}' },
    ]);
  });

  it("hides a tool whose request or schema a merge changed, until a person accepts it [K05]", async () => {
    const project = await connected();
    const { by } = await world.freshSession(project);
    // Name, description and arguments stay the same.
    const moved = PETS.replace("  /pets/{petId}:", "  /admins/{petId}:");
    await mergeFiles(world.service, project, { "api/pets.yaml": moved });
    await eventually(async () =>
      expect(await toolsOf(project)).toContain("get_pet: GET /admins/{petId}, changed"),
    );
    expect(textOf(await world.call("pets_get_pet", { petId: 1 }, { by, project }))).toContain(
      "no person has accepted it",
    );
    expect(textOf(await world.call("pets_list_pets", {}, { by, project }))).toContain("Tom");
    await accept(project);
    await world.call("pets_get_pet", { petId: 1 }, { by, project });
    expect(pets.requests.map(({ target }) => target)).toEqual(["/api/pets", "/api/admins/1"]);
  });

  it("says why its description cannot be used, and the tools that were accepted go on", async () => {
    const project = await connected();
    const { by } = await world.freshSession(project);
    for (const [text, message] of [
      ["openapi: 3.1.0", "The description api/pets.yaml cannot be used. It has no paths."],
      ["a: &a [*a]", "It is neither JSON nor YAML that can be read"],
    ] as const) {
      // eslint-disable-next-line no-await-in-loop -- one merge after the other
      await mergeFiles(world.service, project, { "api/pets.yaml": text });
      // eslint-disable-next-line no-await-in-loop
      await eventually(async () =>
        expect(await listed(project)).toMatchObject({
          state: "failed",
          failure: expect.stringContaining(message),
        }),
      );
    }
    const elsewhere = openapi(FILE).replace("pets.yaml", "none.yaml");
    await mergeFiles(world.service, project, { "platform.toml": elsewhere });
    const failure = "The default branch has no file api/none.yaml of at most 4194304 bytes.";
    await eventually(async () => expect(await listed(project)).toMatchObject({ failure }));
    expect(textOf(await world.call("pets_get_pet", { petId: 1 }, { by, project }))).toContain("Tom");
    await mergeFiles(world.service, project, {
      "platform.toml": openapi(FILE) + "\n",
      "api/pets.yaml": `${PETS}\n`,
    });
    await eventually(async () =>
      expect(await listed(project)).toMatchObject({ state: "ready", failure: null }),
    );
  });

  it("takes its description from its own origin, with its credential, and asks no server that it names [K19]", async () => {
    const evil = await startPetsServer();
    pets.description = PETS.replace("http://169.254.169.254/latest", evil.url).replace(
      '"#/components/schemas/Pet"',
      `"${evil.origin}/openapi.yaml#/components/schemas/Pet"`,
    );
    const project = await connected(`auth = "bearer"\ndescription_url = "${pets.origin}/openapi.yaml"\n`);
    const { by } = await world.freshSession(project);
    expect(textOf(await world.call("pets_get_pet", { petId: 2 }, { by, project }))).toContain("Rex");
    expect(pets.requests.map(({ target, headers }) => [target, headers.authorization])).toEqual([
      ["/openapi.yaml", `Bearer ${CREDENTIAL}`],
      ["/api/pets/2", `Bearer ${CREDENTIAL}`],
    ]);
    expect(evil.requests).toEqual([]);
    pets.description = PETS.replace("Shows a pet.", `Shows ${CREDENTIAL}.`);
    await world.change(project, { action: "refresh" }, "pets");
    expect(JSON.stringify(await world.catalogueOf(project, "pets"))).not.toContain(CREDENTIAL);
    await evil.close();
  });
});

describe("a connector of the kind http", () => {
  it("has the tools of the manifest, and follows each merge", async () => {
    const project = await world.newProject(
      http(operation("get_pet", "/pets/{id}") + operation("old_pet", "/old/{id}")),
    );
    await eventually(async () =>
      expect(await listed(project)).toMatchObject({ kind: "http", state: "needs_acceptance", to_accept: 2 }),
    );
    await accept(project);
    const { by } = await world.freshSession(project);
    expect(textOf(await world.call("pets_get_pet", { id: 2 }, { by, project }))).toContain("Rex");
    expect(pets.requests[0]?.headers["x-team"]).toBe("core");
    await mergeFiles(world.service, project, {
      "platform.toml": http(operation("get_pet", "/pets/{id}") + operation("new_pet", "/new/{id}")),
    });
    await eventually(async () =>
      expect(await toolsOf(project)).toEqual([
        "get_pet: GET /pets/{id}, accepted",
        "new_pet: GET /new/{id}, new",
      ]),
    );
    expect((await world.catalogueOf(project, "pets"))["removed"]).toEqual(["old_pet"]);
    expect(textOf(await world.call("pets_old_pet", { id: 1 }, { by, project }))).toContain(
      "No tool has the name",
    );
    expect(textOf(await world.call("pets_get_pet", { id: 2 }, { by, project }))).toContain("Rex");
  });

  it("has no tools any more once it is a connector of another kind at the same URL", async () => {
    const entries = http(operation("get_pet", "/pets/{id}"));
    const project = await world.newProject(entries);
    await accept(project);
    const { by } = await world.freshSession(project);
    await mergeFiles(world.service, project, {
      "platform.toml": `[[connectors]]\nslug = "pets"\nkind = "mcp"\nurl = "${pets.url}"\n${RULES}`,
    });
    await eventually(async () =>
      expect(await listed(project)).toMatchObject({ kind: "mcp", state: "needs_refresh", usable: 0 }),
    );
    expect(textOf(await world.call("pets_get_pet", { id: 1 }, { by, project }))).toContain(
      "No tool has the name",
    );
    expect(pets.requests).toEqual([]);
  });
});

/** Of `user:password`, the password. */
const secretOf = (value: string): string => value.slice(value.indexOf(":") + 1);

it("an HTTP API gets its credential by Basic authentication, and neither part of it is in an answer [K06]", async () => {
  const value = "user:long-password";
  const pid = await world.newProject(openapi('description_file = "api/pets.yaml"\nauth = "basic"\n'), {
    "api/pets.yaml": PETS,
  });
  const put = (body: Fields) =>
    world.service.request("PUT", `/v1/projects/${pid}/connectors/pets/credential`, { body });
  expectStatus(await put({ value: "no-colon-here" }), 400);
  expectStatus(await put({ value }), 200);
  await accept(pid);
  const { by, rows } = await world.freshSession(pid);
  const forms = [value, secretOf(value)].flatMap((each) => [
    each,
    Buffer.from(each).toString("base64"),
    Buffer.from(each).toString("hex"),
  ]);
  pets.answer = (request, response) => json(response, { echo: [request.headers, ...forms] }, 200);
  const shown = await world.withClient(
    (client) => client.callTool({ name: "pets_get_pet", arguments: { petId: 1 } }),
    { by, project: pid },
  );
  expect(pets.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from(value).toString("base64")}`);
  // The secret straddles the place where an error's body is cut.
  pets.answer = (_, response) =>
    response.writeHead(500, { "content-type": "text/plain" }).end("x".repeat(3930) + value.repeat(9));
  const failed = await world.call("pets_get_pet", { petId: 1 }, { by, project: pid });
  const everything = JSON.stringify([shown, failed, await rows(), world.service.logs]);
  expect(everything).toContain("[redacted]");
  for (const form of forms) expect(everything).not.toContain(form.slice(0, 12));
  expect((await rows())[0]).toMatchObject({ outcome: "error", upstream_status: 500 });
});

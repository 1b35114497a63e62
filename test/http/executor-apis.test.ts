/** Connectors of the kinds `openapi` and `http` through the whole gateway. The API behind them is a real server. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PETS, startPetsServer, type PetsServer } from "../support/servers/pets-server.ts";
import {
  eventually,
  expectStatus,
  fields,
  listOf,
  mergeFiles,
  type Fields,
} from "../support/service/requests.ts";
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

  it("is denied and asked for by the rules, and an approved call is made once", async () => {
    const project = await connected();
    const { by, rows } = await world.freshSession(project);
    expect(textOf(await world.call("pets_delete_pets_petId", { petId: 1 }, { by, project }))).toContain(
      "is denied",
    );
    const waiting = world.call("pets_rename_pet", { petId: 1, body: { name: "Tim" } }, { by, project });
    const approvals = `/v1/projects/${project}/approvals`;
    const found = await eventually(async () => {
      const [one] = listOf(await world.service.request("GET", `${approvals}?status=pending`), "approvals");
      expect(one).toMatchObject({ tool: "rename_pet", arguments: { petId: 1, body: { name: "Tim" } } });
      return one;
    });
    expect(pets.requests).toEqual([]);
    expectStatus(await world.service.request("POST", `${approvals}/${found?.["id"]}/approve`), 200);
    expect(textOf(await waiting)).toContain('"id":1');
    expect(pets.requests).toMatchObject([
      {
        method: "PATCH",
        target: "/api/pets/1",
        headers: { "content-type": "application/merge-patch+json" },
        body: '{"name":"Tim"}',
      },
    ]);
    expect(await rows()).toMatchObject([{ outcome: "ok" }, { outcome: "denied" }]);
  });

  it("refuses arguments that do not fit before it asks a person or sends anything, on record [K18]", async () => {
    const project = await connected();
    const { by, rows } = await world.freshSession(project);
    for (const [name, given, message] of [
      ["pets_get_pet", { petId: "../owners" }, "an escape such as %2f"],
      ["pets_list_pets", { "X-Request-Id": "a\r\nHost: b" }, "control characters"],
    ] as const) {
      // eslint-disable-next-line no-await-in-loop -- one call after the other
      expect(textOf(await world.call(name, given, { by, project }))).toContain(message);
    }
    expect(pets.requests).toEqual([]);
    expect((await rows()).map(({ outcome }) => outcome)).toEqual(["denied", "denied"]);
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

  it("is told that a call may have run when its answer was lost, and the call is not repeated", async () => {
    const project = await connected();
    const { by, rows } = await world.freshSession(project);
    pets.answer = (_, response) => response.destroy();
    expect(textOf(await world.call("pets_add_pet", { body: { name: "a" } }, { by, project }))).toContain(
      "The tool may have run. It is not called again.",
    );
    expect(pets.requests).toHaveLength(1);
    expect((await rows())[0]).toMatchObject({ outcome: "unknown" });
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

  it("gives its error's body to the agent, and an answer that is a picture as its size", async () => {
    const project = await world.newProject(http(operation("get_pet", "/pets/{id}")));
    await accept(project);
    const { by } = await world.freshSession(project);
    const missing = await world.call("pets_get_pet", { id: 77 }, { by, project });
    expect([missing.isError, textOf(missing)]).toEqual([
      true,
      'The server answered with status 404. Its answer begins:\n{"error":"There is no pet with this id."}',
    ]);
    pets.answer = (_, response) =>
      response.writeHead(200, { "content-type": "image/png" }).end(Buffer.alloc(77));
    expect(textOf(await world.call("pets_get_pet", { id: 1 }, { by, project }))).toContain(
      "77 bytes of image/png",
    );
  });
});

describe("a manifest with a wrong tool", () => {
  it("names the field and what to write, and leaves out that tool alone", async () => {
    const project = await world.newProject(
      `${http(operation("get_pet", "/pets/{number}"))}\n[[connectors]]\nslug = "other"\nkind = "mcp"\nurl = "${world.server.url}"\n`,
    );
    const answer = fields(await world.service.request("GET", `/v1/projects/${project}/connectors`));
    expect(answer["errors"]).toEqual([
      {
        path: "connectors[0].operations[0].path",
        message: 'path names {number}. Add a parameter { name = "number", in = "path" }.',
        line: 2,
      },
    ]);
    expect((answer["connectors"] as readonly Fields[]).map(({ slug }) => slug)).toEqual(["other", "pets"]);
    await eventually(async () =>
      expect(await listed(project)).toMatchObject({ to_accept: 0, failure: null }),
    );
  });
});

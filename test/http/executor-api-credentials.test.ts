/** Credentials of HTTP APIs: where each kind of `auth` puts them, and that no answer shows them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { json, PETS, startPetsServer, type PetsServer } from "../support/servers/pets-server.ts";
import { expectStatus } from "../support/service/requests.ts";
import { openapiEntry } from "./executor-apis-entries.ts";
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
});

const openapi = (more: string): string => openapiEntry(pets.url, more);

const accept = async (pid: string): Promise<void> => {
  const { pin } = await world.catalogueOf(pid, "pets");
  expectStatus(await world.change(pid, { action: "accept", pin }, "pets"), 200);
};

/** Of `user:password`, the password. */
const secretOf = (value: string): string => value.slice(value.indexOf(":") + 1);

describe("an HTTP API", () => {
  it.each([
    [
      "basic",
      "",
      "user:long-password",
      { authorization: `Basic ${Buffer.from("user:long-password").toString("base64")}` },
    ],
    ["header", 'auth_name = "X-Key"', CREDENTIAL, { "x-key": CREDENTIAL }],
  ])(
    "sends its credential with auth %s, and masks it in answers [K06]",
    async (auth, more, value, headers) => {
      const text = openapi(`description_file = "api/pets.yaml"\nauth = "${auth}"\n${more}\n`);
      const project = await world.newProject(text, { "api/pets.yaml": PETS });
      const target = `/v1/projects/${project}/connectors/pets/credential`;
      if (auth === "basic")
        expect(
          (await world.service.request("PUT", target, { body: { value: "no-colon-here" } })).status,
        ).toBe(400);
      expectStatus(await world.service.request("PUT", target, { body: { value } }), 200);
      await accept(project);
      const { by, rows } = await world.freshSession(project);
      pets.answer = (request, response) =>
        json(
          response,
          { echo: [request.headers, value, secretOf(value), Buffer.from(value).toString("hex")] },
          200,
        );
      const shown = await world.withClient(
        (client) => client.callTool({ name: "pets_get_pet", arguments: { petId: 1 } }),
        { by, project },
      );
      expect(pets.requests[0]?.headers).toMatchObject(headers);
      const secrets = [value, secretOf(value)].flatMap((each) => [
        each,
        Buffer.from(each).toString("base64"),
        Buffer.from(each).toString("hex"),
      ]);
      // The secret straddles the place where an error's body is cut.
      pets.answer = (_, response) =>
        response.writeHead(500, { "content-type": "text/plain" }).end("x".repeat(3930) + value.repeat(9));
      const failed = await world.call("pets_get_pet", { petId: 1 }, { by, project });
      const everything = JSON.stringify([shown, failed, await rows(), world.service.logs]);
      expect(everything).toContain("[redacted]");
      for (const secret of secrets) expect(everything).not.toContain(secret.slice(0, 12));
      expect((await rows())[0]).toMatchObject({ outcome: "error", upstream_status: 500 });
    },
  );

  it("sends a credential in a parameter that no argument can replace [K18]", async () => {
    const text = openapi(`description_file = "api/pets.yaml"\nauth = "query"\nauth_name = "limit"\n`);
    const project = await world.newProject(text, { "api/pets.yaml": PETS });
    await world.connect(project, "pets");
    const { by } = await world.freshSession(project);
    await world.call("pets_list_pets", { kind: ["cat", "dog"] }, { by, project });
    expect(pets.requests[0]?.target).toBe(`/api/pets?limit=${CREDENTIAL}&kind=cat,dog`);
    expect(textOf(await world.call("pets_list_pets", { limit: 1 }, { by, project }))).toContain(
      'no argument "limit"',
    );
  });
});

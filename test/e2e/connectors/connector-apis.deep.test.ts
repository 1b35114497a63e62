/** The real agent runtime in a real sandbox uses an HTTP API by its description in the repository, with a credential that it never sees. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PETS, startPetsServer, type PetsServer } from "../../support/servers/pets-server.ts";
import { promptOf, TalkingModel } from "../../support/servers/talking-model.ts";
import { commitToSample } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";

const POLL = { timeout: WAIT_MS, interval: 100 };
const CREDENTIAL = "credential-of-the-pets-42";

const manifest = (url: string): string => `
[[connectors]]
slug = "pets"
kind = "openapi"
url = "${url}"
auth = "bearer"
description_file = "pets.yaml"
direct = ["get_pet"]
[[connectors.tools]]
match = "*"
policy = "allow"
`;

const step = (name: string, given: object) => ({ tools: [[name, given]] as const });

describe.runIf(sandboxesStartHere)("an agent in a sandbox", () => {
  const model = new TalkingModel();
  let server: PetsServer;
  let installation: Installation;
  let life: Life;
  let pid = "";
  beforeAll(async () => {
    server = await startPetsServer();
    installation = await Installation.open();
    const [file, description] = ["platform.toml", "pets.yaml"].map((name) =>
      path.join(installation.directory, name),
    );
    const known = readFileSync(path.join(installation.sample, "platform.toml"), "utf8");
    writeFileSync(file ?? "", `${known}\n${manifest(server.url)}`);
    writeFileSync(description ?? "", PETS);
    commitToSample(installation, { "platform.toml": file ?? "", "pets.yaml": description ?? "" });
    life = await installation.start({
      PLATFORM_LLM_BASE_URL: await model.start(),
      PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    });
    pid = await life.project(installation.sample);
    const connector = `/v1/projects/${pid}/connectors/pets`;
    await life.call("PUT", `${connector}/credential`, { value: CREDENTIAL });
    const { pin } = await life.call("GET", `${connector}/catalogue`);
    await life.call("POST", `${connector}/catalogue`, { action: "accept", pin });
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    await server?.close();
    model.stop();
  }, TEST_MS);

  it(
    "calls the operations of an HTTP API by name and by search, and sees why a call is refused",
    async () => {
      const prompt = promptOf([
        step("platform-executor_pets_get_pet", { petId: 1 }),
        step("platform-executor_call_tool", { name: "pets_add_pet", arguments: { body: { name: "Kit" } } }),
        step("platform-executor_call_tool", { name: "pets_get_pet", arguments: { petId: "../owners" } }),
        { say: "Done." },
      ]);
      const sessions = `/v1/projects/${pid}/sessions`;
      const { id } = await life.call("POST", sessions, { initial_prompt: prompt });
      const target = `${sessions}/${String(id)}`;
      const lastTurn = async () => (await life.call("GET", target))["last_turn"];
      await expect.poll(lastTurn, POLL).toMatchObject({ state: "completed", error: null });
      expect(
        server.requests.map(({ method, target: at, headers, body }) => [
          method,
          at,
          headers.authorization,
          body,
        ]),
      ).toEqual([
        ["GET", "/api/pets/1", `Bearer ${CREDENTIAL}`, ""],
        ["POST", "/api/pets", `Bearer ${CREDENTIAL}`, '{"name":"Kit"}'],
      ]);
      const rows = (await life.call("GET", `/v1/projects/${pid}/executor/calls`))["calls"] as readonly Json[];
      expect(rows.map(({ tool, outcome }) => [tool, outcome])).toEqual([
        ["get_pet", "denied"],
        ["add_pet", "ok"],
        ["get_pet", "ok"],
      ]);
      const conversation = await life.text(`${target}/conversation.json`);
      expect(conversation).toContain("Tom");
      expect(conversation).toContain("an escape such as %2f");
      expect(conversation).not.toContain(CREDENTIAL);
      await life.call("POST", `${target}/stop`);
    },
    TEST_MS,
  );
});

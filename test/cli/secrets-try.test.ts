/** `platform secrets try`: how it ends by what the provider said about the key. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runHere } from "../support/service/command-line.ts";
import { makeProject, putSecret } from "../support/service/requests.ts";
import type { TestService } from "../support/service/service.ts";
import { shareService } from "../support/service/shared.ts";

const PID = "0190f3b2-0000-7000-8000-000000000001";
const NAME = "MISTRAL_API_KEY";

let server: Server;
let service: TestService;
let verdict: object;

beforeAll(async () => {
  service = await shareService();
  server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(verdict));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(async () => {
  server?.close();
  await service?.close();
});

const tried = (args: readonly string[] = []) =>
  runHere(["secrets", "try", NAME, ...args], {
    env: {
      PLATFORM_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
      PLATFORM_CLI_TOKEN: `platform_pat_${"a".repeat(43)}`,
      PLATFORM_PROJECT_ID: PID,
    },
  });

describe("platform secrets try", () => {
  it("ends with 0 only if the provider accepts the key", async () => {
    verdict = { provider: "mistral", outcome: "accepted", message: "It accepts the key.", advice: null };
    expect(await tried()).toEqual({ code: 0, stdout: "It accepts the key.\n", stderr: "" });
  });

  it("ends with 1 if the provider rejects the key", async () => {
    verdict = { provider: "mistral", outcome: "rejected", message: "It rejects it.", advice: "Copy it." };
    expect(await tried()).toEqual({
      code: 1,
      stdout: "It rejects it. Copy it.\n",
      stderr: `The provider rejects ${NAME}.\n`,
    });
  });

  it("ends with 6 if the provider gave no answer, and shows why", async () => {
    verdict = { provider: "mistral", outcome: "unknown", message: "It is away.", advice: "Look." };
    const sentence = `The provider gave no answer about ${NAME}, so it is not known whether the key works.`;
    expect(await tried()).toEqual({ code: 6, stdout: "It is away. Look.\n", stderr: `${sentence}\n` });
    const { code, stdout, stderr } = await tried(["--json"]);
    expect([code, JSON.parse(stdout)]).toEqual([6, verdict]);
    expect(JSON.parse(stderr)).toEqual({ error: sentence, code: "key_unknown" });
  });

  it("asks the service, which explains a refusal", async () => {
    const pid = await makeProject(service);
    await putSecret(service, pid, NAME, "key");
    const env = {
      PLATFORM_API_URL: `${service.url}/v1`,
      PLATFORM_CLI_TOKEN: service.token,
      PLATFORM_PROJECT_ID: pid,
    };
    // The service of the tests asks no provider.
    expect(await runHere(["secrets", "try", NAME], { env })).toMatchObject({
      code: 6,
      stdout: expect.stringMatching(/^api\.mistral\.ai is not asked by this service\. /),
    });
    expect(await runHere(["secrets", "try", "NOT_A_KEY"], { env })).toMatchObject({
      code: 5,
      stdout: "",
      stderr: expect.stringContaining("is not the key of a model provider"),
    });
  });
});

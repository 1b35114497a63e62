/** What caches may keep of the service's answers: nothing, but for what an app behind the relay says of its own. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  expectStatus,
  fields,
  makeProject,
  runSession,
  sandboxEnvironment,
} from "../../support/service/requests.ts";

let service: TestService;
let daemon: Server;
let project = "";
let session = "";

beforeAll(async () => {
  daemon = createServer((asked, response) => {
    if (asked.url?.endsWith("cached") === true) response.setHeader("cache-control", "max-age=60");
    response.end("app");
  });
  await new Promise<void>((resolve) => {
    daemon.listen(0, "127.0.0.1", resolve);
  });
  const { port } = daemon.address() as AddressInfo;
  service = await startTestService({}, { link: () => ({ kind: "url", url: `http://127.0.0.1:${port}` }) });
  const pid = await makeProject(service);
  project = `/v1/projects/${pid}`;
  session = `${project}/sessions/${await runSession(service, pid)}`;
});
afterAll(async () => {
  daemon.closeAllConnections();
  daemon.close();
  await service.close();
});

it("lets no cache keep an answer that contains a credential", async () => {
  const sid = session.split("/").at(-1) ?? "";
  const sandboxToken = (await sandboxEnvironment(service, sid))["PLATFORM_TOKEN"] ?? "";
  const answers = [
    await service.request("GET", `${project}/git/clone-credential`, { token: sandboxToken }),
    await service.request("POST", "/v1/tokens", { body: { name: "t" } }),
    await service.request("POST", `${session}/preview`, { body: { port: 5173 } }),
    await service.request("POST", "/dashboard/links", {}),
    await service.request("POST", "/dashboard/session", { body: { token: service.token }, token: null }),
  ];
  for (const answer of answers) {
    expect(answer.status).toBeLessThan(300);
    expect(answer.headers["cache-control"]).toBe("no-store");
  }
  const link = await service.request("POST", "/dashboard/links", {});
  const url = new URL(String(fields(expectStatus(link, 201))["url"]));
  const opened = await service.request("GET", `${url.pathname}${url.search}`, { token: null });
  expect([opened.status, opened.headers["cache-control"]]).toEqual([200, "no-store"]);
});

it.each([
  ["GET", "/v1/me"],
  ["GET", "/v1/projects"],
  ["GET", "/v1/nowhere"],
  ["DELETE", "/v1/me"],
  ["GET", "/metrics"],
])("and no cache keeps any other answer of the service: %s %s", async (method, target) => {
  expect((await service.request(method, target)).headers["cache-control"]).toBe("no-store");
});

it("leaves the caching of apps' answers unchanged", async () => {
  const cached = await service.request("GET", `${session}/ports/3000/cached`);
  expect([cached.text, cached.headers["cache-control"]]).toEqual(["app", "max-age=60"]);
  const plain = await service.request("GET", `${session}/ports/3000/plain`);
  expect([plain.text, plain.headers["cache-control"]]).toEqual(["app", undefined]);
});

/** The nginx of docs/operate/install.md, as it stands there: only its certificate and ports are the test's. */
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startNginx, type Nginx } from "../support/machine/nginx.ts";
import { nginxProgram } from "../support/requirements.ts";
import { makeHookProject } from "../support/service/requests.ts";
import { startTestService, type TestService } from "../support/service/service.ts";

const [, BLOCK = ""] =
  /```nginx\n(.*?)```/s.exec(
    readFileSync(new URL("../../docs/operate/install.md", import.meta.url), "utf8"),
  ) ?? [];

const configured = (port: number, upstream: number): string =>
  BLOCK.replace("listen 443 ssl http2;", `listen 127.0.0.1:${port};`)
    .replace(/ *ssl_certificate.*\n/g, "")
    .replace("127.0.0.1:8080", `127.0.0.1:${upstream}`);

describe.skipIf(nginxProgram === undefined)("the documented nginx", () => {
  let service: TestService;
  let nginx: Nginx;
  beforeAll(async () => {
    service = await startTestService({ PLATFORM_TRUSTED_PROXIES: "127.0.0.1" });
    nginx = await startNginx((port) => configured(port, service.port));
  });
  afterAll(async () => {
    await nginx.stop();
    await service.close();
  });

  /** From another address of the machine than the proxy's. */
  const through = (method: string, path: string, body: string, headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const call = request(
        {
          host: "127.0.0.1",
          port: nginx.port,
          localAddress: "127.0.0.2",
          method,
          path,
          headers: {
            authorization: `Bearer ${service.token}`,
            "content-type": "application/json",
            host: "agents.example.org",
            ...headers,
          },
        },
        (response) => void text(response).then(() => resolve(response.statusCode ?? 0), reject),
      );
      call.on("error", reject);
      call.end(body);
    });

  it("tells the service the sender's address, whatever the sender says", async () => {
    const pid = await makeHookProject(service);
    const put = await through(
      "PUT",
      `/v1/projects/${pid}/secrets/NAME`,
      JSON.stringify({ value: "a value" }),
      {
        "x-forwarded-for": "203.0.113.9",
      },
    );
    expect(put).toBe(201);
    const { json } = await service.request("GET", "/v1/audit?action=secret.set&limit=1");
    expect(json).toMatchObject({ events: [{ target: "NAME", address: "127.0.0.2" }] });
  });
});

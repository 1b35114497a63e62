/** `platform login` against the service: at a terminal by a code that a person types into the page, elsewhere with a token. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CommandLine } from "../support/service/command-line.ts";
import { eventually, expectStatus, fields, listOf } from "../support/service/requests.ts";
import { startTestService, type TestService } from "../support/service/service.ts";

let service: TestService;
let line: CommandLine;
beforeAll(async () => {
  service = await startTestService();
  line = await CommandLine.make();
});
afterEach(() => rmSync(path.join(line.directory, ".config"), { recursive: true, force: true }));
afterAll(async () => {
  await service?.close();
  line?.remove();
});

/** The command at a terminal of its own, which util-linux' script makes. */
const start = (url: string, more = "") => {
  const command = `"${process.execPath}" ${line.bundle} login --url ${url} ${more}`;
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    env: { HOME: line.directory, PATH: process.env["PATH"] },
  });
  const seen = { text: "" };
  child.stdout.on("data", (chunk: Buffer) => (seen.text += chunk.toString()));
  const ended = once(child, "close").then(([code]) => Number(code));
  return { seen, ended, type: (text: string) => child.stdin.write(text) };
};

const file = () => path.join(line.directory, ".config/platform/config.json");

const codeIn = (seen: { readonly text: string }) =>
  eventually(() => {
    const [, code = ""] = /type the code ([A-Z]{4}-[A-Z]{4})/.exec(seen.text) ?? [];
    expect(code).not.toBe("");
    return code;
  });

const decide = (how: string, body: object) => service.request("POST", `/v1/device-logins/${how}`, { body });

describe("platform login without a terminal", () => {
  const HOW =
    "is missing: standard input is not a terminal, and it has no such line. Write a token to it and give --url, " +
    'for example: echo "$TOKEN" | platform login --url https://platform.example.com. ' +
    "Without a login, set PLATFORM_API_URL and PLATFORM_CLI_TOKEN.\n";

  it("says how to give address and token if standard input has none", async () => {
    const refused = { code: 2, stdout: "" };
    expect(await line.run(["login"])).toEqual({ ...refused, stderr: `The address of the service ${HOW}` });
    const ended = await line.run(["login", "--url", service.url]);
    expect(ended).toEqual({ ...refused, stderr: `The token ${HOW}` });
    expect(await line.run(["login"], { input: `${service.url}\n` })).toEqual(ended);
    expect(() => statSync(file())).toThrow("ENOENT");
  });

  it("works as it says", async () => {
    const input = `${service.token}\n`;
    expect(await line.run(["login", "--url", service.url], { input })).toMatchObject({ code: 0 });
    rmSync(file());
    const env = { PLATFORM_API_URL: service.url, PLATFORM_CLI_TOKEN: service.token };
    expect(await line.run(["whoami"], { env })).toMatchObject({ code: 0 });
  });
});

describe("platform login at a terminal", () => {
  it("shows a code and keeps the token that its approval gives, for its owner alone", async () => {
    const { seen, ended } = start(service.url);
    const code = await codeIn(seen);
    expect(seen.text).toContain(`Open ${service.url}/#/device and type the code ${code}`);
    const login = fields(expectStatus(await decide("look", { code }), 200));
    expect(login["client"]).toMatch(/^Command line on ./);
    expectStatus(await decide("approve", { code }), 200);
    expect([await ended, seen.text]).toEqual([
      0,
      expect.stringContaining("Logged in as admin of the account default."),
    ]);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    const { api_url, token } = JSON.parse(readFileSync(file(), "utf8")) as Record<string, string>;
    expect(api_url).toBe(`${service.url}/v1`);
    expect(seen.text).not.toContain(token);
    const own = fields(await service.request("GET", "/v1/me", { token: token ?? "" }));
    const tokens = listOf(await service.request("GET", "/v1/tokens"), "tokens");
    expect(tokens.find(({ id }) => id === Object(own["token"]).id)).toMatchObject({ name: login["client"] });
    expect(await line.run(["whoami"])).toMatchObject({ code: 0 });
  });

  it("ends with 3 if the login is denied, and keeps nothing", async () => {
    const { seen, ended } = start(service.url);
    expectStatus(await decide("deny", { code: await codeIn(seen) }), 204);
    expect([await ended, seen.text]).toEqual([
      3,
      expect.stringContaining("The login was denied on the page."),
    ]);
    expect(() => statSync(file())).toThrow("ENOENT");
  });

  it("asks for a token at a service that is too old for codes", async () => {
    const asked: string[] = [];
    const old = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      const status = request.url === "/v1/me" ? 401 : 404;
      const body = { error: "No.", code: status === 401 ? "unauthorized" : "not_found" };
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    }).listen(0, "127.0.0.1");
    await once(old, "listening");
    try {
      const { seen, ended, type } = start(`http://127.0.0.1:${(old.address() as AddressInfo).port}`);
      await eventually(() => expect(seen.text).toContain("Token (not shown): "));
      type(`platform_pat_${"a".repeat(43)}\r`);
      expect(await ended).toBe(3);
      expect(asked).toEqual(["POST /v1/device-logins", "GET /v1/me"]);
    } finally {
      old.close();
    }
  });

  it("waits while the service restarts", async () => {
    let answers = 0;
    const flaky = createServer((request, response) => {
      const say = (status: number, body: object) =>
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      if (request.url === "/v1/device-logins")
        return say(200, { device_code: "d", user_code: "BCDF-GHJK", verification_uri: "x", interval: 0.01 });
      answers += 1;
      if (answers === 1) return request.socket.destroy();
      return say(400, { error: answers === 2 ? "authorization_pending" : "expired_token" });
    }).listen(0, "127.0.0.1");
    await once(flaky, "listening");
    try {
      const { seen, ended } = start(`http://127.0.0.1:${(flaky.address() as AddressInfo).port}`);
      expect([await ended, seen.text]).toEqual([3, expect.stringContaining("The code is no longer valid.")]);
      expect(answers).toBe(3);
    } finally {
      flaky.close();
    }
  });
});

/** Which upgrades the service passes on, by the relay and by previews: a WebSocket's handshake and nothing else. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BAD_HANDSHAKES, GOOD_HANDSHAKES } from "../../proxy/handshake-cases.ts";
import { exchange, parseAnswer, visitPreview } from "../../support/service/raw-http.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  expectStatus,
  fields,
  invitePerson,
  makeProject,
  runSession,
} from "../../support/service/requests.ts";

let service: TestService;
let daemon: Server;
let session = "";
let ben = "";
let preview: readonly string[] = [];
let previewOfBen: readonly string[] = [];
/** The protocols that the daemon was asked to upgrade to. */
const upgrades: (string | undefined)[] = [];

/** A preview in a browser. @returns the lines of its requests */
const openPreview = async (token: string): Promise<readonly string[]> => {
  const made = await service.request("POST", `${session}/preview`, { body: { port: 5173 }, token });
  return visitPreview(String(fields(expectStatus(made, 201))["url"]), service.port);
};

beforeAll(async () => {
  daemon = createServer((_, response) => response.end());
  daemon.on("upgrade", (asked, socket) => {
    upgrades.push(asked.headers.upgrade);
    socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  });
  await new Promise<void>((resolve) => {
    daemon.listen(0, "127.0.0.1", resolve);
  });
  const { port } = daemon.address() as AddressInfo;
  service = await startTestService({}, { link: () => ({ kind: "url", url: `http://127.0.0.1:${port}` }) });
  const pid = await makeProject(service);
  session = `/v1/projects/${pid}/sessions/${await runSession(service, pid)}`;
  preview = await openPreview(service.token);
  ben = (await invitePerson(service, "Ben")).token;
  previewOfBen = await openPreview(ben);
});
beforeEach(() => {
  upgrades.length = 0;
});
afterAll(async () => {
  daemon.closeAllConnections();
  daemon.close();
  await service.close();
});

interface Way {
  readonly target: string;
  readonly headers: readonly string[];
}

const relayOf = (token: string): Way => ({
  target: `${session}/runtime/socket`,
  headers: ["Host: platform.example", `Authorization: Bearer ${token}`],
});

const ways = [
  {
    name: "the relay",
    way: () => relayOf(service.token),
    wayOfBen: () => relayOf(ben),
    act: "runtime",
  },
  {
    name: "a preview",
    way: (): Way => ({ target: "/socket", headers: preview }),
    wayOfBen: (): Way => ({ target: "/socket", headers: previewOfBen }),
    act: "port",
  },
];

describe.each(ways)("$name", ({ way, wayOfBen, act }) => {
  const ask = async (lines: readonly string[], { method = "GET", by = way } = {}) => {
    const { target, headers } = by();
    const head = [`${method} ${target} HTTP/1.1`, ...headers, "Connection: Upgrade", ...lines, "", ""];
    return parseAnswer(await exchange(service.port, head.join("\r\n")));
  };

  it.each(GOOD_HANDSHAKES)("passes %s on", async (...lines) => {
    expect((await ask(lines)).status).toBe(101);
    expect(upgrades).toEqual(["websocket"]);
  });

  it.each(BAD_HANDSHAKES)("refuses $name with $status [X08]", async ({ lines, method, status }) => {
    const answer = await ask(lines, method === undefined ? {} : { method });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual({
      error: expect.stringMatching(/^[A-Z].*\.$/),
      code: status === 426 ? "unsupported_websocket_version" : "invalid_upgrade",
    });
    expect(answer.headers.get("sec-websocket-version")).toBe(status === 426 ? "13" : undefined);
    expect(answer.headers.get("upgrade")).toBe(status === 426 ? "websocket" : undefined);
    expect(upgrades).toEqual([]);
  });

  it("suspends the own credentials of the session's person if another one opens it [K20]", async () => {
    const path = `${session}/own-credentials`;
    const suspended = async () => fields(await service.request("GET", path))["suspended"];
    expectStatus(await service.request("POST", `${path}/give-back`), 204);
    const [lines = []] = GOOD_HANDSHAKES;
    expect((await ask(lines)).status).toBe(101);
    expect(await suspended()).toBe(null);
    expect((await ask(lines, { by: wayOfBen })).status).toBe(101);
    expect(await suspended()).toMatchObject({ act, by: { name: "Ben" } });
  });
});

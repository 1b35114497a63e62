/**
 * What a token opened ends with it, over the real service: relayed requests, uploads and WebSockets, previews, git, streams,
 * and bodies that are still arriving (threats.md T03).
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ageSignIns, WITH_PROVIDER } from "../people/sign-in-world.ts";
import { readEvents } from "../../support/service/event-stream.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  eventually,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  makeUserToken,
  mintPassword,
  runSession,
  sandboxEnvironment,
  stopSession,
} from "../../support/service/requests.ts";
import { visitPreview } from "../../support/service/raw-http.ts";

const PREVIEWED = 5173;

let service: TestService;
let daemon: Server;
let pid = "";
let sid = "";
/** Requests that the daemon has, and how each of them went on. */
const there: { readonly url: string; isOver: boolean }[] = [];

beforeAll(async () => {
  // A daemon that begins to answer what ends in `endless`, and waits with the answer to anything else.
  daemon = createServer((asked, response) => {
    const entry = { url: asked.url ?? "", isOver: false };
    there.push(entry);
    asked.on("error", () => undefined).resume();
    response.on("close", () => {
      entry.isOver = true;
    });
    if (asked.url?.endsWith("endless") === true) response.write("begun");
  });
  daemon.on("upgrade", (asked: IncomingMessage, socket: Socket) => {
    const entry = { url: asked.url ?? "", isOver: false };
    there.push(entry);
    socket.on("error", () => socket.destroy());
    // Node keeps an upgraded connection half open.
    socket.on("end", () => socket.end()).resume();
    socket.on("close", () => {
      entry.isOver = true;
    });
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  });
  await new Promise<void>((resolve) => {
    daemon.listen(0, "127.0.0.1", resolve);
  });
  const { port } = daemon.address() as AddressInfo;
  const link = () => ({ kind: "url" as const, url: `http://127.0.0.1:${port}` });
  service = await startTestService(WITH_PROVIDER, { link, signIn: [] });
  pid = await makeProject(service, { files: { "README.md": "one\n" } });
  expectStatus(await service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: null } }), 200);
  sid = await runSession(service, pid);
});
beforeEach(() => {
  there.length = 0;
});
afterAll(async () => {
  daemon.closeAllConnections();
  daemon.close();
  await service.close();
});

/** A connection that was opened, and what came over it. */
interface Open {
  readonly said: () => string;
  readonly isOver: () => boolean;
  readonly socket: Socket;
}

/** Sends the beginning of a request and leaves it at that. */
const begin = (lines: readonly string[], body: string | Buffer = ""): Open => {
  let said = "";
  let isOver = false;
  const socket = connect(service.port, "127.0.0.1");
  socket.on("data", (chunk) => {
    said += chunk.toString("latin1");
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    isOver = true;
  });
  socket.write([...lines, "", ""].join("\r\n"));
  socket.write(body);
  return { said: () => said, isOver: () => isOver, socket };
};

const WEBSOCKET = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
const session = (rest: string): string => `/v1/projects/${pid}/sessions/${sid}${rest}`;
const bearer = (token: string): readonly string[] => [
  "Host: platform.example",
  `Authorization: Bearer ${token}`,
];
const basic = (password: string): string =>
  `Authorization: Basic ${Buffer.from(`x:${password}`).toString("base64")}`;

/** A preview in a browser. @returns the lines of its requests */
const openPreview = async (token: string): Promise<readonly string[]> => {
  const made = await service.request("POST", session("/preview"), { body: { port: PREVIEWED }, token });
  return visitPreview(String(fields(expectStatus(made, 201))["url"]), service.port);
};

/** Waits until the daemon has the request. */
const arrived = (suffix: string) =>
  eventually(() => {
    const entry = there.find(({ url }) => url.endsWith(suffix));
    if (entry === undefined) throw new Error("the daemon was not asked");
    return entry;
  });
const over = (open: Open): Promise<void> => eventually(() => expect(open.isOver()).toBe(true));

const revoke = async ({ id }: { readonly id: string }): Promise<void> => {
  expectStatus(await service.request("DELETE", `/v1/tokens/${id}`), 204);
};

/** Waits until the token that was made last has authenticated a request. */
const newestTokenUsed = () =>
  eventually(async () => {
    const listed = await service.request("GET", "/v1/tokens?limit=1");
    expect(listOf(listed, "tokens")[0]?.["last_used_at"]).not.toBe(null);
  });

/** Ways in which a token ends, each with the making of one that can end so. */
const ends: readonly (readonly [
  string,
  () => Promise<{ readonly token: string; end: () => Promise<void> }>,
])[] = [
  [
    "is revoked",
    async () => {
      const made = await makeUserToken(service);
      return { token: made.token, end: () => revoke(made) };
    },
  ],
  [
    "expires",
    async () => {
      const { id, token } = await makeUserToken(service, { expires_at: "2100-01-01T00:00:00.000Z" });
      // Only now: on a busy machine it could expire before its requests have begun.
      const end = () =>
        service.inside(
          Effect.gen(function* () {
            yield* (yield* SqlClient.SqlClient)`
              UPDATE tokens SET expires_at = now() + interval '1 second' WHERE id = ${id}`;
          }),
        );
      return { token, end };
    },
  ],
  [
    "is deleted by the operator",
    async () => {
      const { id, token } = await makeUserToken(service);
      const end = () =>
        service.inside(
          Effect.gen(function* () {
            yield* (yield* SqlClient.SqlClient)`DELETE FROM tokens WHERE id = ${id}`;
          }),
        );
      return { token, end };
    },
  ],
  [
    "is bound to another project",
    async () => {
      const { id, token } = await makeUserToken(service);
      const other = await makeProject(service);
      const end = () =>
        service.inside(
          Effect.gen(function* () {
            yield* (yield* SqlClient.SqlClient)`UPDATE tokens SET project_id = ${other} WHERE id = ${id}`;
          }),
        );
      return { token, end };
    },
  ],
  [
    "acts for a person who loses her role in the project",
    async () => {
      const { id, token } = await invitePerson(service, "Ben", { roles: { [pid]: "member" } });
      const member = `/v1/projects/${pid}/members/${id}`;
      return { token, end: async () => void expectStatus(await service.request("DELETE", member), 204) };
    },
  ],
  [
    "acts for a person whose last sign-in is too long ago",
    async () => {
      const { id, token } = await invitePerson(service, "Ben", { roles: { [pid]: "member" } });
      return { token, end: () => ageSignIns(service, id) };
    },
  ],
  [
    "acts for a person who is deactivated",
    async () => {
      const { id, token } = await invitePerson(service, "Ben", { roles: { [pid]: "member" } });
      const deactivate = `/v1/people/${id}/deactivate`;
      return { token, end: async () => void expectStatus(await service.request("POST", deactivate), 200) };
    },
  ],
];

/** Every way in, with the end that needs the least. One place knows the ends of a token (openings.test.ts). */
describe.each(ends.slice(0, 1))("when a token %s", (_, make) => {
  it("its relayed requests, uploads and WebSockets are cut, at the daemon too [T03]", async () => {
    const { token, end } = await make();
    const answered = begin([`GET ${session("/runtime/endless")} HTTP/1.1`, ...bearer(token)]);
    const waiting = begin([`GET ${session("/ports/3000/waiting")} HTTP/1.1`, ...bearer(token)]);
    const upload = begin(
      [`POST ${session("/runtime/upload")} HTTP/1.1`, ...bearer(token), "Content-Length: 1000"],
      "a part",
    );
    const socket = begin([`GET ${session("/runtime/socket")} HTTP/1.1`, ...bearer(token), ...WEBSOCKET]);
    const entries = await Promise.all(["endless", "waiting", "upload", "socket"].map(arrived));
    await eventually(() => expect(socket.said()).toContain(" 101 "));
    await eventually(() => expect(answered.said()).toContain("begun"));
    await end();
    await Promise.all([answered, waiting, upload, socket].map(over));
    // An unanswered request gets the reason; an answer that had begun does not look complete.
    for (const { said } of [waiting, upload]) expect(said()).toMatch(/^HTTP\/1\.1 401 [^]*"unauthorized"/);
    expect(answered.said()).not.toMatch(/\r\n0\r\n\r\n$/);
    await eventually(() => expect(entries.map(({ isOver }) => isOver)).toEqual([true, true, true, true]));
  });

  it("its previews are cut [T03]", async () => {
    const { token, end } = await make();
    const visitor = await openPreview(token);
    const answered = begin(["GET /endless HTTP/1.1", ...visitor]);
    const socket = begin(["GET /socket HTTP/1.1", ...visitor, ...WEBSOCKET]);
    const entries = await Promise.all(["endless", "socket"].map(arrived));
    await end();
    await Promise.all([answered, socket].map(over));
    await eventually(() => expect(entries.map(({ isOver }) => isOver)).toEqual([true, true]));
  });

  it("its streams of events and logs end [T03]", async () => {
    const { token, end } = await make();
    const paths = [`/v1/projects/${pid}/events`, session("/events"), session("/logs")];
    const readers = await Promise.all(paths.map((path) => readEvents(`${service.url}${path}`, { token })));
    await Promise.all(readers.map((reader) => reader.until(({ event }) => event === "open")));
    await end();
    await eventually(() => expect(readers.map((reader) => reader.ended())).toEqual([true, true, true]));
  });
});

describe.each(ends.slice(1))("when a token %s", (_, make) => {
  it("its relayed requests are cut, and its streams end [T03]", async () => {
    const { token, end } = await make();
    const relayed = begin([`GET ${session("/runtime/endless")} HTTP/1.1`, ...bearer(token)]);
    const reader = await readEvents(`${service.url}/v1/projects/${pid}/events`, { token });
    const entry = await arrived("endless");
    await reader.until(({ event }) => event === "open");
    await end();
    await over(relayed);
    await eventually(() => expect([entry.isOver, reader.ended()]).toEqual([true, true]));
  });
});

describe.each(ends.slice(0, 2))("when a token %s", (_, make) => {
  it("a body that was still arriving has no effect [T03]", async () => {
    const { token, end } = await make();
    const body = JSON.stringify({ name: "made after the end", repository: { kind: "hosted" } });
    const open = begin(
      ["POST /v1/projects HTTP/1.1", ...bearer(token), `Content-Length: ${body.length}`],
      body.slice(0, 10),
    );
    await newestTokenUsed();
    await end();
    await eventually(() => expect(open.said()).toMatch(/^HTTP\/1\.1 401 /));
    open.socket.destroy();
    const projects = await service.request("GET", "/v1/projects");
    expect(projects.text).not.toContain("made after the end");
  });
});

it("each way into a sandbox is cut when its person becomes a viewer, and her reading goes on [T03]", async () => {
  const { id, token } = await invitePerson(service, "Ben", { roles: { [pid]: "member" } });
  const relayed = begin([`GET ${session("/runtime/endless")} HTTP/1.1`, ...bearer(token)]);
  const previewed = begin(["GET /socket HTTP/1.1", ...(await openPreview(token)), ...WEBSOCKET]);
  const reader = await readEvents(`${service.url}/v1/projects/${pid}/events`, { token });
  await Promise.all(["endless", "socket"].map(arrived));
  await reader.until(({ event }) => event === "open");
  const member = `/v1/projects/${pid}/members/${id}`;
  expectStatus(await service.request("PUT", member, { body: { role: "viewer" } }), 204);
  await Promise.all([relayed, previewed].map(over));
  expect(reader.ended()).toBe(false);
});

const NEW_REF = "refs/heads/pushed-late";

const pkt = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;

const tipOf = async (commit: string): Promise<string> => {
  const refs = await service.request("GET", `/v1/git/${pid}.git/info/refs?service=git-receive-pack`, {
    token: null,
    headers: { authorization: basic(service.token).slice("Authorization: ".length) },
  });
  return new RegExp(`([0-9a-f]{40}) ${commit}`).exec(refs.text)?.[1] ?? "";
};

/** A push of an existing commit to a new branch, up to its pack: an empty one, whose last bytes are held back. */
const beginPush = async (password: string, ref: string) => {
  const main = await tipOf("refs/heads/main");
  const command = pkt(`${"0".repeat(40)} ${main} ${ref}\0report-status atomic`);
  // A pack of no objects, and its checksum.
  const pack = Buffer.from("5041434b0000000200000000029d08823bd8a8eab510ad6ac75c823cfd3ed31e", "hex");
  const body = Buffer.concat([Buffer.from(`${command}0000`, "latin1"), pack]);
  const open = begin(
    [
      `POST /v1/git/${pid}.git/git-receive-pack HTTP/1.1`,
      "Host: platform.example",
      basic(password),
      "Content-Type: application/x-git-receive-pack-request",
      `Content-Length: ${body.length}`,
    ],
    body.subarray(0, -4),
  );
  return { open, finish: () => open.socket.write(body.subarray(-4)) };
};

describe("git", () => {
  it("accepts a push whose last bytes come late, while its token lives", async () => {
    const { token } = await makeUserToken(service);
    const { open, finish } = await beginPush(token, "refs/heads/pushed-in-time");
    finish();
    await eventually(() => expect(open.said()).toContain("unpack ok"));
    open.socket.destroy();
    expect(await tipOf("refs/heads/pushed-in-time")).toBe(await tipOf("refs/heads/main"));
  });

  it("ends a push with its token, and moves no ref of it [T03]", async () => {
    const made = await makeUserToken(service);
    const { open, finish } = await beginPush(made.token, NEW_REF);
    await newestTokenUsed();
    await revoke(made);
    await over(open);
    finish();
    expect(await tipOf(NEW_REF)).toBe("");
  });

  it("ends a push with its person's role: a viewer pushes nothing [T03]", async () => {
    const { id, token } = await invitePerson(service, "Eve", { roles: { [pid]: "member" } });
    const ref = "refs/heads/pushed-by-a-viewer";
    const { open, finish } = await beginPush(token, ref);
    await newestTokenUsed();
    const member = `/v1/projects/${pid}/members/${id}`;
    expectStatus(await service.request("PUT", member, { body: { role: "viewer" } }), 204);
    await over(open);
    finish();
    expect(await tipOf(ref)).toBe("");
  });

  it("ends a session's push and fetch with the session [T03] [I15]", async () => {
    const own = await runSession(service, pid);
    const password = await mintPassword(service, pid, own);
    const cli = (await sandboxEnvironment(service, own))["PLATFORM_CLI_TOKEN"] ?? "";
    const push = await beginPush(password, `refs/heads/${own}`);
    const fetch = begin([
      `POST /v1/git/${pid}.git/git-upload-pack HTTP/1.1`,
      "Host: platform.example",
      basic(password),
      "Content-Type: application/x-git-upload-pack-request",
      "Content-Length: 1000",
    ]);
    const target = `/v1/projects/${pid}/sessions/${own}/runtime/endless`;
    const relayed = begin([`GET ${target} HTTP/1.1`, ...bearer(cli)]);
    const reader = await readEvents(`${service.url}/v1/projects/${pid}/events`, { token: cli });
    await arrived("endless");
    await stopSession(service, pid, own);
    await Promise.all([push.open, fetch, relayed].map(over));
    await eventually(() => expect(reader.ended()).toBe(true));
  });
});

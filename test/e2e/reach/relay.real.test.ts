/**
 * The relay over real parts (api.md 3 and 7): a client, the service as a process, the daemon in a sandbox, and behind
 * it the agent runtime or a server that the agent started. test/proxy proves how requests and answers pass, test/daemon
 * proves the daemon's refusals; these tests prove that they hold from end to end.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  Installation,
  LIGHT_AGENT,
  TOKEN,
  type Json,
  type Life,
} from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { deepTest, isDeep } from "../../support/vitest/rings.ts";

const PORT = 5173;
/** Leaves the server running behind the shell; one that runs already makes it end at once. */
const SERVE = `(setsid node port-server.mjs ${PORT} > /dev/null 2>&1 &)`;
const MIB = 1024 * 1024;
/** A limit for what hangs, not a claim about speed. */
const POLL = { timeout: WAIT_MS, interval: 20 };

interface Asking {
  readonly method?: string;
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

let database: ReturnType<typeof useRunDatabase>;
let installation: Installation;
let life: Life;
let projectId: string;
let sessionId: string;
/** Of a token that reaches another project only. */
let foreignToken: string;

/** Opens a request below the session; the caller ends it. */
const open = (below: string, { method = "GET", token = TOKEN, headers = {} }: Asking = {}): ClientRequest =>
  request(`${life.url}/v1/projects/${projectId}/sessions/${sessionId}/${below}`, {
    method,
    headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
    agent: false,
  });

const responseOf = async (call: ClientRequest): Promise<IncomingMessage> => {
  const [response] = (await once(call, "response")) as [IncomingMessage];
  return response;
};

const ask = async (below: string, asking: Asking = {}): Promise<Answer> => {
  const call = open(below, asking);
  call.end(asking.body);
  const response = await responseOf(call);
  let text = "";
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode ?? 0, headers: response.headers, text };
};

const json = async (below: string, body?: Json): Promise<Json> => {
  const answer = await ask(below, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(answer.status, answer.text).toBe(200);
  return JSON.parse(answer.text) as Json;
};

/** Status and code of a refusal. */
const refusal = async (below: string, asking: Asking = {}): Promise<readonly unknown[]> => {
  const { status, text } = await ask(below, asking);
  return [status, (JSON.parse(text) as Json)["code"]];
};

/** How many streams and upgraded connections the server behind the port sees. */
const counted = async (): Promise<{ open: number; begun: number }> =>
  (await json(`ports/${PORT}/counted`)) as { open: number; begun: number };

/** An open stream: what came so far, and how it ended. */
const stream = async (below: string) => {
  const call = open(below, { headers: { accept: "text/event-stream" } });
  call.end();
  const response = await responseOf(call);
  const came = { text: "" };
  response.setEncoding("utf8");
  response.on("data", (chunk: string) => (came.text += chunk));
  const ended = new Promise<"whole" | "broken">((resolve) => {
    response.on("end", () => resolve("whole"));
    response.on("error", () => resolve("broken"));
  });
  return { response, ended, text: () => came.text, leave: () => call.destroy() };
};

const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};
/** What a server that understood that key says (RFC 6455, 1.3). */
const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/** @param early is sent at once, before the server has agreed. */
const webSocket = async (
  below: string,
  early = "",
): Promise<{ response: IncomingMessage; socket: Socket }> => {
  const call = open(below, { headers: UPGRADE });
  call.once("finish", () => call.socket?.write(early));
  call.end();
  const [response, socket, head] = (await once(call, "upgrade")) as [IncomingMessage, Socket, Buffer];
  if (head.length > 0) socket.unshift(head);
  socket.on("error", () => undefined);
  return { response, socket };
};

/** Exactly so many bytes from a connection. */
const take = async (socket: Socket, bytes: number): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let rest = bytes;
  while (rest > 0) {
    const chunk = socket.read(Math.min(rest, socket.readableLength)) as Buffer | null;
    if (chunk === null) await once(socket, "readable");
    else {
      chunks.push(chunk);
      rest -= chunk.length;
    }
  }
  return Buffer.concat(chunks);
};

/** Blocks of 64 KiB, each filled with its own number. */
function* blocks(bytes: number): Generator<Buffer> {
  const size = 64 * 1024;
  for (let at = 0; at < bytes; at += size) yield Buffer.alloc(Math.min(size, bytes - at), (at / size) & 255);
}

/** Has the scripted model run a command in the agent's shell. */
const prompt = async (command: string): Promise<void> => {
  const { id } = await json("runtime/session", { title: "asked for by a test" });
  const parts = [{ type: "text", text: `run: ${command}` }];
  const body = JSON.stringify({ parts });
  const headers = { "content-type": "application/json" };
  const { status } = await ask(`runtime/session/${String(id)}/prompt_async`, {
    method: "POST",
    headers,
    body,
  });
  expect(status).toBe(204);
};

/** Run directories that hold the sandbox; it is torn down after the stop is answered, its directory last. */
const directoriesOf = (sandboxId: string): string[] =>
  readdirSync(tmpdir()).filter((name) => existsSync(path.join(tmpdir(), name, "s", sandboxId)));

const startEverything = async (): Promise<void> => {
  installation = await Installation.open();
  const { sample } = installation;
  copyFileSync(
    path.join(import.meta.dirname, "../../sandbox/port-server.mjs"),
    path.join(sample, "port-server.mjs"),
  );
  const git = (...args: readonly string[]) => execFileSync("git", ["-C", sample, ...args]);
  git("add", "port-server.mjs");
  git("-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "Serve a port");
  // Of the deep tests some are about opencode.
  life = await installation.start({ ...database(), ...(isDeep ? {} : LIGHT_AGENT) });
  projectId = await life.project(sample);
  const other = await life.call("POST", "/v1/projects", { name: "other", repository: { kind: "hosted" } });
  const minted = await life.call("POST", "/v1/tokens", { name: "foreign", project_id: other["id"] });
  foreignToken = String(minted["token"]);
  const session = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
  sessionId = String(session["id"]);
  expect((await life.session(projectId, sessionId, ["running", "failed"]))["status"]).toBe("running");
  const { id } = await json("runtime/session", { title: "asked for by a test" });
  const parts = [{ type: "text", text: `run: ${SERVE}` }];
  await json(`runtime/session/${String(id)}/message`, { parts });
  await vi.waitFor(counted, POLL);
};

describe.runIf(sandboxesStartHere)("the relay of a running session", () => {
  database = useRunDatabase();
  beforeAll(startEverything, TEST_MS);
  afterAll(async () => {
    // Sandboxes outlive the service: none may stay behind, however the tests went.
    const session = `/v1/projects/${projectId}/sessions/${sessionId}`;
    try {
      const { id } = await life.call("GET", `${session}/sandbox`);
      await life.call("POST", `${session}/stop`);
      await vi.waitFor(() => expect(directoriesOf(String(id))).toEqual([]), POLL);
    } finally {
      await life.end("SIGTERM");
      await installation.close();
    }
  }, TEST_MS);

  it("requires a token with access to the project, also for upgrades [X09, T05]", async () => {
    for (const below of ["runtime/session", `ports/${PORT}/counted`]) {
      for (const headers of [{}, UPGRADE]) {
        expect(await refusal(below, { token: null, headers })).toEqual([401, "unauthorized"]);
        expect(await refusal(below, { token: foreignToken, headers })).toEqual([404, "not_found"]);
      }
    }
    expect(await counted()).toMatchObject({ begun: 0 });
  });

  it("blocks the platform's own ports and reports ports where nothing listens [X02]", async () => {
    for (const port of [8000, 4096, 3128]) {
      expect(await refusal(`ports/${port}/`)).toEqual([403, "port_blocked"]);
      expect(await refusal(`ports/${port}/`, { headers: UPGRADE })).toEqual([403, "port_blocked"]);
    }
    expect(await refusal("ports/5999/")).toEqual([502, "upstream_unreachable"]);
    expect(await refusal("ports/5999/", { headers: UPGRADE })).toEqual([502, "upstream_unreachable"]);
  });

  deepTest("reaches the agent runtime, and its events come one by one while the stream is open", async () => {
    const events = await stream("runtime/event");
    expect(events.response.headers["content-type"]).toContain("text/event-stream");
    await expect.poll(events.text, POLL).toContain("server.connected");
    // Later events were caused after the first event had been read.
    expect(events.text()).not.toContain("a title of this test");
    const { id } = await json("runtime/session", { title: "a title of this test" });
    await expect.poll(events.text, POLL).toContain("a title of this test");
    expect(await json(`runtime/session/${String(id)}`)).toMatchObject({ title: "a title of this test" });
    events.leave();
    expect((await ask("runtime/session", { method: "HEAD" })).text).toBe("");
    expect(await json("abort", {})).toEqual({ aborted: false });
  });

  it("connects a WebSocket's two ends, and closes each with the other", async () => {
    const before = await counted();
    const { response, socket } = await webSocket(`ports/${PORT}/socket`, "early");
    expect(String(await take(socket, 5))).toBe("early");
    expect(response.headers["sec-websocket-accept"]).toBe(ACCEPT);
    const message = Buffer.concat([...blocks(MIB)]);
    socket.write("one");
    expect(String(await take(socket, 3))).toBe("one");
    socket.write(message);
    expect((await take(socket, message.length)).equals(message)).toBe(true);
    expect(await counted()).toMatchObject({ open: before.open + 1, begun: before.begun + 1 });
    socket.destroy();
    await expect.poll(async () => (await counted()).open, POLL).toBe(before.open);
  });

  deepTest(
    "breaks an open stream when the agent runtime is killed, and reaches the next one [R12]",
    async () => {
      const events = await stream("runtime/event");
      await expect.poll(events.text, POLL).toContain("server.connected");
      await prompt("kill -KILL $PPID");
      expect([await events.ended, events.response.complete]).toEqual(["broken", false]);
      await expect.poll(async () => (await ask("runtime/session")).status, POLL).toBe(200);
      const session = await life.call("GET", `/v1/projects/${projectId}/sessions/${sessionId}`);
      expect(session["status"]).toBe("running");
      // The processes of the killed runtime may have ended with it: the next one starts them again.
      await prompt(SERVE);
      await expect.poll(async () => (await ask(`ports/${PORT}/counted`)).status, POLL).toBe(200);
    },
  );

  it("ends open connections when the session stops, and refuses new ones from then on [X09]", async () => {
    const events = await stream(`ports/${PORT}/stream`);
    await expect.poll(events.text, POLL).toContain("first");
    const { socket } = await webSocket(`ports/${PORT}/socket`);
    const closed = once(socket, "close");
    await life.call("POST", `/v1/projects/${projectId}/sessions/${sessionId}/stop`);
    expect(await events.ended).toBe("broken");
    await closed;
    for (const below of ["runtime/session", `ports/${PORT}/counted`]) {
      expect(await refusal(below)).toEqual([409, "session_not_running"]);
      expect(await refusal(below, { headers: UPGRADE })).toEqual([409, "session_not_running"]);
    }
  });
});

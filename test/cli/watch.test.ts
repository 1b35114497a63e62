/** `platform sessions watch` against a service whose streams end, reset, or are gone. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runHere, type Running, serverEnvironment } from "../support/service/command-line.ts";

const PID = "0190f3b2-0000-7000-8000-000000000001";
const AT = "2026-11-20T12:00:00.000Z";
const ESC = "\u001b";

let server: Server;
/** The requests that the server received, in order. */
const asked: IncomingMessage[] = [];
let answer: RequestListener;

const saying =
  (document: unknown, status = 200): RequestListener =>
  (_, response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document));

const run = (args: readonly string[], running: Running = {}) =>
  runHere(args, { ...running, env: serverEnvironment(server, PID) });

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(request);
    answer(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
beforeEach(() => {
  asked.length = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const sent = (id: number | null, event: string, data: unknown): string =>
  `${id === null ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

const positions = () =>
  asked.filter((request) => request.url?.includes("/events")).map(({ headers }) => headers["last-event-id"]);

describe("the conversation of a session", () => {
  const usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };
  const state = { state: "running", since: AT, waiting_for: null };
  const itemOf = (seq: number, said: string, status = "completed") => ({
    seq,
    kind: "message",
    status,
    author: { name: "ada" },
    role: "agent",
    content: [{ type: "text", text: said }],
    tool: null,
    request: null,
    answer: null,
    parent_id: null,
    model: null,
    error: null,
    created_at: AT,
  });
  const at = (id: string, place: number, seq = place) => ({ ...itemOf(seq, `said ${id}`), id, place });
  const deleted = { error: "Session not found.", code: "not_found" };
  let streams: readonly string[] = [];
  /** Sends the streams one after the other. Then the session is deleted. */
  const serve = (): void => {
    let opened = 0;
    answer = (request, response) => {
      if (request.url?.endsWith(`/items/${PID}/text`) === true) {
        response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end("the whole answer");
        return;
      }
      if (!request.url?.includes("/events")) {
        const page = {
          items: [itemOf(1, "Begin")],
          state,
          queue: [],
          requests: [],
          usage,
          seq: 2,
          next_cursor: null,
        };
        saying(page)(request, response);
        return;
      }
      const stream = streams[opened];
      opened += 1;
      if (stream === undefined) saying(deleted, 404)(request, response);
      else response.writeHead(200, { "content-type": "text/event-stream" }).end(stream);
    };
  };
  it("is printed one event a line, and continues after the last event of a connection that ended", async () => {
    const [item, delta] = [itemOf(3, `said ${ESC}[1m`), { item_id: PID, offset: 4, text: "x" }];
    streams = [
      `${sent(2, "open", {})}: keep\n\n${sent(3, "item", item)}${sent(null, "delta", delta)}`,
      sent(3, "open", {}),
      `${sent(3, "open", {})}${sent(4, "item", itemOf(4, "more"))}`,
    ];
    serve();
    const ended = await run(["sessions", "watch", PID, "--json"]);
    expect([ended.code, JSON.parse(ended.stderr)]).toEqual([4, deleted]);
    expect(ended.stdout).not.toContain(ESC);
    expect(
      ended.stdout
        .trim()
        .split("\n")
        .map((text) => JSON.parse(text) as unknown),
    ).toEqual([
      { event: "item", id: "1", data: itemOf(1, "Begin") },
      { event: "state", id: "2", data: { seq: 2, state, usage } },
      { event: "item", id: "3", data: item },
      { event: "delta", id: null, data: delta },
      { event: "item", id: "4", data: itemOf(4, "more") },
    ]);
    expect(positions()).toEqual(["2", "3", "3", "4"]);
  });

  it("is read again from its newest page after a reset", async () => {
    streams = [sent(9, "reset", {}), ""];
    serve();
    const ended = await run(["sessions", "watch", PID, "--json"]);
    const lines = ended.stdout
      .trim()
      .split("\n")
      .map((text) => (JSON.parse(text) as { event: string }).event);
    expect(lines).toEqual(["item", "state", "reset", "item", "state"]);
    expect(positions()).toEqual(["2", "2", "2"]);
  });

  it("prints no line of a pipe twice, and says of an item that moved where it belongs", async () => {
    const items = [at("a", 3), at("a", 3, 4), at("b", 5), at("a", 6)];
    streams = [items.map((item) => sent(item.seq, "item", item)).join("")];
    serve();
    const { stdout } = await run(["sessions", "watch", PID]);
    expect(stdout.split("\n").slice(2)).toEqual([
      `${AT} ada message completed: said a`,
      `${AT} ada message completed: said b`,
      "(“said a” belongs here, after what was said meanwhile.)",
      "",
    ]);
  });

  it("has the whole text of a finished message, of which the event has the beginning", async () => {
    const item = { ...itemOf(3, "the"), id: PID, truncated: true };
    const running = { ...itemOf(4, "it", "running"), id: PID, truncated: true };
    streams = [`${sent(3, "item", item)}${sent(4, "item", running)}`];
    serve();
    const ended = await run(["sessions", "watch", PID, "--json"]);
    const lines = ended.stdout.trim().split("\n").slice(2);
    expect(lines.map((text) => (JSON.parse(text) as { data: unknown }).data)).toEqual([
      { ...item, content: [{ type: "text", text: "the whole answer" }], truncated: false },
      running,
    ]);
  });

  it("is shown to people as finished items and states", async () => {
    const texts = [itemOf(3, "working", "running"), itemOf(4, `done ${ESC}[1m\nsecond line`)];
    streams = [texts.map((item) => sent(item.seq, "item", item)).join("")];
    serve();
    const ended = await run(["sessions", "watch", PID]);
    expect(ended.stdout).toBe(
      `${AT} ada message completed: Begin\n${AT} - state running\n${AT} ada message completed: done \\x1b[1m…\n`,
    );
    expect(ended.stderr).toBe("The connection is closed. Connecting again.\nSession not found.\n");
  });

  it("is shown at a terminal as the chat shows it, over a connection that ended", async () => {
    const grows = { ...itemOf(3, "It **wo", "running"), id: PID };
    const delta = { item_id: PID, offset: 7, text: "rks** now" };
    streams = [
      `${sent(3, "item", grows)}${sent(null, "delta", delta)}`,
      sent(4, "item", { ...grows, ...itemOf(4, "It **works** now.") }),
    ];
    serve();
    const ended = await run(["sessions", "watch", PID], { isShown: true });
    expect(ended.stdout).toBe(
      "ada\nBegin\n\nIt works\n\nThe connection is closed. Connecting again.\n\nnow.\n\nThe connection is closed. Connecting again.\n",
    );
  });

  it("shows what the agent asks, and the command that answers it", async () => {
    const request = {
      kind: "question",
      title: "Colour",
      patterns: [],
      questions: [
        {
          title: "Colour",
          text: "Which colour?",
          options: [{ label: "Blue", description: null }],
          multiple: false,
        },
      ],
    };
    const item = { ...itemOf(3, "", "pending"), id: AT, kind: "request", answer: null, request };
    streams = [sent(3, "item", item)];
    serve();
    const ended = await run(["sessions", "watch", PID]);
    expect(ended.stdout).toContain(
      `ada request pending: Colour\n  The agent asks: Which colour?\n    1. Blue\n` +
        `  Answer: platform sessions answer ${PID} ${AT} --text ANSWER\n`,
    );
  });
});

describe("a session that waits for a free one", () => {
  const queued = { status: "queued", queue_id: PID, position: 3, expires_at: AT };
  const fire = (fields: object) => ({
    id: PID,
    status: "queued",
    reason: null,
    session_id: null,
    position: 3,
    ...fields,
  });
  /** The answers to each look at the request, in order. The session's conversation is gone. */
  const serve = (looks: readonly object[]): void => {
    let looked = 0;
    answer = (request, response) => {
      if (request.method === "POST") return void saying(queued, 202)(request, response);
      if (request.url?.includes("/fires/") !== true)
        return void saying({ error: "Session not found.", code: "not_found" }, 404)(request, response);
      saying(fire(looks[looked] ?? {}))(request, response);
      looked += 1;
    };
  };
  it("is waited for, with its place, and followed once it has started", async () => {
    serve([{}, { position: 1 }, { status: "fired", position: null, session_id: PID }]);
    const ended = await run(["sessions", "create", "--watch"]);
    expect(ended.stdout).toBe(`${PID} Queued\n`);
    expect(ended.stderr).toMatch(
      /Place 3 in the queue\.\n[^]*Place 1 in the queue\.\nPage: [^\n]+\nSession not found\.\n$/,
    );
    expect(ended.code).toBe(4);
    expect(asked[0]?.url).toMatch(/\/sessions\?queue=true$/);
  });

  it.each([
    ["requested", "the request was cancelled"],
    ["role_lost", "the person who asked for it no longer has the role member in the project"],
  ])("ends with a sentence if the request is cancelled as %s", async (reason, why) => {
    serve([{ status: "cancelled", reason, position: null }]);
    const { code, stderr } = await run(["sessions", "create", "--watch"]);
    expect(code).toBe(1);
    expect(stderr.endsWith(`The session did not start: ${why}.\n`)).toBe(true);
  });
});

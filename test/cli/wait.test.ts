/** `platform sessions wait` against a service whose sessions go on, end, ask, or cannot be reached. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runHere, type Running, serverEnvironment } from "../support/service/command-line.ts";

const ID = "0190f3b2-0000-7000-8000-000000000001";
const EARLY = "2026-11-20T12:00:00.000Z";
const LATE = "2026-11-20T12:00:09.000Z";

type Fields = Readonly<Record<string, unknown>>;
type Answer = { readonly status: number; readonly document: unknown } | "cut";

let server: Server;
/** The answers to the looks at the session, in order; the last one again and again. */
let looks: Answer[] = [];
let conversation: Fields = {};
let asked = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    const ofConversation = { status: 200, document: conversation };
    const isSession = !request.url?.includes("/conversation");
    if (isSession) asked += 1;
    const answer = isSession ? (looks.length > 1 ? looks.shift() : looks[0]) : ofConversation;
    if (answer === undefined || answer === "cut") request.socket.destroy();
    else
      response
        .writeHead(answer.status, { "content-type": "application/json" })
        .end(JSON.stringify(answer.document));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const wait = (...args: readonly string[]) => run(args);
const run = (args: readonly string[], running: Running = {}) =>
  runHere(["sessions", "wait", ID, ...args], { ...running, env: serverEnvironment(server, ID) });

const idle = { state: "idle", since: EARLY, waiting_for: null };
const running = { state: "running", since: EARLY, waiting_for: null };
const completed = { state: "completed", error: null, at: LATE };
const session = (of: Fields = {}): Answer => ({
  status: 200,
  document: { id: ID, status: "running", turn: idle, pending_approvals: 0, last_turn: completed, ...of },
});
const message = (at: string): Fields => ({
  kind: "message",
  role: "user",
  status: "accepted",
  created_at: at,
  completed_at: at,
});
const talk = (of: Fields = {}): Fields => ({
  items: [message(EARLY)],
  state: idle,
  queue: [],
  queue_held: false,
  ...of,
});

beforeEach(() => {
  looks = [session()];
  conversation = talk();
  asked = 0;
});

describe("the wait for an agent", () => {
  it("ends with its turn, through a boot, a turn and a service that is away, and prints one line", async () => {
    const boots = session({ status: "provisioning", last_turn: null });
    const works = session({ turn: running, last_turn: null });
    looks = [boots, works, "cut", { status: 503, document: { error: "Busy.", code: "busy" } }, session()];
    const ended = await wait();
    expect([ended.code, ended.stdout]).toEqual([0, `${ID} The agent finished at 2026-11-20 12:00Z.\n`]);
    expect(ended.stderr).toMatch(/^The service at \S+ cannot be reached: .* Trying again\.\n$/);
    expect(asked).toBe(5);
  });

  it("prints the agent's answer at a terminal, as the chat shows it", async () => {
    const said = { ...message(EARLY), role: "agent", status: "completed", author: { name: "opencode" } };
    const answer = { ...said, id: ID, seq: 1, content: [{ type: "text", text: "It **works**." }], error: null, model: null }; // prettier-ignore
    conversation = talk({ items: [answer, message(EARLY)] });
    const ended = await run([], { isShown: true });
    expect(ended.stdout).toBe(`opencode\nIt works.\n\n${ID} The agent finished at 2026-11-20 12:00Z.\n`);
  });

  it.each<[string, Fields, number, string]>([
    [
      "a turn that failed",
      { last_turn: { ...completed, state: "failed", error: { code: "no_model", message: "No key." } } },
      7,
      "The agent failed: No key.\n",
    ],
    [
      "a turn that was interrupted",
      { last_turn: { ...completed, state: "interrupted" } },
      7,
      "The agent was interrupted.\n",
    ],
    [
      "a session that failed",
      { status: "failed", failure: { code: "boot_failed", message: "No disk." } },
      7,
      "The session failed: No disk.\n",
    ],
    [
      "a session that was stopped before",
      { status: "stopped", failure: null, stop_reason: "requested", last_turn: null },
      7,
      "The session ended before the agent finished a turn.\n",
    ],
    ["a question", { turn: { ...running, state: "requires_action" } }, 8, "The agent waits for an answer.\n"],
    ["a call to approve", { pending_approvals: 1 }, 8, "The agent waits for an approval.\n"],
  ])("ends with %s, and its exit code says so", async (_, of, code, stderr) => {
    looks = [session(of)];
    expect(await wait()).toEqual({ code, stdout: "", stderr });
  });

  it("gives programs the session, or the error, as one document", async () => {
    const ended = await wait("--json");
    expect([ended.code, JSON.parse(ended.stdout)]).toMatchObject([0, { id: ID, status: "running" }]);
    looks = [session({ pending_approvals: 2 })];
    const asks = await wait("--json");
    expect([asks.code, JSON.parse(asks.stderr)]).toMatchObject([8, { code: "requires_action" }]);
  });

  it("goes on for a stopped session whose restart waits for a place", async () => {
    looks = [session({ status: "stopped", activity: "queued", stop_reason: "idle" }), session()];
    expect((await wait()).code).toBe(0);
    expect(asked).toBe(2);
  });

  it.each<[string, Fields]>([
    ["messages that wait", talk({ queue: [message(LATE)] })],
    ["a turn that began meanwhile", talk({ state: running })],
    ["a message whose turn has not begun yet", talk({ items: [message("2026-11-20T12:00:20.000Z")] })],
  ])("goes on for %s, until its own time is over", async (_, found) => {
    conversation = found;
    expect(await wait("--timeout", "1s")).toEqual({
      code: 6,
      stdout: "",
      stderr: "The agent has not finished within 1s.\n",
    });
    expect(asked).toBeGreaterThan(1);
  });

  it("does not go on for a queue that a person holds", async () => {
    conversation = talk({ queue: [message(LATE)], queue_held: true });
    expect((await wait()).code).toBe(0);
  });

  it("ends at once with a refusal, and with a time that is none", async () => {
    looks = [{ status: 404, document: { error: "Session not found.", code: "not_found" } }];
    expect(await wait()).toMatchObject({ code: 4, stderr: "Session not found.\n" });
    expect((await wait("--timeout", "soon")).code).toBe(2);
  });
});

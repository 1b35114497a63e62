/**
 * Daemons of simulated sandboxes in one process, each on a unix socket of its own (linked-sandboxes.ts opens them). Real:
 * the daemon's HTTP server, its feed of the conversation with the removal of secrets, the signed contexts. Not there:
 * the sandbox and the agent runtime. The parent process says what the agents do (`Order`).
 *
 * Beside them listens a bare server of events, on the socket `bare`. It writes the same tokens, and nothing else.
 */
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { createServer } from "node:net";
import path from "node:path";
import { text as readText } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import type { ItemDraft } from "../../../../daemon/adapters/adapter.ts";
import { ConversationFeed, REPORT_EVERY_MS } from "../../../../daemon/conversation/feed.ts";
import { LogRing } from "../../../../daemon/logs/log-ring.ts";
import { Redactor } from "../../../../src/domain/secret/redactor.ts";
import { Report } from "../../../../daemon/report.ts";
import { DaemonServer } from "../../../../daemon/http/server.ts";
import { item, tool } from "../../../daemon/support/feed.ts";
import { BARE, CONTROL, stamp, type Done, type Opening, type Order } from "./farm-orders.ts";

interface Sandbox {
  readonly feed: ConversationFeed;
  turns: number;
}

const directory = process.env["TEST_DAEMON_FARM"] ?? "";
const bySession = new Map<string, Sandbox>();
const opened = new Map<string, Promise<void>>();
const readers = new Set<ServerResponse>();

const open = async ({ id, sessionId, token }: Opening): Promise<void> => {
  const redactor = new Redactor([token]);
  const report = new Report({ version: "0", redactor, repoUrl: "", branch: sessionId });
  const feed = new ConversationFeed({
    redactor,
    // oxlint-disable-next-line no-restricted-properties -- the feed of a real daemon
    now: () => Date.now(),
    after: (ms, run) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  });
  const server = new DaemonServer({
    token,
    sessionId,
    runtimePort: null,
    blockedPorts: [],
    report,
    ring: new LogRing(() => undefined),
    feed,
    abort: () => Promise.resolve(false),
    control: () => Promise.resolve({ done: { wip: null, skipped: [], error: null } }),
    steering: () => Promise.resolve({ done: { outcome: "accepted", turn: 1 } }),
  });
  await server.listen({ path: path.join(directory, id) });
  report.setRuntime({ state: "ready" });
  report.setRepo({ ready: true });
  bySession.set(sessionId, { feed, turns: 0 });
};

const sandboxOf = (sessionId: string): Sandbox => {
  const sandbox = bySession.get(sessionId);
  if (sandbox === undefined) throw new Error(`session ${sessionId} has no daemon here`);
  return sandbox;
};

/** Writes so many tokens in this rhythm. Tokens that are late come at once, and carry the instant at which they come. */
const inRhythm = async (
  { tokens, everyMs }: { readonly tokens: number; readonly everyMs: number },
  write: (token: string) => void,
): Promise<void> => {
  const begun = performance.now();
  for (let count = 0; count < tokens; count += 1) {
    await pause(Math.max(0, begun + count * everyMs - performance.now()));
    write(stamp());
  }
};

/** In JSON it is twice as long, as an event is that is too long for its frame. */
const QUOTED = '"\n';
/** Sessions do not speak in step: they begin over as long as a feed waits before it reports growing text. */
const SPREAD_MS = REPORT_EVERY_MS;

const message = (id: string, text: string, status: ItemDraft["status"]): ItemDraft =>
  item(id, {
    turn_id: null,
    status,
    content: [{ type: "text", text }],
    completed_at: status === "running" ? null : 2,
  });

const turn = async (sandbox: Sandbox, work: (turnId: string) => Promise<void>): Promise<void> => {
  const { feed } = sandbox;
  feed.turn({ state: "running", waiting_for: null }, sandbox.turns);
  await work(String(sandbox.turns));
  sandbox.turns += 1;
  feed.turn({ state: "idle", waiting_for: null }, sandbox.turns);
};

const talk = (sandbox: Sandbox, rhythm: { readonly tokens: number; readonly everyMs: number }) =>
  turn(sandbox, async (id) => {
    let text = "";
    await inRhythm(rhythm, (token) => {
      if (text === "") sandbox.feed.item(message(id, token, "running"));
      else sandbox.feed.grown({ native_id: id, offset: text.length, text: token });
      text += token;
    });
    sandbox.feed.item(message(id, text, "completed"));
  });

const say = (
  sandbox: Sandbox,
  { messages, everyMs }: { readonly messages: number; readonly everyMs: number },
) =>
  turn(sandbox, (id) => {
    let count = 0;
    return inRhythm({ tokens: messages, everyMs }, (token) => {
      sandbox.feed.item(message(`${id}-${count}`, token, "completed"));
      count += 1;
    });
  });

const run = (sandbox: Sandbox, { tools, length }: { readonly tools: number; readonly length: number }) =>
  turn(sandbox, async (id) => {
    for (let count = 0; count < tools; count += 1) {
      sandbox.feed.item({
        ...tool(`${id}-${count}`, `${count} `.padEnd(length, QUOTED)),
        turn_id: null,
      });
      // A turn of the loop for each, so that the readers get them as they come.
      await pause(0);
    }
  });

/** They begin over as long as a feed waits, and talk in this rhythm. */
const talkAll = (
  sessions: readonly string[],
  rhythm: { readonly tokens: number; readonly everyMs: number },
): Promise<unknown> =>
  Promise.all(
    sessions.map(async (session, index) => {
      await pause((index / sessions.length) * SPREAD_MS);
      await talk(sandboxOf(session), rhythm);
    }),
  );

const obey = async (order: Order): Promise<Done> => {
  if (order.kind === "messages") {
    const { session, beside, messages, everyMs, besideEveryMs } = order;
    const tokens = Math.ceil((messages * everyMs) / besideEveryMs);
    await Promise.all([
      talkAll(beside, { tokens, everyMs: besideEveryMs }),
      pause(SPREAD_MS).then(() => say(sandboxOf(session), order)),
    ]);
    return { tokens: messages };
  }
  if (order.kind === "run") {
    await run(sandboxOf(order.session), order);
    return { tokens: order.tools };
  }
  if (order.kind === "bare")
    await Promise.all(
      [...readers].map(async (reader, index) => {
        await pause((index / readers.size) * SPREAD_MS);
        await inRhythm(order, (token) => reader.write(`data: ${JSON.stringify({ text: token })}\n\n`));
      }),
    );
  else await talkAll(order.sessions, order);
  return { tokens: order.tokens };
};

createHttpServer((_, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  readers.add(response);
  response.on("close", () => readers.delete(response));
}).listen(path.join(directory, BARE));

createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => undefined);
  void readText(socket).then(async (text) => {
    const opening = JSON.parse(text) as Opening;
    const known = opened.get(opening.id) ?? open(opening);
    opened.set(opening.id, known);
    await known;
    socket.end();
  });
}).listen(path.join(directory, CONTROL), () => process.send?.("ready"));

process.on("message", (order: Order) => void obey(order).then((done) => process.send?.(done)));
process.on("disconnect", () => process.exit(0));

/**
 * Plays opencode, and dies at a moment that a test names: `fake-opencode.ts <port>`. The file `opencode.json` of its home stands for
 * its disk, so the next process has it. `moment` there names the moment, once.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";

/** When the process dies, or what it does in place of dying. */
export type Moment =
  /** Before it has answered the prompt. */
  | "asked"
  /** After it has answered the prompt, and before it has stored it. */
  | "answered"
  /** After it has stored the prompt, and before it is at work. */
  | "stored"
  /** While it is at work, before it has called the model. It was seen at work. */
  | "busy"
  /** The same, and it has told no events. */
  | "busy untold"
  /** In the middle of the model's answer. */
  | "answering"
  /** It stays at work without a call of the model. */
  | "hangs"
  /** It rests without a call of the model, and has told no events. */
  | "resting untold";

interface Record {
  readonly info: { readonly id: string; readonly [field: string]: unknown };
  readonly parts: readonly object[];
}

/** What outlives the process. */
interface Kept {
  readonly sessions: { id: string; title: string; time: { created: number; updated: number } }[];
  readonly messages: Record[];
  /** The texts with which the model was called. */
  readonly asked: string[];
}

const HOME = process.env["HOME"] ?? "";
const FILE = join(HOME, "opencode.json");
const MOMENT = join(HOME, "moment");

const kept: Kept = existsSync(FILE)
  ? (JSON.parse(readFileSync(FILE, "utf8")) as Kept)
  : { sessions: [], messages: [], asked: [] };
const keep = (): void => writeFileSync(FILE, JSON.stringify(kept));

const takeMoment = (): Moment | null => {
  if (!existsSync(MOMENT)) return null;
  const moment = readFileSync(MOMENT, "utf8") as Moment;
  rmSync(MOMENT);
  return moment;
};
const die = (): never => process.exit(9);

const busy = new Set<string>();
const listeners = new Set<ServerResponse>();
let isTelling = true;
/** Called after each listing of messages. */
let afterListing: () => void = () => undefined;

const tell = (type: string, properties: object): void => {
  if (!isTelling) return;
  for (const listener of listeners) listener.write(`data: ${JSON.stringify({ type, properties })}\n\n`);
};

/** Adds a message or changes it, as opencode does with one of the same id. */
const put = (record: Record): void => {
  const at = kept.messages.findIndex(({ info }) => info.id === record.info.id);
  if (at < 0) kept.messages.push(record);
  else kept.messages[at] = record;
  keep();
  const { sessionID } = record.info;
  tell("message.updated", { sessionID, info: record.info });
  for (const part of record.parts) tell("message.part.updated", { sessionID, part });
};

/** A time of its own for each record: opencode's ids are in order. */
let lastMs = 0;
// oxlint-disable-next-line no-restricted-properties -- a program of its own, on the machine's clock
const soon = (): number => (lastMs = Math.max(lastMs + 1, Date.now()));
const idAt = (prefix: string, ms: number): string =>
  `${prefix}_${BigInt.asUintN(48, BigInt(ms) * 0x1000n)
    .toString(16)
    .padStart(12, "0")}${"a".repeat(14)}`;

interface Prompt {
  readonly messageID: string;
  readonly parts: readonly { readonly id: string; readonly text?: string }[];
}

const isAnswered = (messageId: string): boolean =>
  kept.messages.some(({ info }) => info["parentID"] === messageId && info["finish"] !== undefined);

const answerOf = (sessionID: string, parentID: string, { isOver }: { readonly isOver: boolean }): Record => {
  const ms = soon();
  const id = idAt("msg", ms);
  const text = isOver ? "The answer." : "The ans";
  return {
    info: {
      id,
      sessionID,
      parentID,
      role: "assistant",
      providerID: "a",
      modelID: "one",
      time: { created: ms, ...(isOver && { completed: ms }) },
      ...(isOver && { finish: "stop" }),
    },
    parts: [
      {
        id: idAt("prt", ms),
        sessionID,
        messageID: id,
        type: "text",
        text,
        time: { start: ms, ...(isOver && { end: ms }) },
      },
    ],
  };
};

const rest = (sessionID: string): void => {
  busy.delete(sessionID);
  tell("session.status", { sessionID, status: { type: "idle" } });
  tell("session.idle", { sessionID });
};

/** A turn, up to the moment. */
const work = (sessionID: string, { messageID, parts }: Prompt, moment: Moment | null): void => {
  if (moment === "answered") die();
  isTelling = moment?.endsWith("untold") !== true;
  const info = { id: messageID, sessionID, role: "user", time: { created: soon() } };
  const stored = parts.map((part) => Object.assign({ sessionID, messageID, type: "text" }, part));
  put({ info, parts: stored });
  if (moment === "stored") die();
  if (isAnswered(messageID)) return;
  busy.add(sessionID);
  tell("session.status", { sessionID, status: { type: "busy" } });
  if (moment === "hangs") return;
  if (moment === "busy" || moment === "busy untold") {
    afterListing = () => setTimeout(die, 200);
    return;
  }
  if (moment === "resting untold") {
    afterListing = () => rest(sessionID);
    return;
  }
  kept.asked.push(parts.map(({ text = "" }) => text).join(""));
  if (moment === "answering") {
    put(answerOf(sessionID, messageID, { isOver: false }));
    afterListing = () => setTimeout(die, 200);
    return;
  }
  put(answerOf(sessionID, messageID, { isOver: true }));
  rest(sessionID);
};

const listed = (id: string) => kept.messages.filter(({ info }) => info["sessionID"] === id);

const reads = (path: string): unknown => {
  const [, , id = "", , messageId] = path.split("/");
  if (path === "/session") return kept.sessions;
  if (path === "/session/status")
    return Object.fromEntries([...busy].map((one) => [one, { type: "busy" }] as const));
  if (path === "/agent") return [{ name: "build", mode: "primary" }];
  if (path === "/config/providers") return { providers: [{ id: "a", models: { one: {} } }] };
  if (path === "/command" || path === "/question" || path === "/permission") return [];
  if (messageId !== undefined) return listed(id).find(({ info }) => info.id === messageId);
  if (path.endsWith("/message")) return listed(id);
  return {};
};

const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const [path = ""] = (request.url ?? "").split("?");
  const [, , id = ""] = path.split("/");
  if (path === "/event") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    listeners.add(response);
    response.write(`data: ${JSON.stringify({ type: "server.connected", properties: {} })}\n\n`);
    return;
  }
  if (request.method === "GET") {
    const found = reads(path);
    response.writeHead(found === undefined ? 404 : 200).end(JSON.stringify(found ?? {}));
    if (path.endsWith("/message")) afterListing();
    return;
  }
  const body = (await json(request)) as Partial<Prompt> & { readonly title?: string };
  if (path === "/session") {
    const ms = soon();
    const session = { id: idAt("ses", ms), title: body.title ?? "", time: { created: ms, updated: ms } };
    kept.sessions.push(session);
    keep();
    tell("session.created", { sessionID: session.id, info: session });
    response.end(JSON.stringify(session));
  } else if (path.endsWith("/prompt_async")) {
    const moment = takeMoment();
    if (moment === "asked") die();
    response.writeHead(204).end(() => work(id, body as Prompt, moment));
  } else {
    if (path.endsWith("/abort")) rest(id);
    response.end("true");
  }
};

createServer((request, response) => void serve(request, response)).listen(
  Number(process.argv[2]),
  "127.0.0.1",
);

/** The API as the contract words it, over plain objects that a test can change, and the page's files under the service's policy. */
import { SESSION_SPEND, SET_LIMIT } from "../samples/sample-spend.ts";
import { once } from "node:events";
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import * as path from "node:path";
import { PAGE_POLICY, readPage } from "../../../src/http/pages/page-files.ts";
import {
  type FakeConversation,
  isOfConversation,
  makeConversations,
  servesFile,
} from "./fake-conversation.ts";
import { activityAnswer, type FakeActivity } from "./fake-activity.ts";
import { connectorsAnswer, type FakeConnectors } from "./fake-connectors.ts";
import { environmentAnswer, type FakeEnvironment } from "./fake-environment.ts";
import { type FakePeople, openInvitation, peopleAnswer } from "./fake-people.ts";
import { type FakeReceivers, receiversAnswer } from "./fake-receivers.ts";
import { type FakeSettings, settingsAnswer } from "./fake-settings.ts";
import { type FakeWorkspace, workspaceAnswer } from "./fake-workspace.ts";
import { withRow } from "./fake-rows.ts";
import { lineFrame, openStream, RESET } from "./fake-streams.ts";
import { MACHINES } from "../samples/sample-machines.ts";

const PAGE = path.resolve(import.meta.dirname, "../../../dashboard");

export const TOKEN = "platform_pat_right";
export const CODE = "one-time-code";
export const OTTOS_CODE = "one-time-code-of-otto";
const CSRF = "csrf-of-this-session";

type Json = Readonly<Record<string, unknown>>;

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly error: string;
  readonly details?: Json;
}

/** What the fake answers with; tests change it and call `emit`. */
export interface World
  extends
    FakeActivity,
    FakeSettings,
    FakePeople,
    FakeReceivers,
    FakeConnectors,
    FakeEnvironment,
    FakeWorkspace {
  me: Json;
  sessions: Json[];
  sandbox: Json | null;
  /** What every session's log says. */
  logs: Json[];
  /** Every session's conversation. */
  conversation: FakeConversation;
  listing: Json;
  changes: Json[];
  remarks: Json[];
  diff: string;
  /** Diffs of single files, by path. */
  fileDiffs?: Readonly<Record<string, string>>;
  queue: Json[];
  /** Why each kind of actor is in its state. */
  machines: Record<string, Json>;
  /** What the agents used. */
  usage: Json;
  /** Newest first. */
  refusals: Json[];
  /** What passed the service for each session. */
  counted: Json[];
  /** The ledger with all that one fire's own page shows, newest first. */
  fires: Json[];
  /** What listens in every running sandbox. */
  ports: number[];
  /** What a new trigger's description means. */
  draft: Json;
  /** The change request that a change of a trigger opens. */
  proposal: Json;
  /** Where each link to a port leads. */
  link: string;
  /** What each preview renders to. */
  preview: Json;
  /** What a start of a session answers. */
  created: Json;
  /** What each replay answers. */
  replay: Json;
  /** What the operator sees of the service. Null: this reader is not the operator. */
  operator: Json | null;
  /** What each examination of the sandboxes finds. */
  doctor: Json;
  /** Answers every request that changes something with this refusal while set. */
  refused: Refusal | null;
  /** Answers every read of the API with this refusal while set. */
  broken: { readonly status: number; readonly error: string } | null;
}

export interface FakeService {
  readonly url: string;
  readonly world: World;
  /** Requests that change things, as "METHOD path body". */
  readonly writes: string[];
  /** Sends an event to every open stream. */
  readonly emit: (type: string) => void;
  /** Adds a line to the log; null says that some are missing. */
  readonly log: (line: Json | null) => void;
  /** How many follow a log, and the events of a project. */
  readonly logReaders: () => number;
  readonly eventReaders: () => number;
  /** Adds a version to the conversation, or sends what is not kept. */
  readonly say: (event: string, data: Json) => void;
  /** How often each page of the conversation was read, and how many follow it. */
  readonly conversations: { readonly reads: () => number; readonly readers: () => number };
  /** Ends the streams, as a restart of the service does. */
  readonly cutStreams: () => void;
  /** Ends every connection, and takes none until it is up again, at the same address. */
  readonly down: () => Promise<void>;
  readonly up: () => Promise<void>;
  readonly close: () => void;
}

export const startFakeService = async (
  world: World,
  options: { readonly csp: boolean },
): Promise<FakeService> => {
  const writes: string[] = [];
  const streams = new Set<http.ServerResponse>();
  const logs = new Set<http.ServerResponse>();
  const conversations = makeConversations(world);
  const server = http.createServer((request, response) => {
    void serve(request, response);
  });

  const serve = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    if (options.csp) response.setHeader("content-security-policy", PAGE_POLICY);
    const target = new URL(request.url ?? "/", "http://fake");
    const { pathname, searchParams } = target;
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const content = Buffer.concat(chunks);
    const body = content.toString("utf8");
    if (pathname.startsWith("/dashboard/")) return dashboardSession(world, request, response, body);
    if (!pathname.startsWith("/v1/")) return file(response, pathname);
    const person = personOf(request);
    if (person === null) return refuse(response, 401, "unauthorized", "No one is signed in.");
    if (request.method !== "GET") {
      if (request.headers["x-csrf-token"] !== CSRF) {
        return refuse(response, 403, "csrf", "The CSRF token is missing.");
      }
      // Every page of a session says so, and tests look at what a person does.
      if (!pathname.endsWith("/seen")) writes.push(`${request.method ?? ""} ${pathname} ${body}`);
      if (world.refused !== null) {
        const { status, ...answer } = world.refused;
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
        return;
      }
    } else if (world.broken !== null && !/\/(?:events|logs)$/.test(pathname)) {
      return refuse(response, world.broken.status, "broken", world.broken.error);
    }
    const type = request.headers["content-type"] ?? "";
    if (servesFile(world.conversation, { target, type, content }, response)) return;
    if (isOfConversation(pathname)) return conversations.answer(request, response, { person, body });
    if (pathname.endsWith("/events"))
      return openStream(response, streams, "id: 0\nevent: open\ndata: {}\n\n");
    if (pathname.endsWith("/logs")) {
      const from = Number(request.headers["last-event-id"] ?? 0);
      const lines = world.logs.slice(from).map((line, index) => lineFrame(line, from + index));
      return openStream(response, logs, `event: open\ndata: {}\n\n${lines.join("")}`);
    }
    const route = `${request.method ?? ""} ${pathname}`;
    if (route === "GET /v1/me") {
      const user = person === PEOPLE[CODE] ? world.me["user"] : { id: person, name: person, role: "owner" };
      return void response.end(JSON.stringify({ ...world.me, user }));
    }
    // Null is an answer without a body.
    const answer = [
      () => activityAnswer(world, { route, query: searchParams, body }),
      () => peopleAnswer(world, route, body),
      () => receiversAnswer(world, route, body),
      () => connectorsAnswer(world, route),
      () => settingsAnswer(world, route, body),
      () => environmentAnswer(world, route, searchParams),
      () => answerOf(world, route, searchParams),
    ].reduce<Json | string | null | undefined>(
      (found, next) => (found === undefined ? next() : found),
      undefined,
    );
    if (answer === undefined) return refuse(response, 404, "not_found", "Not found.");
    if (answer === null) response.writeHead(204).end();
    else if (typeof answer === "string")
      response.writeHead(200, { "content-type": "text/plain" }).end(answer);
    else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  };

  const listen = (at: number) =>
    new Promise<void>((resolve) => {
      server.listen(at, "127.0.0.1", resolve);
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    world,
    writes,
    emit: (type) => {
      conversations.news();
      for (const stream of streams)
        stream.write(`id: 1\nevent: ${type}\ndata: ${JSON.stringify({ type })}\n\n`);
    },
    log: (line) => {
      if (line !== null) world.logs.push(line);
      const frame = line === null ? RESET : lineFrame(line, world.logs.length - 1);
      for (const stream of logs) stream.write(frame);
    },
    logReaders: () => logs.size,
    eventReaders: () => streams.size,
    say: conversations.say,
    conversations,
    cutStreams: () => {
      conversations.cut();
      for (const stream of [...streams, ...logs]) stream.destroy();
    },
    down: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
    up: () => listen(port),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

const refuse = (response: http.ServerResponse, status: number, code: string, error: string) => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error, code }));
};

const file = async (response: http.ServerResponse, pathname: string) => {
  const name = pathname === "/" ? "index.html" : path.basename(pathname);
  const found = (await readPage(PAGE)).find((one) => one.name === name);
  if (found === undefined) return refuse(response, 404, "not_found", name);
  response.writeHead(200, { "content-type": found.type }).end(found.plain);
};

/** The link with one of these codes signs in as that person. */
const PEOPLE: Readonly<Record<string, string>> = { [CODE]: "Mona", [OTTOS_CODE]: "Otto" };
const cookieOf = (person: string) => `dashboard=yes-${person}; HttpOnly; SameSite=Strict; Path=/`;

const personOf = (request: http.IncomingMessage): string | null =>
  /dashboard=yes-(\w+)/.exec(request.headers.cookie ?? "")?.[1] ?? null;

const dashboardSession = (
  world: World,
  request: http.IncomingMessage,
  response: http.ServerResponse,
  body: string,
) => {
  const route = `${request.method ?? ""} ${request.url ?? ""}`;
  const person = personOf(request);
  const opened = PEOPLE[/^GET \/dashboard\/open\?code=(.+)$/.exec(route)?.[1] ?? ""];
  if (route === "GET /dashboard/providers") {
    response.writeHead(200).end(JSON.stringify({ providers: world.providers }));
  } else if (route.startsWith("POST /dashboard/login/")) {
    response.writeHead(200).end(JSON.stringify({ url: "/#/operator" }));
  } else if (route.startsWith("POST /dashboard/invitations/")) {
    const { status, joins, answer } = openInvitation(world, route, body);
    response
      .writeHead(status, joins === undefined ? {} : { "set-cookie": cookieOf(joins) })
      .end(JSON.stringify({ ...answer, csrf: CSRF }));
  } else if (opened !== undefined) {
    response.writeHead(303, { "set-cookie": cookieOf(opened), location: "/" }).end();
  } else if (route === "POST /dashboard/session") {
    if ((JSON.parse(body) as { token: string }).token !== TOKEN)
      return refuse(response, 401, "unauthorized", "This token is Invalid or expired token..");
    response.writeHead(200, { "set-cookie": cookieOf("Mona") }).end(JSON.stringify({ csrf: CSRF }));
  } else if (route === "GET /dashboard/session" && person !== null) {
    response.writeHead(200).end(JSON.stringify({ user: { id: "u", name: person }, csrf: CSRF }));
  } else if (route === "DELETE /dashboard/session" && request.headers["x-csrf-token"] === CSRF) {
    response.writeHead(204, { "set-cookie": `${cookieOf("Mona")}; Max-Age=0` }).end();
  } else {
    refuse(response, 401, "unauthorized", "No one is signed in.");
  }
};

/** JSON, text, null for an answer without a body, undefined for a missing object. */
type Answer = Json | string | null | undefined;

const answerOf = (world: World, route: string, query: URLSearchParams): Answer => {
  if (route === "GET /v1/projects") return { projects: world.projects, next_cursor: null };
  if (route === "GET /v1/sessions") return sessionsOf(world, query);
  if (route === "GET /v1/change-requests")
    return {
      change_requests: world.changes.filter((one) => one["review_asked"] !== null),
      next_cursor: null,
    };
  if (route === "GET /v1/operator") return world.operator ?? undefined;
  if (route === "POST /v1/operator/doctor") return world.doctor;
  if (route === "GET /v1/machines") return { machines: MACHINES };
  if (route === "GET /v1/account/machine") return world.machines["account"];
  if (route === "GET /v1/queue") return pageOf("queue", world.queue, query);
  const match = /^(?<method>\w+) \/v1\/projects\/(?<id>[^/]+)(?<rest>.*)$/.exec(route)?.groups;
  const project = world.projects.find((one) => one["id"] === match?.["id"]);
  if (match === undefined || project === undefined) return undefined;
  return match["method"] === "GET"
    ? (readOf(world, match["rest"] ?? "", query) ?? (match["rest"] === "" ? project : undefined))
    : writeOf(world, match["method"] ?? "", match["rest"] ?? "");
};

const readOf = (world: World, rest: string, query: URLSearchParams): Answer => {
  const [, group, id, part] = rest.split("/");
  const session = world.sessions.find((one) => one["id"] === id);
  const change = world.changes.find((one) => String(one["number"]) === id);
  if (group === "sessions" && id === undefined) return sessionsOf(world, query);
  if (rest.endsWith("/machine")) return world.machines[machineOf(group ?? "", part)];
  if (group === "fires") return id === undefined ? ledgerOf(world, query) : fireOf(world, id);
  if (group === "sessions" && part === undefined) return session && withRow(session, world.changes);
  if (group === "sessions" && part === "model-usage") return { models: world.counted };
  if (group === "sessions" && (part === "spend" || part === "spend-limit")) return SESSION_SPEND;
  if (group === "sessions" && part === "sandbox") return world.sandbox ?? undefined;
  if (group === "sessions" && part === "ports") return { ports: world.ports };
  if (group === "sessions" && part === "workspace") return workspaceAnswer(world, rest, query);
  if (group === "triggers") return world.listing;
  if (group === "usage") return world.usage;
  if (group === "webhook-refusals") return refusalsOf(world, query);
  if (group === "change-requests" && id === undefined) {
    const author = query.get("session_id");
    const listed = world.changes.filter((one) => author === null || one["session_id"] === author);
    return { change_requests: listed, next_cursor: null };
  }
  if (group === "change-requests" && part === "remarks") return { remarks: world.remarks, next_cursor: null };
  if (group === "change-requests" && part === "diff") {
    const one = query.get("path");
    return one === null ? world.diff : (world.fileDiffs?.[one] ?? "");
  }
  return group === "change-requests" ? change : undefined;
};

/** What an address ends with names its actor. */
const machineOf = (group: string, part: string | undefined): string =>
  part === "sandbox" || part === "conversation" ? part : group.replace(/s$/, "");

/** As the service does, it gives at most 200 at once. */
const pageOf = (plural: string, items: readonly Json[], query: URLSearchParams): Json | undefined => {
  const from = Number(query.get("cursor") ?? 0);
  const limit = Number(query.get("limit"));
  if (limit < 1 || limit > 200) return undefined;
  return {
    [plural]: items.slice(from, from + limit),
    next_cursor: from + limit < items.length ? String(from + limit) : null,
  };
};

const isTurn = ({ status, turn, unsaved }: Json, state: string): boolean =>
  status === "running" && (Object(turn).state === state || (state === "requires_action" && unsaved !== null));

/** By its name, or by the message that the world has for it in `found`. */
const searched = ({ found, ...one }: Json, search: string | null): readonly Json[] => {
  const name = String(one["name"] ?? one["trigger_slug"] ?? one["initial_prompt"]);
  const has = (text: string): boolean => text.toLowerCase().includes((search ?? "").toLowerCase());
  if (has(name)) return [one];
  return found !== undefined && has(String(Object(found).text)) ? [{ ...one, found }] : [];
};

/** The service's own filters, on what the page shows. */
const sessionsOf = (world: World, query: URLSearchParams) => {
  const [status, turn, trigger] = [query.get("status"), query.get("turn"), query.get("trigger")];
  const [activity, archived] = [query.get("activity"), query.get("archived")];
  const [startedBy, by, search] = [query.get("started_by"), query.get("created_by"), query.get("search")];
  const found = world.sessions
    .map((one) => withRow(one, world.changes))
    .filter((one) => status === null || one["status"] === status)
    .filter((one) => turn === null || isTurn(one, turn))
    .filter((one) => activity === null || activity.split(",").includes(String(one["activity"])))
    .filter((one) => archived === null || String(one["archived"]) === archived)
    .filter((one) => trigger === null || one["trigger_slug"] === trigger)
    .filter((one) => startedBy === null || (one["trigger_slug"] === null) === (startedBy === "person"))
    .filter((one) => by === null || one["created_by"] === by)
    .flatMap((one) => searched(one, search));
  return pageOf("sessions", found, query);
};

const outcomeIn = ({ outcome }: Json) => (outcome as Json | null | undefined)?.["state"];

const ledgerOf = (world: World, query: URLSearchParams) => {
  const [slug, isFailed] = [query.get("slug"), query.get("outcome") === "failed"];
  const status = query.get("status");
  const found = world.fires
    .filter((fire) => status === null || fire["status"] === status)
    .filter((fire) => !isFailed || fire["status"] === "failed" || outcomeIn(fire) === "failed")
    .filter((fire) => slug === null || fire["trigger_slug"] === slug)
    .map(({ request: _request, prompt: _prompt, ...fire }) => fire);
  return pageOf("fires", found, query);
};

const refusalsOf = ({ refusals }: World, query: URLSearchParams) => {
  const slug = query.get("slug");
  const found = refusals.filter((one) => slug === null || one["slug"] === slug);
  return pageOf("webhook_refusals", found, query);
};

const fireOf = (world: World, id: string | undefined) => world.fires.find((fire) => fire["id"] === id);

const cancel = (world: World, id: string | undefined): Answer => {
  const fire = fireOf(world, id);
  if (fire?.["status"] !== "queued") return undefined;
  world.fires = world.fires.map((one) => (one === fire ? { ...fire, status: "cancelled" } : one));
  world.queue = world.queue.filter((entry) => entry["fire_id"] !== id);
  return null;
};

const writeOf = (world: World, method: string, rest: string): Answer => {
  const [, sid] = /^\/sessions\/([^/]+)$/.exec(rest) ?? [];
  if (sid !== undefined && method === "DELETE") {
    world.sessions = world.sessions.filter((one) => one["id"] !== sid);
    return null;
  }
  const reviewer = /^\/change-requests\/\d+\/reviewers\/(.+)$/.exec(rest)?.[1];
  if (reviewer !== undefined) return method === "DELETE" ? null : { name: reviewer };
  if (method === "DELETE") return cancel(world, rest.split("/").at(-1));
  if (rest.endsWith("/spend-limit") && method === "PUT") return SET_LIMIT;
  if (rest.endsWith("/preview")) return rest.startsWith("/sessions/") ? { url: world.link } : world.preview;
  if (rest.endsWith("/replay")) return world.replay;
  if (rest === "/sessions") return world.created;
  if (rest === "/sync") return world.listing;
  if (rest === "/triggers/drafts") return world.draft;
  if (/^\/triggers\/(?:[^/]+\/)?proposals$/.test(rest)) return world.proposal;
  if (rest.endsWith("/fire")) {
    return { status: "fired", session_id: "0199aaaa-0000-7000-8000-000000000001" };
  }
  const [, number, end] = /^\/change-requests\/(\d+)\/(merge|close)$/.exec(rest) ?? [];
  const change = world.changes.find((one) => String(one["number"]) === number);
  if (change !== undefined) {
    const at = change["created_at"];
    const ended =
      end === "merge"
        ? { status: "merged", mergeable: false, merged_at: at, merged_commit: "5ca1ab1e".repeat(5) }
        : { status: "closed", mergeable: false, updated_at: at };
    world.changes = world.changes.map((one) => (one === change ? { ...one, ...ended } : one));
  }
  return rest === "/change-requests" ? { number: 8 } : {};
};

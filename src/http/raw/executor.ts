/**
 * `POST /v1/projects/{pid}/executor/mcp`: tools for the agent of a session, by the Model Context Protocol
 * (streamable HTTP, revisions 2025-11-25 and 2026-07-28). A raw route, because the protocol has its own form of errors.
 *
 *  G1 Only the token of a session's sandbox is accepted (power `execute`). It ends with the session. A call under way ends, too.
 *  G2 Nothing is remembered between two requests.
 *  G3 A request that names another host or comes from a page of another origin is refused before it is read.
 */
import type * as Cause from "effect/Cause";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Stream from "effect/Stream";
import { HttpServerRequest, HttpServerResponse, HttpRouter } from "effect/http";
import { isRecord } from "../../ground/record.ts";
import { CallApproval, type TellProgress } from "../../services/connectors/call-approval.ts";
import { callTool, directTools, findTools } from "../../services/connectors/executor.ts";
import {
  textResult,
  type AgentCaller,
  type AgentResult,
  type Arguments,
} from "../../services/connectors/executor-decision.ts";
import { RESERVED_SLUG } from "../../domain/connector/connector.ts";
import { parseUuid } from "../../domain/ids.ts";
import { badRequest, Unauthorized, unsupportedMedia } from "../api/errors.ts";
import { awaitBody } from "../reading/body.ts";
import type { Router } from "./own-api.ts";
import { callOwnTool } from "./own-call.ts";
import { findable, INSTRUCTIONS, META_TOOLS } from "./meta-tools.ts";
import { OwnTools } from "./own-tools.ts";
import { withApiErrors } from "../steps/answers.ts";
import { Addresses, ThisNode } from "../limits.ts";
import { toolTails } from "../live/tools.ts";
import { agentFor } from "./executor-caller.ts";
import { listening } from "./executor-stream.ts";
import { withErrors, calledWith, endOfAccess } from "./raw-route.ts";

/** Arguments of 256 KiB, and the message around them. */
const BODY_MAX_BYTES = 512 * 1024;
/** A stream without a byte could be taken for a dead connection. */
const KEEP_ALIVE_MS = 10_000;

type Library = typeof import("@modelcontextprotocol/server");
/** Apart from this file, so that a program without a service does not load its 37 MB. */
const loadLibrary = (): Promise<Library> => import("@modelcontextprotocol/server");

/** Loads the protocol's library, which holds the event loop for 100 ms or more. So it is done before the service is ready. */
export const loadProtocol: Effect.Effect<void> = Effect.ignore(Effect.tryPromise(loadLibrary));

/** The name as it is, or with a character in an escape. No other text has a field of this name. */
const MAY_HAVE_PROTO = /__proto__|\\u/;

/** `__proto__` is a field of no tool, and programs disagree on what it means. @param text JSON */
const hasProto = (text: string): boolean => {
  if (!MAY_HAVE_PROTO.test(text)) return false;
  let hasName = false;
  JSON.parse(text, (name, value: unknown) => {
    if (name === "__proto__") hasName = true;
    return value;
  });
  return hasName;
};

/** Reads the message. @returns its text and what it says. */
const readMessage = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) return yield* unsupportedMedia();
  yield* awaitBody(request, BODY_MAX_BYTES);
  const text = yield* Effect.orDie(request.text);
  const parsed = yield* Effect.try({
    try: () => JSON.parse(text) as unknown,
    catch: () => badRequest("", "must be JSON"),
  });
  if (hasProto(text)) return yield* badRequest("", "must not have a field `__proto__`");
  return { text, parsed };
});

interface Call {
  readonly name: string;
  readonly given: Arguments;
}

const OWN_NAME = `${RESERVED_SLUG}_`;

/** A tool by its name, the platform's own or a connector's. */
const callNamed = Effect.fnUntraced(function* (caller: AgentCaller, call: Call, { router, tell }: Ways) {
  if (!call.name.startsWith(OWN_NAME)) return yield* callTool(caller, call, tell);
  return yield* callOwnTool(router, caller, { ...call, name: call.name.slice(OWN_NAME.length) });
});

/** How calls are performed. */
interface Ways {
  readonly router: Router;
  readonly tell: TellProgress;
}

/** One way for every name. */
const perform = (caller: AgentCaller, { name, given }: Call, ways: Ways) => {
  const { name: wanted, arguments: inner = {}, query, id } = given;
  if (name === "find_tools")
    return Effect.flatMap(OwnTools, (own) =>
      findTools(caller, typeof query === "string" ? query : "", own.map(findable)),
    );
  if (name === "call_result") {
    const callId = typeof id === "string" ? parseUuid(id) : null;
    return callId === null
      ? Effect.succeed(textResult("call_result needs id, the id of a call.", true))
      : Effect.flatMap(CallApproval, ({ result }) => result(caller, callId));
  }
  if (name !== "call_tool") return callNamed(caller, { name, given }, ways);
  return typeof wanted === "string" && isRecord(inner)
    ? callNamed(caller, { name: wanted, given: inner }, ways)
    : Effect.succeed(textResult("call_tool needs name, a text, and arguments, an object.", true));
};

/** Tells a client that gave a progress token that its call still waits. A client that is gone is not told. */
const progressFor =
  (token: string | number | undefined, notify: (progress: Progress) => Promise<void>): TellProgress =>
  (waitedMs) =>
    token === undefined
      ? Effect.void
      : Effect.ignore(
          Effect.tryPromise(() =>
            notify({
              method: "notifications/progress",
              params: {
                progressToken: token,
                progress: Math.round(waitedMs / 1000),
                message: "The call waits for a person's approval.",
              },
            }),
          ),
        );

interface Progress {
  readonly method: "notifications/progress";
  readonly params: {
    readonly progressToken: string | number;
    readonly progress: number;
    readonly message: string;
  };
}

const resultWire = ({ content, structuredContent, isError }: AgentResult) => ({
  content: content as never,
  ...(structuredContent !== undefined && { structuredContent: structuredContent as never }),
  isError,
});

/** Why a message is not worked on any more. Made once: an error with its stack costs time, and each message ends with it. */
const OVER = new Error("the message was answered, or its client has gone");

/** One message under way. */
interface Exchange {
  readonly router: Router;
  /** Ends the call. */
  readonly end: AbortController;
  /** Done when the client has heard that its call waits: from then on it reads the answer as it comes. */
  readonly isTold: Deferred.Deferred<void>;
}

/** The protocol's server for one message. */
const serverFor = Effect.fnUntraced(function* (caller: AgentCaller, { router, end, isTold }: Exchange) {
  const { version } = yield* ThisNode;
  type Services = Effect.Services<ReturnType<typeof perform> | ReturnType<typeof directTools>>;
  const services = yield* Effect.context<Services>();
  return ({ Server }: Library, era: "legacy" | "modern") => {
    const server = new Server(
      { name: "platform-executor", version },
      // A client of the older revision keeps a stream open for this (executor-stream.ts).
      { capabilities: { tools: { listChanged: era === "legacy" } }, instructions: INSTRUCTIONS },
    );
    server.setRequestHandler("tools/list", async () => {
      const direct = await Effect.runPromiseWith(services)(withApiErrors(directTools(caller)), {
        signal: end.signal,
      });
      return {
        tools: [
          ...META_TOOLS,
          ...direct.map(({ name, description, inputSchema }) => ({
            name,
            description,
            inputSchema: Object.assign({}, inputSchema, { type: "object" as const }),
          })),
        ],
      };
    });
    server.setRequestHandler("tools/call", ({ params }, { mcpReq }) => {
      // The protocol names the field.
      const { ["_meta"]: about } = mcpReq;
      const tell = progressFor(about?.progressToken, async (progress) => {
        await mcpReq.notify(progress);
        Deferred.doneUnsafe(isTold, Effect.void);
      });
      const call = { name: params.name, given: params.arguments ?? {} };
      return Effect.runPromiseWith(services)(
        Effect.map(withApiErrors(perform(caller, call, { router, tell })), resultWire),
        {
          signal: end.signal,
        },
      );
    });
    return server;
  };
});

/** Answers one message by the protocol's library. @returns what it begins to answer, and how to end it */
const begin = Effect.fnUntraced(function* (
  caller: AgentCaller,
  { text, parsed }: { readonly text: string; readonly parsed: unknown },
  exchange: Exchange,
) {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const { internalUrl } = yield* Addresses;
  const makeServer = yield* serverFor(caller, exchange);
  const { signal } = exchange.end;
  return yield* Effect.promise(async () => {
    const library = await loadLibrary();
    const { fetch, close } = library.createMcpHandler(({ era }) => makeServer(library, era), {
      keepAliveMs: KEEP_ALIVE_MS,
      maxRequestBodySize: BODY_MAX_BYTES,
    });
    const web = new Request(new URL(request.url, internalUrl), {
      method: "POST",
      headers: { ...request.headers },
      body: text,
      signal,
    });
    return { response: await fetch(web, { parsedBody: parsed }), close };
  });
});

/**
 * Answers one message: at once, or as a stream if its call waits for a person and the client wants to hear of it. The call
 * ends with the request's scope: after the last byte, or when the client goes away.
 */
const answerMessage = Effect.fnUntraced(function* (
  caller: AgentCaller,
  message: { readonly text: string; readonly parsed: unknown },
  { router, ended }: { readonly router: Router; readonly ended: Effect.Effect<unknown> },
) {
  const exchange = { router, end: new AbortController(), isTold: Deferred.makeUnsafe<void>() };
  yield* Effect.addFinalizer(() => Effect.sync(() => exchange.end.abort(OVER)));
  const { response, close } = yield* begin(caller, message, exchange);
  yield* Effect.addFinalizer(() => Effect.promise(close));
  const { status, body } = response;
  const contentType = response.headers.get("content-type") ?? "application/json";
  if (body === null) return HttpServerResponse.empty({ status });
  const bytes = yield* Queue.unbounded<Uint8Array, Cause.Done>();
  const reading = Stream.fromReadableStream({ evaluate: () => body, onError: (error) => error }).pipe(
    Stream.runForEach((part) => Queue.offer(bytes, part)),
    Effect.ignore,
    Effect.andThen(Queue.end(bytes)),
  );
  const all = yield* Effect.forkScoped(reading);
  yield* Effect.raceFirst(Fiber.await(all), Deferred.await(exchange.isTold));
  const answer = Stream.fromQueue(bytes);
  if (all.pollUnsafe() === undefined)
    return HttpServerResponse.stream(Stream.interruptWhen(answer, ended), { status, contentType });
  const parts = yield* Stream.runCollect(answer);
  return HttpServerResponse.uint8Array(Buffer.concat(parts), { status, contentType });
});

const mcp = (router: Router) =>
  calledWith("call_tool", (caller, { pid }) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest;
      const agent = yield* agentFor(caller, pid);
      const end = yield* endOfAccess(caller, pid, "member");
      const reading = Effect.flatMap(readMessage(request), (message) =>
        answerMessage(agent, message, { router, ended: end }),
      );
      return yield* Effect.raceFirst(reading, Effect.flatMap(end, tokenEnded));
    }),
  );

const tokenEnded = () =>
  new Unauthorized({ error: "The session ended while the call was performed.", code: "unauthorized" });

const PATH = "/v1/projects/:pid/executor/mcp";

export const executorRoutes = Layer.unwrap(
  Effect.map(toolTails, (tails) =>
    Layer.merge(
      HttpRouter.use((router) => router.add("POST", PATH, withErrors(mcp(router)))),
      HttpRouter.add("GET", PATH, withErrors(listening(tails))),
    ),
  ),
);

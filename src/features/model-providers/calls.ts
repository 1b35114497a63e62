/**
 * The calls of sandboxes to their account's providers of models, and to the managed gateway (sandbox/model-door.ts).
 *
 *  L1 The sandbox's own way out tells which session calls, and the tables which provider it may use. Both are looked at for each call, so
 *     a provider that was deleted, or a session that has ended, is shut with the next one.
 *  L2 A key is opened for one call, and is in no answer, log or sandbox. What the sandbox sends as its key goes nowhere.
 *  L3 Both ways are streamed unchanged. A caller that leaves ends the provider's work.
 *  L4 A call is counted before its answer ends: who has seen the end of its body knows that it is counted, whatever happens then. A call
 *     that broke off has the tokens that were named before, and an estimate of the others, which is marked.
 *  L5 An estimate is reserved before a call passes, and the reservation ends when the call is counted. If a limit of spend is reached, the
 *     call does not pass, and the answer is an error as its API has them, which no client repeats.
 */
import { PassThrough, type Readable } from "node:stream";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import type { CountedTokens, ProviderKind } from "../../domain/sandbox/account-provider.ts";
import { GATEWAY_PROVIDER } from "../../domain/sandbox/model.ts";
import { isNothing, TokensReader, usageIn } from "../../domain/sandbox/model-tokens.ts";
import type { ModelAnswer, ModelDoor, ModelRefusal, ModelRequest } from "../../sandbox/model-door.ts";
import { newUuid } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { AccountSpend } from "../../services/projects/account-spend.ts";
import { openKey } from "./keys.ts";
import { ModelProviders, type ProviderOfSandbox } from "./ports/model-providers.ts";
import { GatewayServer, ModelServers, type ModelServersPort, type Unreached } from "./ports/model-servers.ts";
import { ModelUsage } from "./ports/model-usage.ts";
import { answeredModel, NAMED_WITHIN, requestedModel } from "./rules/call-model.ts";
import { callEstimate, promptEstimate, WrittenText } from "./rules/estimate.ts";
import {
  errorBody,
  isCounted,
  keyHeaders,
  modelInPath,
  passes,
  withoutCredentials,
  withoutKey,
} from "./rules/kinds.ts";
import { callPrice, costOf, type Prices } from "./rules/prices.ts";
import { nameFault } from "./rules/provider.ts";

/** Splits `/name/rest`. Null: there is no name of a provider. */
const split = (path: string): { readonly name: string; readonly below: string } | null => {
  const [, name = "", below = ""] = /^\/([^/?]+)(.*)$/s.exec(path) ?? [];
  return nameFault(name) === null ? { name, below: withoutKey(below) } : null;
};

/** The beginning of an answer that passes, and the tokens that it names. */
class Reader {
  readonly #decoder = new TextDecoder();
  readonly #tokens = new TokensReader();
  readonly #written = new WrittenText();
  start = "";
  /** Whether the answer came to its end. */
  isWhole = false;

  take(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    if (this.start.length < NAMED_WITHIN) this.start += text.slice(0, NAMED_WITHIN - this.start.length);
    this.#tokens.take(text);
    this.#written.take(text);
  }

  /** About how many tokens the model wrote. */
  get written(): number {
    return this.#written.tokens;
  }

  get counted(): CountedTokens | null {
    const { tokens } = this.#tokens;
    if (tokens === null || isNothing(tokens)) return null;
    const { input_tokens: input, cached_tokens: cached, output_tokens: output } = usageIn(tokens);
    return { input, cached, output };
  }
}

/** A request's body, whose beginning is kept as it passes. */
interface Remembered {
  readonly body: Readable | null;
  readonly start: () => string;
  /** How many bytes have come. */
  readonly size: () => number;
  /** Completes when the beginning has come. */
  readonly begun: Promise<void>;
}

const remembered = (incoming: Readable | null): Remembered => {
  if (incoming === null) return { body: null, start: () => "", size: () => 0, begun: Promise.resolve() };
  const chunks: Buffer[] = [];
  let size = 0;
  const begun = Promise.withResolvers<void>();
  // The beginning is awaited before anything is read of it.
  const body = new PassThrough({ highWaterMark: 2 * NAMED_WITHIN });
  incoming.on("data", (chunk: Buffer) => {
    if (size < NAMED_WITHIN) chunks.push(chunk.subarray(0, NAMED_WITHIN - size));
    size += chunk.byteLength;
    if (size >= NAMED_WITHIN) begun.resolve();
  });
  incoming.on("end", () => begun.resolve());
  incoming.on("error", (error) => body.destroy(error));
  incoming.on("close", () => {
    begun.resolve();
    // A caller that left in the middle of its request.
    if (!incoming.readableEnded) body.destroy();
  });
  incoming.pipe(body);
  return {
    body,
    start: () => Buffer.concat(chunks).toString("utf8"),
    size: () => size,
    begun: begun.promise,
  };
};

const requestHeaders = (headers: ModelRequest["headers"]): Record<string, string | string[]> => {
  const { host: _host, expect: _expect, ...others } = headers;
  const given = Object.entries(others).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [[name, Array.isArray(value) && value.length === 1 ? (value[0] ?? "") : value]];
  });
  // The tokens of a compressed answer could not be read.
  return {
    ...(Object.fromEntries(given) as Record<string, string | string[]>),
    "accept-encoding": "identity",
  };
};

/** Where a call goes. */
interface Way {
  readonly sessionId: string;
  readonly projectId: string;
  /** The first part of `provider/model`. */
  readonly name: string;
  /** Null: the managed gateway, which may have several APIs. */
  readonly kind: ProviderKind | null;
  readonly prices: Prices;
  readonly base: URL;
  /** With the base's path. */
  readonly path: string;
  readonly headers: Record<string, string | string[]>;
  readonly servers: ModelServersPort;
}

/** What names the model of a call, the most reliable first. @param answer its start */
const namesIn = ({ path }: Pick<Way, "path">, start: string, answer: string): readonly (string | null)[] => [
  modelInPath(path),
  requestedModel(start),
  answeredModel(answer),
];

const modelOf = ({ name }: Pick<Way, "name">, names: readonly (string | null)[]): string =>
  `${name}/${names.find((one) => one !== null) ?? "unknown"}`;

const NOTHING: CountedTokens = { input: 0, cached: 0, output: 0 };

/** The tokens that the provider did not name (L4). */
const untold = (reader: Reader, requestBytes: number): CountedTokens => {
  const { counted, written, isWhole } = reader;
  if (counted === null) return { input: promptEstimate(requestBytes), cached: 0, output: written };
  return isWhole ? NOTHING : { input: 0, cached: 0, output: Math.max(0, written - counted.output) };
};

interface Ended {
  readonly id: string;
  readonly way: Way;
  readonly request: Remembered;
  readonly reader: Reader;
}

/** Each of these never fails. */
interface Counting {
  /** Why the call may not pass. Null: it passes, and has a reservation. */
  readonly reserve: (id: string, way: Way, request: Remembered) => Promise<string | ModelRefusal | null>;
  /** Counts a call. */
  readonly settle: (ended: Ended) => Promise<void>;
  /** Ends the reservation of a call that cost nothing. */
  readonly release: (ended: Pick<Ended, "id" | "way">) => Promise<void>;
}

/** A sandbox does not learn the addresses of the operator's own hosts. */
const notReached = (name: string, { isLate }: Unreached): ModelRefusal =>
  isLate
    ? { refused: 504, reason: `the model provider ${name} did not answer in time` }
    : {
        refused: 502,
        reason: `the model provider ${name} could not be reached: an owner of the account can try it`,
      };

/** The body as it passes. @param settled is called when it ends, breaks off or is left (L4) */
async function* read(
  body: AsyncIterable<Uint8Array>,
  reader: Reader,
  settled: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) {
      reader.take(chunk);
      yield chunk;
    }
    reader.isWhole = true;
  } finally {
    await settled();
  }
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/** An error of the provider's API (L5). No client repeats a call that was answered with 402. */
const refusedByLimit = ({ kind }: Pick<Way, "kind">, reason: string): ModelAnswer => ({
  status: 402,
  headers: { "content-type": "application/json", "x-should-retry": "false" },
  body: once(errorBody(kind, reason)),
});

const serveCall = async (
  { reserve, settle, release, newId }: Counting & { readonly newId: () => Promise<string> },
  way: Way,
  { method, body: incoming, left }: Pick<ModelRequest, "method" | "body" | "left">,
): Promise<ModelAnswer | ModelRefusal> => {
  const request = remembered(incoming);
  const reader = new Reader();
  const { name, base, path, headers, servers } = way;
  const counts = isCounted(method, path);
  const id = await newId();
  if (counts) {
    await request.begun;
    const refusal = await reserve(id, way, request);
    if (refusal !== null) {
      request.body?.destroy();
      return typeof refusal === "string" ? refusedByLimit(way, refusal) : refusal;
    }
  }
  const count = () => (counts ? settle({ id, way, request, reader }) : Promise.resolve());
  const forget = () => (counts ? release({ id, way }) : Promise.resolve());
  const asked = servers.call({ base, path, method, headers, body: request.body, left });
  const answer = await Effect.runPromise(Effect.result(asked));
  if (Result.isFailure(answer)) {
    // The provider may have begun.
    await (left.aborted ? count() : forget());
    return notReached(name, answer.failure);
  }
  // A refused call costs nothing.
  const settled = answer.success.status < 300 ? count : forget;
  return { ...answer.success, body: read(answer.success.body, reader, settled) };
};

/** The way to a provider of the account, or why it has no way now. */
const providerWay = (
  { keyring, servers }: { readonly keyring: Keyring["Service"]; readonly servers: ModelServersPort },
  { provider, sessionId, projectId }: ProviderOfSandbox,
  { path: below, method, headers }: ModelRequest,
): Way | ModelRefusal => {
  const { name, kind, baseUrl, prices } = provider;
  if (!passes(kind, method, below))
    return {
      refused: 403,
      reason: `the model provider ${name} is open to sandboxes for calls of models only`,
    };
  const key = openKey(keyring, provider);
  if (Result.isFailure(key))
    return {
      refused: 502,
      reason: `the key of the model provider ${name} cannot be opened: an owner can set it again`,
    };
  const base = new URL(baseUrl);
  return {
    sessionId,
    projectId,
    name,
    kind,
    prices,
    base,
    path: `${base.pathname.replace(/\/$/, "")}${below}`,
    headers: { ...requestHeaders(withoutCredentials(headers)), ...keyHeaders(kind, key.success) },
    servers,
  };
};

const UNREADABLE = {
  refused: 502,
  reason: "the service cannot read its model providers now: try again",
} as const satisfies ModelRefusal;

const RETRIED = { times: 5, schedule: Schedule.spaced("1 second") };

const kept = <E>(done: Effect.Effect<void, E>) =>
  done.pipe(
    Effect.retry(RETRIED),
    Effect.catch((error) => Effect.logError("a call of a model is not counted", { error })),
  );

const makeCounting = Effect.gen(function* () {
  const usage = yield* ModelUsage;
  const spend = yield* AccountSpend;
  const run = Effect.runPromiseWith(yield* Effect.context());
  const counting: Counting = {
    reserve: (id, way, request) => {
      const names = namesIn(way, request.start(), "");
      const estimate = callEstimate(request.start(), request.size());
      const price = callPrice(names, way.prices);
      const cost = price === null ? null : costOf(estimate, price);
      const tokens = estimate.input + estimate.output;
      return run(
        spend
          .reserve({ id, sessionId: way.sessionId, model: modelOf(way, names), tokens, cost })
          .pipe(Effect.orElseSucceed(() => UNREADABLE)),
      );
    },
    settle: ({ id, way, request, reader }) => {
      const names = namesIn(way, request.start(), reader.start);
      const estimate = untold(reader, request.size());
      const told = reader.counted ?? NOTHING;
      const price = callPrice(names, way.prices);
      const cost = price === null ? 0 : costOf(told, price) + costOf(estimate, price);
      const estimated = estimate.input + estimate.output;
      const { sessionId, projectId } = way;
      const call = { sessionId, projectId, model: modelOf(way, names), tokens: reader.counted };
      const spent = { tokens: told.input + told.output + estimated, cost };
      return run(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis;
          const counts = [
            kept(usage.add({ ...call, estimated, cost, now })),
            kept(spend.settle({ id, sessionId, spent })),
          ];
          yield* Effect.all(counts, { concurrency: 2, discard: true });
        }),
      );
    },
    release: ({ id, way }) => run(kept(spend.settle({ id, sessionId: way.sessionId, spent: null }))),
  };
  return counting;
});

/** Answers at the door as long as the layer lives. */
export const modelCalls = (door: ModelDoor) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { ofSandbox, sessionOf } = yield* ModelProviders;
      const keyring = yield* Keyring;
      const [servers, gateway] = [yield* ModelServers, yield* GatewayServer];
      const run = Effect.runPromiseWith(yield* Effect.context());
      const counting = { ...(yield* makeCounting), newId: () => run(newUuid) };
      const toProvider = async (sandboxId: string, request: ModelRequest) => {
        const wanted = split(request.path);
        if (wanted === null) return null;
        const call = await run(Effect.result(ofSandbox(sandboxId, wanted.name)));
        if (Result.isFailure(call)) return UNREADABLE;
        if (call.success === null) return null;
        const way = providerWay({ keyring, servers }, call.success, { ...request, path: wanted.below });
        return "refused" in way ? way : serveCall(counting, way, request);
      };
      /** The sandbox has the gateway's key, and the egress policy has checked the path. */
      const toGateway = async (sandboxId: string, request: ModelRequest, base: URL) => {
        const found = await run(Effect.result(sessionOf(sandboxId)));
        if (Result.isFailure(found)) return UNREADABLE;
        if (found.success === null) return null;
        const { path, headers } = request;
        const way = { ...found.success, name: GATEWAY_PROVIDER, kind: null, prices: {}, base, path };
        return serveCall(counting, { ...way, headers: requestHeaders(headers), servers: gateway }, request);
      };
      const serve = (sandboxId: string, request: ModelRequest) =>
        request.gateway === null
          ? toProvider(sandboxId, request)
          : toGateway(sandboxId, request, request.gateway);
      yield* Effect.acquireRelease(
        Effect.sync(() => door.answerWith(serve)),
        () => Effect.sync(() => door.answerWith(null)),
      );
    }),
  );

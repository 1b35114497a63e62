/**
 * The calls of sandboxes to the providers of models of their account, project and person, and to the managed gateway
 * (sandbox/model-door.ts).
 *
 *  L1 The sandbox's own way out tells which session calls, and the tables which provider it may use. Both are looked at for each call, so
 *     a provider that was deleted, a session that has ended, or a person's own provider while another one steers, is shut with the next one.
 *  L2 A key is opened for one call, and is in no answer, log or sandbox. The key that a sandbox sends is dropped.
 *  L3 Both ways are streamed unchanged. A caller that leaves ends the provider's work.
 *  L4 A call is counted after its answer, which does not wait for it. Counting begins before the caller sees the answer's end, and a
 *     stopping service waits for it. A call that broke off has the tokens that were named before, and an estimate of the others, which is
 *     marked.
 *  L5 An estimate is reserved for each call, and the reservation ends when the call is counted, which is once. It is renewed while
 *     the call is under way. Where the account has limits of spend, the call is sent after that. If a limit is reached, the call does not
 *     pass, and the answer is an error as its API has them, which no client repeats. A call is never refused for one that has ended here.
 *     Where the account has no limits, the call is sent meanwhile, and its answer passes only after the reservation is durable.
 *  L6 What a provider last refused stands beside it until a call succeeds.
 *  L7 While the database is away, a call waits for it before it is sent, for `OUTAGE_MS` at most: a turn goes on after a short outage.
 */
import { PassThrough, type Readable } from "node:stream";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import { suspendedMessage } from "../../domain/connector/own-credential.ts";
import type { CountedTokens } from "../../domain/model/prices.ts";
import type { ProviderKind } from "../../domain/sandbox/account-provider.ts";
import type { CallEstimate, CountedCall, SpendingCaller } from "../../domain/sandbox/spend.ts";
import { GATEWAY_PROVIDER } from "../../domain/sandbox/model.ts";
import { isRedirect } from "../../domain/sandbox/model-key.ts";
import { isNothing, TokensReader, usageIn } from "../../domain/sandbox/model-tokens.ts";
import type { ModelAnswer, ModelDoor, ModelRefusal, ModelRequest } from "../../sandbox/model-door.ts";
import { newUuid } from "../../services/entropy.ts";
import { ownCredentials } from "../../services/connectors/own-credentials.ts";
import { Keyring } from "../../services/keyring.ts";
import { AccountSpend } from "../../services/projects/account-spend.ts";
import type { Suspensions } from "../../store/ports/connectors/suspensions.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { openKey } from "./keys.ts";
import { type CallEnd, makeNoting } from "./refusals.ts";
import { type ModelProvider, ModelProviders, type ProvidersOfSandbox } from "./ports/model-providers.ts";
import {
  GatewayServer,
  ModelServers,
  type ModelServersPort,
  REDIRECTED,
  type Unreached,
} from "./ports/model-servers.ts";
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
import { callPrice, tokenCost, type Prices } from "../../domain/model/prices.ts";
import { nameFault } from "./rules/provider.ts";

/** Splits `/name/rest`. Null if it names no provider. */
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

const rememberStart = (incoming: Readable | null): Remembered => {
  if (incoming === null) return { body: null, start: () => "", size: () => 0, begun: Promise.resolve() };
  const chunks: Buffer[] = [];
  let size = 0;
  const beginning = Promise.withResolvers<void>();
  // The beginning is awaited before anything is read of it.
  const body = new PassThrough({ highWaterMark: 2 * NAMED_WITHIN });
  incoming.on("data", (chunk: Buffer) => {
    if (size < NAMED_WITHIN) chunks.push(chunk.subarray(0, NAMED_WITHIN - size));
    size += chunk.byteLength;
    if (size >= NAMED_WITHIN) beginning.resolve();
  });
  incoming.on("end", () => beginning.resolve());
  incoming.on("error", (error) => body.destroy(error));
  incoming.on("close", () => {
    beginning.resolve();
    // A caller that left in the middle of its request.
    if (!incoming.readableEnded) body.destroy();
  });
  incoming.pipe(body);
  return {
    body,
    start: () => Buffer.concat(chunks).toString("utf8"),
    size: () => size,
    begun: beginning.promise,
  };
};

const requestHeaders = (headers: ModelRequest["headers"]): Record<string, string | string[]> => {
  const { host: _host, expect: _expect, ...others } = headers;
  const entries = Object.entries(others).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [[name, Array.isArray(value) && value.length === 1 ? (value[0] ?? "") : value]];
  });
  // The tokens of a compressed answer could not be read.
  return {
    ...(Object.fromEntries(entries) as Record<string, string | string[]>),
    "accept-encoding": "identity",
  };
};

/** Where a call goes. */
interface Way {
  readonly caller: SpendingCaller;
  /** Null for the managed gateway. */
  readonly provider: ModelProvider | null;
  /** The first part of `provider/model`. */
  readonly name: string;
  /** Null for the managed gateway, which may have several APIs. */
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

const modelName = ({ name }: Pick<Way, "name">, names: readonly (string | null)[]): string =>
  `${name}/${names.find((one) => one !== null) ?? "unknown"}`;

const NOTHING: CountedTokens = { input: 0, cached: 0, output: 0 };

/** The tokens that the provider did not name (L4). */
const untold = (reader: Reader, requestBytes: number): CountedTokens => {
  const { counted, written, isWhole } = reader;
  if (counted === null) return { input: promptEstimate(requestBytes), cached: 0, output: written };
  return isWhole ? NOTHING : { input: 0, cached: 0, output: Math.max(0, written - counted.output) };
};

/** A call, whose reader has what came of its answer. */
interface Call {
  readonly id: string;
  readonly way: Way;
  readonly request: Remembered;
  readonly reader: Reader;
}

/** Each of these never fails. */
interface Counting {
  /** Why the call may not pass, or null if it passes and has a reservation. With a `ModelRefusal` it may still have one. */
  readonly reserve: (call: Call) => Promise<string | ModelRefusal | null>;
  /** Begins to count a call. */
  readonly settle: (call: Call) => void;
  /** Begins to end the reservation of a call that cost nothing. */
  readonly release: (id: string) => void;
}

/** A sandbox does not learn the addresses of the operator's own hosts. */
const notReached = (
  { name, provider }: Pick<Way, "name" | "provider">,
  { discreetWhy, isLate }: Unreached,
): ModelRefusal => ({
  refused: isLate ? 504 : 502,
  reason:
    provider === null
      ? `the managed gateway to models ${discreetWhy}: ask the operator of this service`
      : `the model provider ${name} ${discreetWhy}: an owner of the account can try it`,
});

/** The body as it passes. @param onEnd is called when it ends, breaks off or is left (L4) */
async function* read(
  body: AsyncIterable<Uint8Array>,
  reader: Reader,
  onEnd: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) {
      reader.take(chunk);
      yield chunk;
    }
    reader.isWhole = true;
  } finally {
    await onEnd();
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

const UNREADABLE = {
  refused: 502,
  reason: "the service cannot read its model providers now: try again",
} as const satisfies ModelRefusal;

interface Serving extends Counting {
  readonly newId: () => Promise<string>;
  readonly note: (provider: ModelProvider | null, end: CallEnd) => Promise<void>;
}

const refusing = ({ way, request }: Call, refusal: string | ModelRefusal): ModelAnswer | ModelRefusal => {
  request.body?.destroy();
  return typeof refusal === "string" ? refusedByLimit(way, refusal) : refusal;
};

/** Sends a call that passes, or whose reservation is under way. @param reserved null: it has one, or needs none */
const sendCall = async (
  { settle, release, note, counts }: Serving & { readonly counts: boolean },
  call: Call,
  {
    method,
    left,
    reserved,
  }: Pick<ModelRequest, "method" | "left"> & { readonly reserved: ReturnType<Counting["reserve"]> },
): Promise<ModelAnswer | ModelRefusal> => {
  const { way, request, reader } = call;
  const { provider, base, path, headers, servers } = way;
  const count = () => counts && settle(call);
  const forget = () => counts && release(call.id);
  const unreserved = new AbortController();
  const signal = counts ? AbortSignal.any([left, unreserved.signal]) : left;
  const exchange = servers.call({ base, path, method, headers, body: request.body, left: signal });
  const [answer, refusal] = await Promise.all([
    Effect.runPromise(Effect.result(exchange)),
    reserved.then((why) => {
      if (why !== null) unreserved.abort();
      return why;
    }),
  ]);
  if (refusal !== null) {
    // The provider may have begun, and the reservation may have been written.
    count();
    return refusing(call, refusal);
  }
  if (Result.isFailure(answer)) {
    if (left.aborted) count();
    else {
      forget();
      await note(provider, answer.failure);
    }
    return notReached(way, answer.failure);
  }
  const { status } = answer.success;
  if (isRedirect(status)) {
    // Clients would take it for a refusal of the key, or follow it with the key of the sandbox.
    forget();
    void answer.success.body[Symbol.asyncIterator]().return?.();
    await note(provider, REDIRECTED);
    return notReached(way, REDIRECTED);
  }
  if (status < 300) await note(provider, { status, text: "" });
  const finish = async () => {
    if (status < 300) return void count();
    // A refused call costs nothing.
    forget();
    return note(provider, { status, text: reader.start });
  };
  return { ...answer.success, body: read(answer.success.body, reader, finish) };
};

const serveCall = async (
  serving: Serving,
  way: Way,
  { method, body, left }: Pick<ModelRequest, "method" | "body" | "left">,
): Promise<ModelAnswer | ModelRefusal> => {
  const { reserve, release, newId } = serving;
  const call = { id: await newId(), way, request: rememberStart(body), reader: new Reader() };
  if (!isCounted(method, way.path))
    return sendCall({ ...serving, counts: false }, call, { method, left, reserved: Promise.resolve(null) });
  await call.request.begun;
  const reservation = reserve(call);
  const refusal = way.caller.isLimited ? await reservation : null;
  if (refusal === null)
    return sendCall({ ...serving, counts: true }, call, { method, left, reserved: reservation });
  // It may have been reserved.
  if (typeof refusal !== "string") release(call.id);
  return refusing(call, refusal);
};

/** The way to a provider of the account, or why it has no way now. */
const providerWay = (
  { keyring, servers }: { readonly keyring: Keyring["Service"]; readonly servers: ModelServersPort },
  { provider, caller }: Pick<Way, "caller"> & { readonly provider: ModelProvider },
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
    caller,
    provider,
    name,
    kind,
    prices,
    base,
    path: `${base.pathname.replace(/\/$/, "")}${below}`,
    headers: { ...requestHeaders(withoutCredentials(headers)), ...keyHeaders(kind, key.success) },
    servers,
  };
};

const RETRIED = { times: 5, schedule: Schedule.spaced("1 second") };

const retrySettling = <E>(settling: Effect.Effect<void, E>) =>
  settling.pipe(
    Effect.retry(RETRIED),
    Effect.catchCause((cause) =>
      Effect.logError("a call of a model is not counted now, and as its estimate later", cause),
    ),
  );

/** How often the reservations of calls under way are renewed. A third of their time. */
const RENEW = "200 seconds";

const makeCounting = Effect.gen(function* () {
  const underWay = new Set<string>();
  const spend = yield* AccountSpend;
  const run = Effect.runPromiseWith(yield* Effect.context());
  const renew = Effect.suspend(() => (underWay.size === 0 ? Effect.void : spend.renew([...underWay])));
  yield* Effect.forkScoped(Effect.ignore(renew).pipe(Effect.delay(RENEW), Effect.forever));
  const settling = new Set<Promise<void>>();
  /** A call that is not counted now is counted as its estimate, when its reservation lapses. */
  const endCall = (id: string, count: CountedCall | null): void => {
    underWay.delete(id);
    const settlement = run(retrySettling(spend.settle({ id, counted: count }))).finally(() =>
      settling.delete(settlement),
    );
    settling.add(settlement);
  };
  const reserve = (call: CallEstimate) =>
    run(
      spend.reserve(call).pipe(
        Effect.tap((refusal) => Effect.sync(() => refusal === null && underWay.add(call.id))),
        Effect.catchCause(() => Effect.succeed(UNREADABLE)),
      ),
    );
  const counting: Counting = {
    reserve: async ({ id, way, request }) => {
      const names = namesIn(way, request.start(), "");
      const estimate = callEstimate(request.start(), request.size());
      const price = callPrice(names, way.prices);
      const cost = price === null ? null : tokenCost(estimate, price);
      const tokens = estimate.input + estimate.output;
      const isOwn = way.provider?.owner === "person";
      const { caller } = way;
      const call = { id, caller, model: modelName(way, names), tokens, cost, isOwn };
      const refusal = await reserve(call);
      if (typeof refusal !== "string" || settling.size === 0) return refusal;
      // A caller may have seen the ends of calls that are still reserved with their estimates.
      await Promise.all(settling);
      return reserve(call);
    },
    settle: ({ id, way, request, reader }) => {
      const names = namesIn(way, request.start(), reader.start);
      const estimate = untold(reader, request.size());
      const tokens = reader.counted ?? NOTHING;
      const price = callPrice(names, way.prices);
      const cost = price === null ? 0 : tokenCost(tokens, price) + tokenCost(estimate, price);
      const estimated = estimate.input + estimate.output;
      endCall(id, { model: modelName(way, names), tokens: reader.counted, estimated, cost });
    },
    release: (id) => endCall(id, null),
  };
  /** Completes when the calls are counted that have ended. */
  const drain = Effect.promise(() => Promise.all(settling));
  return { counting, drained: drain };
});

/** The provider that a call goes to: a person's own while she alone steers, or else the next one of the name (L1). */
const providerFor = Effect.fnUntraced(function* ({
  sessionId: id,
  origin,
  createdBy,
  providers,
}: ProvidersOfSandbox) {
  const sharedProvider = providers.find(({ owner }) => owner !== "person") ?? null;
  const mine = providers.find(({ owner }) => owner === "person");
  if (mine === undefined) return sharedProvider;
  const own = yield* ownCredentials({ id, origin, createdBy });
  if (own !== "no_person" && "personId" in own) return mine;
  if (sharedProvider !== null || own === "no_person") return sharedProvider;
  const reason = suspendedMessage(`The model provider ${mine.name}`, own.suspension);
  return { refused: 403, reason } satisfies ModelRefusal;
});

/** L7. Runtimes wait longer for an answer. */
const OUTAGE_MS = 60_000;

/** Answers at the door as long as the layer lives. */
export const modelCalls = (door: ModelDoor, outageMs = OUTAGE_MS) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { ofSandbox } = yield* ModelProviders;
      const { callerIn } = yield* AccountSpend;
      const keyring = yield* Keyring;
      const [servers, gateway] = [yield* ModelServers, yield* GatewayServer];
      const run = Effect.runPromiseWith(yield* Effect.context<Suspensions>());
      const { counting, drained } = yield* makeCounting;
      const serving = { ...counting, newId: () => run(newUuid), note: yield* makeNoting };
      const lookUp = <A>(look: Effect.Effect<A, StoreError, Suspensions>) =>
        run(Effect.option(Effect.timeout(waitOutOutage("a call of a model", look), outageMs)));
      const toProvider = async (sandboxId: string, request: ModelRequest) => {
        const target = split(request.path);
        if (target === null) return null;
        const asks = [
          Effect.flatMap(ofSandbox(sandboxId, target.name), (call) =>
            call === null ? Effect.succeed(null) : providerFor(call),
          ),
          callerIn(sandboxId),
        ] as const;
        const standing = await lookUp(Effect.all(asks, { concurrency: 2 }));
        if (Option.isNone(standing)) return UNREADABLE;
        const [provider, caller] = standing.value;
        if (provider === null || "refused" in provider) return provider;
        if (caller === null) return null;
        const call = { ...request, path: target.below };
        const way = providerWay({ keyring, servers }, { provider, caller }, call);
        return "refused" in way ? way : serveCall(serving, way, request);
      };
      /** The sandbox has the gateway's key, and the egress policy has checked the path. */
      const toGateway = async (sandboxId: string, request: ModelRequest, base: URL) => {
        const sandboxCaller = await lookUp(callerIn(sandboxId));
        if (Option.isNone(sandboxCaller)) return UNREADABLE;
        const { value: caller } = sandboxCaller;
        if (caller === null) return null;
        const { path, headers } = request;
        const way = { caller, provider: null, name: GATEWAY_PROVIDER, kind: null, prices: {}, base, path };
        return serveCall(serving, { ...way, headers: requestHeaders(headers), servers: gateway }, request);
      };
      const serve = (sandboxId: string, request: ModelRequest) =>
        request.gateway === null
          ? toProvider(sandboxId, request)
          : toGateway(sandboxId, request, request.gateway);
      yield* Effect.acquireRelease(
        Effect.sync(() => door.answerWith(serve)),
        () =>
          Effect.andThen(
            Effect.sync(() => door.answerWith(null)),
            drained,
          ),
      );
    }),
  );

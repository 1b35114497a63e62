/**
 * The calls of sandboxes to their account's providers of models (sandbox/model-door.ts).
 *
 *  L1 The sandbox's own way out tells which session calls, and the tables which provider it may use. Both are looked at for each call, so
 *     a provider that was deleted, or a session that has ended, is shut with the next one.
 *  L2 A key is opened for one call, and is in no answer, log or sandbox. What the sandbox sends as its key goes nowhere.
 *  L3 Both ways are streamed unchanged. A caller that leaves ends the provider's work.
 *  L4 A call is counted before its answer ends: who has seen the end of its body knows that it is counted, whatever happens then. A call
 *     that broke off has the tokens that were named before.
 */
import { PassThrough, type Readable } from "node:stream";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import { isNothing, TokensReader, usageIn } from "../../domain/sandbox/model-tokens.ts";
import type { ModelAnswer, ModelDoor, ModelRefusal, ModelRequest } from "../../sandbox/model-door.ts";
import { Keyring } from "../../services/keyring.ts";
import { openKey } from "./keys.ts";
import { ModelProviders, type ProviderOfSandbox } from "./ports/model-providers.ts";
import { ModelServers, type ModelServersPort, type Unreached } from "./ports/model-servers.ts";
import { type CountedTokens, ModelUsage } from "./ports/model-usage.ts";
import { answeredModel, NAMED_WITHIN, requestedModel } from "./rules/call-model.ts";
import { isCounted, keyHeaders, modelInPath, passes, withoutCredentials, withoutKey } from "./rules/kinds.ts";
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
  start = "";

  take(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    if (this.start.length < NAMED_WITHIN) this.start += text.slice(0, NAMED_WITHIN - this.start.length);
    this.#tokens.take(text);
  }

  get counted(): CountedTokens | null {
    const { tokens } = this.#tokens;
    if (tokens === null || isNothing(tokens)) return null;
    const { input_tokens: input, cached_tokens: cached, output_tokens: output } = usageIn(tokens);
    return { input, cached, output };
  }
}

/** A body whose beginning is kept as it passes. */
const remembered = (
  incoming: Readable | null,
): { readonly body: Readable | null; readonly start: () => string } => {
  if (incoming === null) return { body: null, start: () => "" };
  const chunks: Buffer[] = [];
  let size = 0;
  const body = new PassThrough();
  incoming.on("data", (chunk: Buffer) => {
    if (size < NAMED_WITHIN) chunks.push(chunk.subarray(0, NAMED_WITHIN - size));
    size += chunk.byteLength;
  });
  incoming.on("error", (error) => body.destroy(error));
  incoming.on("close", () => {
    // A caller that left in the middle of its request.
    if (!incoming.readableEnded) body.destroy();
  });
  incoming.pipe(body);
  return { body, start: () => Buffer.concat(chunks).toString("utf8") };
};

const requestHeaders = (headers: ModelRequest["headers"]): Record<string, string | string[]> => {
  const { host: _host, expect: _expect, ...others } = withoutCredentials(headers);
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

interface Settling {
  readonly call: ProviderOfSandbox;
  readonly path: string;
  readonly requested: string;
  readonly reader: Reader;
}

interface Passing {
  readonly servers: ModelServersPort;
  readonly keyring: Keyring["Service"];
  /** Counts a call. It never fails. */
  readonly settle: (settling: Settling) => Promise<void>;
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
  } finally {
    await settled();
  }
}

const serveCall = async (
  { servers, keyring, settle }: Passing,
  call: ProviderOfSandbox,
  { path: below, method, headers, body: incoming, left }: ModelRequest,
): Promise<ModelAnswer | ModelRefusal> => {
  const { name, kind, baseUrl } = call.provider;
  if (!passes(kind, method, below))
    return {
      refused: 403,
      reason: `the model provider ${name} is open to sandboxes for calls of models only`,
    };
  const key = openKey(keyring, call.provider);
  if (Result.isFailure(key))
    return {
      refused: 502,
      reason: `the key of the model provider ${name} cannot be opened: an owner can set it again`,
    };
  const { body, start } = remembered(incoming);
  const base = new URL(baseUrl);
  const reader = new Reader();
  const count = () =>
    isCounted(method, below) ? settle({ call, path: below, requested: start(), reader }) : Promise.resolve();
  const asked = servers.call({
    base,
    path: `${base.pathname.replace(/\/$/, "")}${below}`,
    method,
    headers: { ...requestHeaders(headers), ...keyHeaders(kind, key.success) },
    body,
    left,
  });
  const answer = await Effect.runPromise(Effect.result(asked));
  if (Result.isFailure(answer)) {
    // The provider may have begun.
    if (left.aborted) await count();
    return notReached(name, answer.failure);
  }
  const { status } = answer.success;
  // A refused call costs nothing.
  const settled = status < 300 ? count : () => Promise.resolve();
  return { ...answer.success, body: read(answer.success.body, reader, settled) };
};

/** Answers at the door as long as the layer lives. */
export const modelCalls = (door: ModelDoor) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { ofSandbox } = yield* ModelProviders;
      const usage = yield* ModelUsage;
      const keyring = yield* Keyring;
      const servers = yield* ModelServers;
      const run = Effect.runPromiseWith(yield* Effect.context());
      const settle: Passing["settle"] = ({ call, path, requested, reader }) =>
        run(
          Effect.gen(function* () {
            const model =
              modelInPath(path) ?? requestedModel(requested) ?? answeredModel(reader.start) ?? "unknown";
            yield* usage.add({
              sessionId: call.sessionId,
              projectId: call.projectId,
              model: `${call.provider.name}/${model}`,
              tokens: reader.counted,
              now: yield* Clock.currentTimeMillis,
            });
          }).pipe(
            Effect.retry({ times: 5, schedule: Schedule.spaced("1 second") }),
            Effect.catch((error) => Effect.logError("a call of a model is not counted", { error })),
          ),
        );
      const serve = async (sandboxId: string, request: ModelRequest) => {
        const wanted = split(request.path);
        if (wanted === null) return null;
        const call = await run(Effect.result(ofSandbox(sandboxId, wanted.name)));
        if (Result.isFailure(call))
          return {
            refused: 502,
            reason: "the service cannot read its model providers now: try again",
          } as const;
        if (call.success === null) return null;
        return serveCall({ servers, keyring, settle }, call.success, { ...request, path: wanted.below });
      };
      yield* Effect.acquireRelease(
        Effect.sync(() => door.answerWith(serve)),
        () => Effect.sync(() => door.answerWith(null)),
      );
    }),
  );

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
import { once } from "node:events";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import { isNothing, TokensReader, usageIn } from "../../domain/sandbox/model-tokens.ts";
import type { NetAnswer, NetClient } from "../../ground/net/client.ts";
import { NetFault } from "../../ground/net/fault.ts";
import { endToEndHeaders, HOP_BY_HOP, Refusal } from "../../sandbox/egress-messages.ts";
import type { ModelDoor, ModelRequest } from "../../sandbox/model-door.ts";
import { Keyring } from "../../services/keyring.ts";
import { openKey } from "./keys.ts";
import { ModelProviders, type ProviderOfSandbox } from "./ports/model-providers.ts";
import { type CountedTokens, ModelUsage } from "./ports/model-usage.ts";
import { answeredModel, NAMED_WITHIN, requestedModel } from "./rules/call-model.ts";
import { isCounted, keyHeaders, modelInPath, passes, withoutCredentials, withoutKey } from "./rules/kinds.ts";
import { nameFault } from "./rules/provider.ts";
import { ModelServers } from "./servers.ts";

/** Splits `/name/rest`. Null: there is no name of a provider. */
const split = (path: string): { readonly name: string; readonly below: string } | null => {
  const match = /^\/([^/?]+)(.*)$/s.exec(path);
  const [, name = "", below = ""] = match ?? [];
  return nameFault(name) === null ? { name, below: withoutKey(below) } : null;
};

/** The beginning of a text that passes, and the tokens that an answer names. */
class Reader {
  readonly #decoder = new TextDecoder();
  readonly tokens = new TokensReader();
  start = "";

  take(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    if (this.start.length < NAMED_WITHIN) this.start += text.slice(0, NAMED_WITHIN - this.start.length);
    this.tokens.take(text);
  }

  get counted(): CountedTokens | null {
    const { tokens } = this.tokens;
    if (tokens === null || isNothing(tokens)) return null;
    const { input_tokens: input, cached_tokens: cached, output_tokens: output } = usageIn(tokens);
    return { input, cached, output };
  }
}

/** A request's body, whose beginning is kept as it passes. Null: it has none. */
const bodyOf = (
  incoming: IncomingMessage,
): { readonly body: Readable | null; readonly start: () => string } => {
  if (incoming.method === "GET") return { body: null, start: () => "" };
  const chunks: Buffer[] = [];
  let size = 0;
  const body = new PassThrough();
  incoming.on("data", (chunk: Buffer) => {
    if (size < NAMED_WITHIN) chunks.push(chunk.subarray(0, NAMED_WITHIN - size));
    size += chunk.byteLength;
  });
  incoming.on("error", (error) => body.destroy(error));
  incoming.on("aborted", () => body.destroy());
  incoming.pipe(body);
  return { body, start: () => Buffer.concat(chunks).toString("utf8") };
};

const requestHeaders = (incoming: IncomingMessage): Record<string, string | string[]> => {
  const {
    host: _host,
    expect: _expect,
    ...headers
  } = withoutCredentials(endToEndHeaders(incoming) as Record<string, string[]>);
  const single = Object.entries(headers).map(([name, values]) => [
    name,
    values.length === 1 ? (values[0] ?? "") : values,
  ]);
  // A compressed answer would name its tokens to nobody.
  return {
    ...(Object.fromEntries(single) as Record<string, string | string[]>),
    "accept-encoding": "identity",
  };
};

/** The length is left out: by it, a caller would see the end of an answer before the call is counted (L4). */
const answerHeaders = ({ headers }: NetAnswer): OutgoingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || HOP_BY_HOP.has(name) || name === "content-length" ? [] : [[name, value]],
    ),
  );

interface Passage {
  readonly outgoing: ServerResponse;
  readonly reader: Reader;
  /** Aborts when the caller leaves. */
  readonly left: AbortSignal;
}

/** Passes an answer on, as fast as the caller reads it. @returns whether it came to its end */
const pass = async (answer: NetAnswer, { outgoing, reader, left: signal }: Passage): Promise<boolean> => {
  try {
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
      reader.take(chunk);
      if (!outgoing.write(chunk)) await once(outgoing, "drain", { signal });
    }
    return !signal.aborted;
  } catch {
    return false;
  }
};

interface Settling {
  readonly call: ProviderOfSandbox;
  readonly path: string;
  readonly requested: string;
  readonly reader: Reader;
}

type Settle = (settling: Settling) => Promise<void>;

interface Passing {
  readonly client: NetClient;
  readonly keyring: Keyring["Service"];
  readonly settle: Settle;
}

/** A sandbox does not learn the addresses of the operator's own hosts. */
const unreached = (name: string, error: unknown): Refusal => {
  const isLate = error instanceof NetFault && error.reason._tag === "Late";
  return isLate
    ? new Refusal(504, `the model provider ${name} did not answer in time`)
    : new Refusal(502, `the model provider ${name} could not be reached: an owner of the account can try it`);
};

const serveCall = async (
  { client, keyring, settle }: Passing,
  call: ProviderOfSandbox,
  { below, incoming, outgoing }: Omit<ModelRequest, "path"> & { readonly below: string },
): Promise<void> => {
  const { name, kind, baseUrl } = call.provider;
  const { method = "GET" } = incoming;
  if (!passes(kind, method, below))
    throw new Refusal(403, `the model provider ${name} is open to sandboxes for calls of models only`);
  const key = openKey(keyring, call.provider);
  if (Result.isFailure(key))
    throw new Refusal(
      502,
      `the key of the model provider ${name} cannot be opened: an owner can set it again`,
    );
  const left = new AbortController();
  outgoing.on("close", () => left.abort());
  const { body, start } = bodyOf(incoming);
  const base = new URL(baseUrl);
  const reader = new Reader();
  const count = () =>
    isCounted(method, below) ? settle({ call, path: below, requested: start(), reader }) : Promise.resolve();
  let answer: NetAnswer;
  try {
    answer = await client.request({
      url: base,
      path: `${base.pathname.replace(/\/$/, "")}${below}`,
      method,
      headers: { ...requestHeaders(incoming), ...keyHeaders(kind, key.success) },
      body,
      signal: left.signal,
    });
  } catch (error) {
    // The provider may have begun.
    if (left.signal.aborted) await count();
    throw unreached(name, error);
  }
  outgoing.writeHead(answer.statusCode, answerHeaders(answer));
  const isWhole = await pass(answer, { outgoing, reader, left: left.signal });
  // A refused call costs nothing.
  if (answer.statusCode < 300) await count();
  if (isWhole) outgoing.end();
  else outgoing.destroy();
};

/** Answers at the door as long as the layer lives. */
export const modelCalls = (door: ModelDoor) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { ofSandbox } = yield* ModelProviders;
      const usage = yield* ModelUsage;
      const keyring = yield* Keyring;
      const client = yield* ModelServers;
      if (client === null) return;
      const run = Effect.runPromiseWith(yield* Effect.context());
      const settle: Settle = ({ call, path, requested, reader }) =>
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
      const serve = async (sandboxId: string, { path, incoming, outgoing }: ModelRequest) => {
        const wanted = split(path);
        if (wanted === null) return false;
        const call = await run(ofSandbox(sandboxId, wanted.name)).catch(() => {
          throw new Refusal(502, "the service cannot read its model providers now: try again");
        });
        if (call === null) return false;
        await serveCall({ client, keyring, settle }, call, { below: wanted.below, incoming, outgoing });
        return true;
      };
      yield* Effect.acquireRelease(
        Effect.sync(() => door.answerWith(serve)),
        () => Effect.sync(() => door.answerWith(null)),
      );
    }),
  );

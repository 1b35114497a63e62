/**
 * `npm run bench:model-calls [-- --rounds 5]`: calls of a model through a sandbox's way out, which adds the key, reserves and counts in
 * Postgres, beside the same calls without it: of an account without limits of spend, and of one with a limit. They take turns within a
 * round, one call after the other. Prints the time of a short call, right after another one and apart from it, and of a stream of 5,000
 * tokens for each token, as fast as they come.
 *
 * The aim, which is no pass mark: 1 ms more for a short call at p50. The provider is a process of its own. The proxy and the caller share this
 * process. The last line is one JSON object.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request, type RequestOptions } from "node:http";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { postgresStore } from "../../src/assembly/database.ts";
import { modelCalls } from "../../src/features/model-providers/calls.ts";
import { sealKey } from "../../src/features/model-providers/keys.ts";
import { ModelProviders } from "../../src/features/model-providers/ports/model-providers.ts";
import { GatewayServer, ModelServers } from "../../src/features/model-providers/ports/model-servers.ts";
import { makeModelServers } from "../../src/features/model-providers/sender.ts";
import { accountSpendLayer } from "../../src/features/spend/account-spend.ts";
import { Spend } from "../../src/features/spend/ports/spend.ts";
import { openEgress } from "../../src/sandbox/egress.ts";
import { ModelDoor } from "../../src/sandbox/model-door.ts";
import { keyringLayer } from "../../src/services/keyring.ts";
import * as Client from "../../src/store/postgres/connection/client.ts";
import { startEmbedded } from "../../src/store/postgres/embedded/embedded.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { guardedDirectory } from "../support/machine/guard.ts";
import { admitSession, openSandbox } from "../support/world/sessions.ts";
import { makeWorld, NOON } from "../support/world/world.ts";
import { spread, type Spread, told } from "./conversation/figures.ts";
import { quantile, wholeFrom1 } from "./figures.ts";
import { startServer } from "./programs.ts";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const rounds = wholeFrom1("rounds", values.rounds);
/** In a round, of each contender. */
const CALLS = 200;
const STREAMS = 3;
/** Between two calls that are apart, ms: an agent works meanwhile. The count of a call is not measured with the next one. */
const PAUSE_MS = 10;
const TOKENS = 5000;

const scope = Effect.runSync(Scope.make());
const { directory, remove } = guardedDirectory("platform-bench-");
const { url } = await Effect.runPromise(Scope.provide(startEmbedded(directory), scope));
const provider = await startServer("model-calls/provider.ts");
const { port } = provider;

const door = new ModelDoor();
const keys = keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] });
const client = Client.layer({ url });
const migrated = Layer.provideMerge(Layer.effectDiscard(migrate), client);
const stores = Layer.merge(Layer.provideMerge(postgresStore, migrated), keys);
const asks = Layer.mergeAll(
  Layer.effect(ModelServers, makeModelServers(["127.0.0.1"])),
  Layer.effect(GatewayServer, makeModelServers(["127.0.0.1"])),
  accountSpendLayer,
);
const context = await Effect.runPromise(
  Layer.buildWithScope(Layer.provideMerge(Layer.provide(modelCalls(door), asks), stores), scope),
);
/** A session of an account with this provider. */
const prepared = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const { id } = yield* openSandbox(yield* admitSession(world));
  const place = { id: randomUUID(), accountId: world.accountId, projectId: null, userId: null };
  yield* (yield* ModelProviders).create({
    ...place,
    name: "acme",
    kind: "anthropic",
    baseUrl: `http://127.0.0.1:${port}`,
    models: ["large"],
    hasKey: true,
    prices: { large: { input: 2, cached: 1, output: 10 } },
    sealed: yield* sealKey(place, "key", 1),
    triedAt: null,
    now: NOON,
  });
  return { id, accountId: world.accountId };
});
const { id: sandboxId, accountId } = await Effect.runPromise(Effect.provideContext(prepared, context));
/** Limits every session of the account, far from what is spent here. */
const limited = Effect.gen(function* () {
  const place = { id: randomUUID(), accountId, scope: "each_session", subject: "", projectId: null } as const;
  yield* (yield* Spend).set({ ...place, unit: "tokens", amount: 1_000_000_000_000, now: NOON });
});
const socketPath = path.join(directory, "out.sock");
const policy = { allow: [], secretNames: [], serviceUrl: null, llmUpstream: null };
const egress = await openEgress(socketPath, { policy, models: door.serve(sandboxId) });

const CONTENDERS = {
  direct: { host: "127.0.0.1", port, path: "/v1/messages" },
  through: { socketPath, path: "http://llm.platform.internal/acme/v1/messages" },
} satisfies Readonly<Record<string, RequestOptions>>;
type Contender = keyof typeof CONTENDERS;

/** One call. @returns how long it took, ms */
const call = async (contender: Contender, tokens: number): Promise<number> => {
  const body = JSON.stringify({ model: "large", max_tokens: 100, stream: tokens > 0, tokens });
  const headers = {
    host: "llm.platform.internal",
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  };
  const begin = performance.now();
  const outgoing = request({ ...CONTENDERS[contender], method: "POST", headers });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  let bytes = 0;
  for await (const piece of incoming) bytes += (piece as Buffer).length;
  const took = performance.now() - begin;
  if (incoming.statusCode !== 200 || bytes === 0)
    throw new Error(`a call was answered ${incoming.statusCode}`);
  return took;
};

interface Series {
  readonly times: number;
  readonly tokens: number;
  readonly pauseMs: number;
}

/** The p50 of calls one after the other. */
const middle = async (contender: Contender, { times, tokens, pauseMs }: Series) => {
  const took: number[] = [];
  for (let at = 0; at < times; at += 1) {
    /* oxlint-disable no-await-in-loop -- one call after the other */
    took.push(await call(contender, tokens));
    if (pauseMs > 0) await pause(pauseMs);
    /* oxlint-enable no-await-in-loop */
  }
  return quantile(took, 0.5);
};

/** The series, and the factor of the p50 of each, in ms. */
const SERIES = {
  short_apart_ms: { times: CALLS, tokens: 0, pauseMs: PAUSE_MS, factor: 1 },
  short_after_another_ms: { times: CALLS, tokens: 0, pauseMs: 0, factor: 1 },
  streamed_token_us: { times: STREAMS, tokens: TOKENS, pauseMs: 0, factor: 1000 / TOKENS },
} as const;

const names = Object.keys(CONTENDERS) as Contender[];

/** The rounds of one series. */
const measured = async ({ factor, ...series }: Series & { readonly factor: number }) => {
  const [direct, through]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round += 1)
    for (const contender of names) {
      // oxlint-disable-next-line no-await-in-loop -- the contenders take turns
      const figure = factor * (await middle(contender, series));
      // The first round warms up.
      if (round > 0) (contender === "direct" ? direct : through).push(figure);
    }
  const more = through.map((value, at) => value - (direct[at] ?? Number.NaN));
  return { direct: spread(direct), through: spread(through), more: spread(more) };
};

const result: Record<string, Record<string, Spread>> = {};
for (const prefix of ["", "limited_"]) {
  /* oxlint-disable no-await-in-loop -- one after the other */
  if (prefix !== "") await Effect.runPromise(Effect.provideContext(limited, context));
  for (const [name, series] of Object.entries(SERIES)) {
    const { direct, through, more } = await measured(series);
    result[prefix + name] = { direct, through, more };
    process.stdout.write(
      `${prefix + name}: direct ${told(direct)}, through ${told(through)}, more ${told(more)}\n`,
    );
  }
  /* oxlint-enable no-await-in-loop */
}
process.stdout.write(`${JSON.stringify(result)}\n`);
egress.close();
provider.close();
await Effect.runPromise(Scope.close(scope, Exit.void));
remove();

/** Keys are tried over the wire that the service uses, against a server in place of the providers. */
import { afterAll, beforeAll, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { MODEL_PROVIDERS } from "../../src/domain/sandbox/model.ts";
import { makeWire } from "../../src/git/github/wire.ts";
import { Providers, tryKey } from "../../src/services/projects/model-keys.ts";

const GOOD = "sk-good-canary";
const [anthropic] = MODEL_PROVIDERS;

let server: Server;
const seen: { readonly url: string | undefined; readonly headers: IncomingHttpHeaders }[] = [];
beforeAll(async () => {
  server = createServer(({ url, headers }, response) => {
    seen.push({ url, headers });
    if (headers["x-api-key"] === "moved") {
      response.writeHead(302, { location: "https://login.example.org/moved?token=1" }).end();
      return;
    }
    const isGood = headers["x-api-key"] === GOOD;
    const text = isGood
      ? { data: [] }
      : { error: { type: "authentication_error", message: "invalid x-api-key" } };
    response.writeHead(isGood ? 200 : 401, { "content-type": "application/json" }).end(JSON.stringify(text));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => void server.close());

const trial = (key: string) => (anthropic === undefined ? Effect.die("no provider") : tryKey(anthropic, key));
const trying = (key: string) =>
  Effect.gen(function* () {
    const wire = yield* makeWire(["127.0.0.1"]);
    const { port } = server.address() as AddressInfo;
    const stub = `http://127.0.0.1:${port}`;
    return yield* Effect.provideService(trial(key), Providers, (request) =>
      wire({ ...request, url: request.url.replace("https://api.anthropic.com", stub) }),
    );
  }).pipe(Effect.scoped);

it.live("asks the provider once, with the key in the header that it wants", () =>
  Effect.gen(function* () {
    expect(yield* trying(GOOD)).toEqual({
      outcome: "accepted",
      message: "api.anthropic.com accepts the key.",
      advice: null,
    });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      url: "/v1/models?limit=1",
      headers: { "x-api-key": GOOD, "anthropic-version": "2023-06-01" },
    });
  }),
);

it.live("tells a wrong key, and follows no redirect with it", () =>
  Effect.gen(function* () {
    expect(yield* trying("sk-bad")).toMatchObject({
      outcome: "rejected",
      message: "api.anthropic.com rejects the key (401). It says: invalid x-api-key",
    });
    expect(yield* trying("moved")).toMatchObject({
      outcome: "unknown",
      message:
        "api.anthropic.com answers with a redirect to https://login.example.org/(key), which is not followed.",
    });
  }),
);

it.live("says why a provider gives no answer, and sends nothing that is not a key", () =>
  Effect.gen(function* () {
    const before = seen.length;
    expect(yield* trying("not a key")).toMatchObject({ outcome: "rejected" });
    expect(seen).toHaveLength(before);
    const refused = Effect.provideService(trial(GOOD), Providers, () =>
      Effect.fail({ why: "cannot be resolved" }),
    );
    expect(yield* refused).toMatchObject({
      outcome: "unknown",
      message: "api.anthropic.com cannot be resolved.",
    });
  }),
);

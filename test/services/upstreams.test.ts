import { expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import { randomBytes, randomUUID } from "node:crypto";
import { keyringLayer } from "../../src/services/keyring.ts";
import { upstreamsLayer } from "../../src/services/projects/upstreams.ts";
import { credentialPlace, encodeCredential } from "../../src/domain/repository/repository-credential.ts";
import { NONCE_BYTES, sealSecret } from "../../src/domain/secret/secret.ts";
import { Upstreams } from "../../src/git/upstream/upstreams.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import { makeWorld, NOON, type World } from "../support/world/world.ts";

const keys = { current: { version: 1, bytes: new Uint8Array(randomBytes(32)) }, former: [] };
const layer = upstreamsLayer.pipe(Layer.provideMerge(Layer.mergeAll(memoryStore, keyringLayer(keys))));
const credential = { kind: "password", username: "ci", password: "canary" } as const;
const source = { kind: "git", url: "https://example.org/a.git" } as const;

const addExternal = Effect.fnUntraced(function* (world: World, sealedFor: string | null) {
  const id = randomUUID();
  const place = credentialPlace(sealedFor ?? id);
  const value = encodeCredential(credential);
  yield* (yield* Projects).create({
    id,
    accountId: world.accountId,
    name: `elsewhere ${randomUUID()}`,
    repository: source,
    defaultBranch: "trunk",
    createdBy: world.userId,
    credential: sealSecret(keys, place, { value, nonce: randomBytes(NONCE_BYTES) }),
    now: NOON,
  });
  return id;
});

it.live(
  "decrypts the credential of a repository at another server, and finds no credential of a hosted one",
  () =>
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const id = yield* addExternal(world, null);
      const { find, kind: kindOf } = yield* Upstreams;
      expect(yield* find(id)).toEqual({ source, credential, defaultBranch: "trunk" });
      expect(yield* find(world.projectId)).toBeNull();
      expect(yield* find(randomUUID())).toBeNull();
      expect(yield* kindOf(id)).toBe("git");
      expect(yield* kindOf(world.projectId)).toBe("hosted");
      expect(yield* kindOf(randomUUID())).toBeNull();
    }).pipe(Effect.provide(layer)),
);

it.live("decrypts no credential that was encrypted for another project [S07]", () =>
  Effect.gen(function* () {
    const id = yield* addExternal(yield* makeWorld(1), randomUUID());
    const found = yield* Effect.exit((yield* Upstreams).find(id));
    expect(Exit.isFailure(found)).toBe(true);
    expect(JSON.stringify(found)).not.toContain("canary");
  }).pipe(Effect.provide(layer)),
);

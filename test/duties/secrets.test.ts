import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect, test } from "vitest";
import { directoryLayer } from "../../src/services/directory.ts";
import { Keyring } from "../../src/services/keyring.ts";
import { changesFrom, secretsLayer, withoutNames } from "../../src/duties/secrets.ts";
import type { OpenedSecrets } from "../../src/services/projects/project-secrets.ts";
import { sealSecret } from "../../src/domain/secret/secret.ts";
import { CONTROL_BODY_BYTES, type EnvironmentChange } from "../../src/sandbox/daemon.ts";
import { Secrets } from "../../src/store/ports/projects/secrets.ts";
import { openActorsWorld } from "../support/world/actors.ts";
import { NOON } from "../support/world/world.ts";

const opened = (
  revision: number,
  secrets: Readonly<Record<string, readonly [number, string]>>,
): OpenedSecrets => ({
  given: {
    revision,
    versions: Object.fromEntries(Object.entries(secrets).map(([name, [version]]) => [name, version])),
  },
  values: Object.fromEntries(Object.entries(secrets).map(([name, [, value]]) => [name, value])),
});

const merged = (changes: readonly EnvironmentChange[]): EnvironmentChange["env"] =>
  Object.assign({}, ...changes.map(({ env }) => env)) as EnvironmentChange["env"];

describe("the secrets that a sandbox receives", () => {
  test("are the new, changed and removed ones, and nothing else", () => {
    const former = { revision: 3, versions: { SAME: 1, OTHER: 1, GONE: 2 } };
    const now = opened(6, { SAME: [1, "same"], OTHER: [2, "other"], NEW: [1, "new"] });
    expect(changesFrom(former, now)).toEqual([
      { revision: "6", env: { OTHER: "other", NEW: "new", GONE: null } },
    ]);
  });

  test("are without a new value that is withheld, and keep the former one", () => {
    const former = { revision: 3, versions: { KEY: 1, GONE: 1 } };
    const now = opened(5, { KEY: [2, "new"], OTHER_KEY: [1, "new"], PLAIN: [1, "plain"] });
    const sent = withoutNames(former, now, ["KEY", "OTHER_KEY"]);
    expect(sent.given).toEqual({ revision: 5, versions: { PLAIN: 1, KEY: 1 } });
    expect(changesFrom(former, sent)).toEqual([{ revision: "5", env: { GONE: null, PLAIN: "plain" } }]);
  });

  test("are only the revision if a change was reverted", () => {
    const former = { revision: 3, versions: { SAME: 1 } };
    expect(changesFrom(former, opened(5, { SAME: [1, "same"] }))).toEqual([{ revision: "5", env: {} }]);
  });

  test("come in several bodies if one is too small, the last with the revision", () => {
    // A value of control characters is six times as long in JSON.
    const secrets = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`S${index}`, [1, "\u0001".repeat(64 * 1024)] as const]),
    );
    const changes = changesFrom({ revision: 1, versions: {} }, opened(9, secrets));
    expect(changes.map(({ revision }) => revision)).toEqual(["9+1", "9+2", "9+3", "9+4", "9+5", "9"]);
    for (const change of changes)
      expect(Buffer.byteLength(JSON.stringify(change))).toBeLessThanOrEqual(CONTROL_BODY_BYTES);
    expect(Object.keys(merged(changes)).toSorted()).toEqual(Object.keys(secrets).toSorted());
  });
});

/** Sets a secret of the project, in the way of `PUT …/secrets/{name}`. */
const put = Effect.fnUntraced(function* (projectId: string, name: string, userId: string) {
  const secrets = yield* Secrets;
  const place = { projectId, name, version: yield* secrets.nextVersion(projectId, name) };
  const envelope = sealSecret((yield* Keyring).secrets, place, {
    value: `value of ${name}`,
    nonce: new Uint8Array(12),
  });
  yield* secrets.put({ ...place, envelope }, { userId, now: NOON });
});

describe("a changed secret", () => {
  it.effect("that arrives during another one is sent next, without waiting for a poll", () =>
    Effect.gen(function* () {
      const { world, inPorts, script, begin, admit, untilSession } = yield* openActorsWorld();
      const { actors } = yield* begin;
      const id = yield* admit;
      yield* actors.wake("session", id);
      yield* untilSession(id, "running");
      const [asked, taken] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const sent: string[][] = [];
      script.env = ({ env }) =>
        Effect.andThen(
          Effect.sync(() => sent.push(Object.keys(env))),
          Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(taken)),
        );
      yield* inPorts(Layer.build(secretsLayer({ nodeId: "node-1" }).pipe(Layer.provide(directoryLayer))));

      yield* inPorts(put(world.projectId, "ONE", world.userId));
      yield* Deferred.await(asked);
      yield* inPorts(put(world.projectId, "TWO", world.userId));
      yield* TestClock.adjust("100 millis");
      expect(sent).toEqual([["ONE"]]);
      yield* Deferred.succeed(taken, undefined);
      yield* TestClock.adjust("100 millis");
      expect(sent).toEqual([["ONE"], ["TWO"]]);
    }),
  );
});

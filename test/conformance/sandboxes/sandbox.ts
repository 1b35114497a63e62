/**
 * The behaviour of every sandbox provider (src/sandbox/port.ts, P1 to P5). The cases are plain effects with plain
 * assertions, so that they also run outside vitest: `local` is tested in child processes of another user.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import type * as Layer from "effect/Layer";
import {
  BARE_SPEC,
  type SandboxError,
  SandboxProvider,
  type SandboxSpec,
} from "../../../src/sandbox/port.ts";
import { countStart } from "../../support/vitest/starts.ts";
import { PLAIN_RUNTIME } from "../../support/machine/plain-runtime.ts";

/** A secret value in every spec. It must not appear anywhere. */
export const CANARY = "canary-7f3d9a51";

/** One provider under test, with controls that the port lacks. */
export interface Subject {
  /** A provider over the subject's state. Building it again simulates a restart of the service. */
  readonly layer: Layer.Layer<SandboxProvider, SandboxError>;
  /** Makes a sandbox end by itself. */
  readonly end: (id: string) => Effect.Effect<void, unknown, SandboxProvider>;
  /** Leftovers of a sandbox that `list` does not show: processes, directories, control groups. */
  readonly leftovers: (id: string) => Effect.Effect<readonly string[]>;
  /** The image of the sandboxes (SandboxSpec.image). */
  readonly image: string | null;
  /** Whether the state outlives the layer (src/sandbox/port.ts P1, P3 across restarts). */
  readonly persistent: boolean;
}

export interface Case {
  readonly name: string;
  readonly run: Effect.Effect<void, unknown>;
}

export const specOf = (id: string, changes: Partial<SandboxSpec> = {}): SandboxSpec => {
  countStart("sandboxes");
  return {
    ...BARE_SPEC,
    id,
    sessionId: randomUUID(),
    environment: { PLATFORM_TOKEN: `${CANARY}-token`, PLATFORM_SERVICE_PORT: "8000" },
    secrets: { SOME_API_KEY: `${CANARY}-secret` },
    runtime: PLAIN_RUNTIME,
    bootDeadlineMs: 60_000,
    ...changes,
  };
};

const ids = Effect.gen(function* () {
  const provider = yield* SandboxProvider;
  return (yield* provider.list).map(({ id }) => id);
});

/** Creates a sandbox for the duration of a test. */
export const sandbox = (spec: SandboxSpec) =>
  Effect.acquireRelease(
    Effect.flatMap(SandboxProvider, (provider) => provider.create(spec)),
    () => Effect.orDie(Effect.flatMap(SandboxProvider, (provider) => provider.destroy(spec.id))),
  );

const lifecycle = (subject: Subject): readonly Case[] => {
  const test = (name: string, body: Effect.Effect<void, unknown, SandboxProvider>): Case => ({
    name,
    run: Effect.provide(body, subject.layer),
  });

  return [
    test(
      "lists a created sandbox as running, with its session, and links to it",
      Effect.scoped(
        Effect.gen(function* () {
          const provider = yield* SandboxProvider;
          const spec = specOf(randomUUID(), { image: subject.image });
          yield* sandbox(spec);
          const found = (yield* provider.list).find(({ id }) => id === spec.id);
          assert.deepEqual(found, { id: spec.id, sessionId: spec.sessionId, state: "running" });
          assert.match((yield* provider.link(spec.id)).kind, /^(unix|url)$/);
        }),
      ),
    ),
    test(
      "makes one sandbox for several creates with one id, at once and later [R05]",
      Effect.scoped(
        Effect.gen(function* () {
          const provider = yield* SandboxProvider;
          const spec = specOf(randomUUID(), { image: subject.image });
          const before = (yield* ids).length;
          yield* Effect.all([sandbox(spec), provider.create(spec), provider.create(spec)], {
            concurrency: "unbounded",
          });
          yield* provider.create(spec);
          assert.equal((yield* ids).length, before + 1);
        }),
      ),
    ),
    test(
      "destroys a sandbox without a trace, and notifies callers that wait for its end [I9]",
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* provider.create(spec);
        const waiting = yield* Effect.forkChild(provider.awaitExit(spec.id), { startImmediately: true });
        yield* provider.destroy(spec.id);
        assert.equal((yield* Fiber.join(waiting)).code, "exited");
        assert.ok(!(yield* ids).includes(spec.id));
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
      }),
    ),
    test(
      "destroys a sandbox that is gone or never existed",
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* provider.destroy(spec.id);
        yield* provider.create(spec);
        yield* provider.destroy(spec.id);
        yield* provider.destroy(spec.id);
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
      }),
    ),
    test(
      "reports an unknown sandbox as absent, and has no link to it",
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const id = randomUUID();
        assert.equal((yield* provider.awaitExit(id)).code, "absent");
        assert.equal((yield* Effect.flip(provider.link(id))).operation, "link");
        assert.equal(yield* provider.logs(id), "");
      }),
    ),
    test(
      "accepts other names of secrets, and none for a missing sandbox",
      Effect.scoped(
        Effect.gen(function* () {
          const provider = yield* SandboxProvider;
          const spec = specOf(randomUUID(), { image: subject.image });
          const early = yield* Effect.flip(provider.setSecretNames(spec.id, []));
          assert.equal(early.operation, "setSecretNames");
          yield* sandbox(spec);
          yield* provider.setSecretNames(spec.id, ["ANTHROPIC_API_KEY"]);
          yield* provider.setSecretNames(spec.id, []);
          assert.ok((yield* ids).includes(spec.id));
        }),
      ),
    ),
    test(
      "reports why a sandbox ended by itself, and lists it as exited until it is destroyed [R06]",
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* provider.create(spec);
        yield* subject.end(spec.id);
        const exit = yield* provider.awaitExit(spec.id);
        assert.equal(exit.code, "exited");
        assert.notEqual(exit.message, "");
        assert.deepEqual(yield* provider.awaitExit(spec.id), exit);
        assert.equal((yield* provider.list).find(({ id }) => id === spec.id)?.state, "exited");
        yield* provider.destroy(spec.id);
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
      }),
    ),
    test(
      "ends a sandbox, once or twice, and keeps its log until it is destroyed",
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* provider.create(spec);
        yield* provider.end(spec.id);
        assert.equal((yield* provider.awaitExit(spec.id)).code, "exited");
        assert.equal((yield* provider.list).find(({ id }) => id === spec.id)?.state, "exited");
        const log = yield* provider.logs(spec.id);
        yield* provider.end(spec.id);
        assert.equal(yield* provider.logs(spec.id), log);
        yield* provider.destroy(spec.id);
        assert.equal(yield* provider.logs(spec.id), "");
        yield* provider.end(spec.id);
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
      }),
    ),
    test(
      "leaves nothing behind when a create is interrupted and its sandbox destroyed [R02]",
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(randomUUID(), { image: subject.image });
        const creating = yield* Effect.forkChild(provider.create(spec), { startImmediately: true });
        yield* Fiber.interrupt(creating);
        yield* provider.destroy(spec.id);
        assert.ok(!(yield* ids).includes(spec.id));
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
      }),
    ),
    test(
      "keeps a spec's secrets out of lists, links, logs and exits [I16]",
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* provider.create(spec);
        const told = [yield* provider.list, yield* provider.link(spec.id), yield* provider.logs(spec.id)];
        yield* provider.destroy(spec.id);
        told.push(yield* Effect.map(provider.awaitExit(spec.id), ({ message }) => message));
        assert.ok(!JSON.stringify(told).includes(CANARY));
      }),
    ),
  ];
};

/** Each build of the layer acts as a service: the first starts a sandbox and dies, the next ones find it. */
const restarts = (subject: Subject): readonly Case[] => {
  const service = <A>(body: Effect.Effect<A, unknown, SandboxProvider>) =>
    Effect.provide(body, subject.layer);
  return [
    {
      name: "finds a former service's sandbox running, joins it on create, and destroys it by its record [I10]",
      run: Effect.gen(function* () {
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* service(Effect.flatMap(SandboxProvider, (provider) => provider.create(spec)));
        yield* service(
          Effect.gen(function* () {
            const provider = yield* SandboxProvider;
            assert.equal((yield* provider.list).find(({ id }) => id === spec.id)?.state, "running");
            yield* provider.create(spec);
            assert.equal((yield* ids).filter((id) => id === spec.id).length, 1);
          }),
        );
        yield* service(Effect.flatMap(SandboxProvider, (provider) => provider.destroy(spec.id)));
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
      }),
    },
    {
      name: "gives a later service the log of a sandbox that ended before the service started",
      run: Effect.gen(function* () {
        const spec = specOf(randomUUID(), { image: subject.image });
        const first = yield* service(
          Effect.gen(function* () {
            const provider = yield* SandboxProvider;
            yield* provider.create(spec);
            // It ends by itself, as if its daemon was killed.
            yield* subject.end(spec.id);
            yield* provider.awaitExit(spec.id);
            return yield* provider.logs(spec.id);
          }),
        );
        const later = yield* service(Effect.flatMap(SandboxProvider, (provider) => provider.logs(spec.id)));
        assert.notEqual(first, "");
        assert.equal(later, first);
        yield* service(Effect.flatMap(SandboxProvider, (provider) => provider.destroy(spec.id)));
      }),
    },
    {
      name: "tells a later service why a sandbox ended before the service started",
      run: Effect.gen(function* () {
        const spec = specOf(randomUUID(), { image: subject.image });
        const first = yield* service(
          Effect.gen(function* () {
            const provider = yield* SandboxProvider;
            yield* provider.create(spec);
            yield* subject.end(spec.id);
            return yield* provider.awaitExit(spec.id);
          }),
        );
        const later = yield* service(
          Effect.gen(function* () {
            const provider = yield* SandboxProvider;
            const exit = yield* provider.awaitExit(spec.id);
            yield* provider.destroy(spec.id);
            return exit;
          }),
        );
        assert.deepEqual(later, first);
      }),
    },
  ];
};

/** The suite for one provider. */
export const sandboxCases = (subject: Subject): readonly Case[] => [
  ...lifecycle(subject),
  ...(subject.persistent ? restarts(subject) : []),
];

/** Runs a case as a promise. Rejects with its failure. */
export const runCase = async ({ run }: Case): Promise<void> => {
  const exit = await Effect.runPromiseExit(run);
  if (Exit.isFailure(exit)) throw new Error(String(exit.cause), { cause: exit.cause });
};

/**
 * Runs builds on their nodes: each in its turn, with its progress and log written to the ledger.
 *
 *  U1 At most `atOnce` builds run here. The others wait in the order in which they came.
 *  U2 A build runs once however often it is asked for: later callers wait for the same outcome.
 *  U3 A build without a caller that waits for it ends after UNWATCHED_MS.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as RcMap from "effect/RcMap";
import * as Schedule from "effect/Schedule";
import * as Semaphore from "effect/Semaphore";
import { Actors } from "../actors.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { BuildSite, type SiteEvent, type SiteRequest } from "../../builder/site/port.ts";
import { BuildError } from "../../builder/port.ts";
import type { BuildBase } from "../../domain/environment/base-image.ts";
import type { BuildFailure } from "../../domain/environment/build-failure.ts";
import { Redactor } from "../../domain/secret/redactor.ts";
import { cutText, storableText } from "../../domain/text.ts";
import type { GitBackend } from "../../git/port.ts";
import type { EnvironmentBuildEvent } from "../../machines/environment-build.ts";
import { openSecrets } from "../projects/project-secrets.ts";
import { EnvironmentBases } from "../../store/ports/projects/environment-bases.ts";
import { EnvironmentBuilds, type EnvironmentBuild } from "../../store/ports/projects/environment-builds.ts";
import type { Secrets } from "../../store/ports/projects/secrets.ts";
import { buildFiles } from "./build-sources.ts";
import type { Keyring } from "../keyring.ts";

/** The outcome of a build, as its actor takes it. */
export type BuildOutcome = Extract<EnvironmentBuildEvent, { readonly type: "image.ready" | "build.failed" }>;

export class Building extends Context.Service<
  Building,
  {
    /** Builds on the build's node, or joins the build that runs there, and waits for the outcome. */
    readonly run: (build: EnvironmentBuild) => Effect.Effect<BuildOutcome>;
    /** Ends what runs of a build. Those who wait for it are interrupted. */
    readonly end: (build: EnvironmentBuild) => Effect.Effect<void>;
    /** Builds that run here, and that wait for a place. */
    readonly state: () => { readonly running: number; readonly waiting: number };
  }
>()("platform/services/Building") {}

const noNode = ({ id, nodeId }: EnvironmentBuild) =>
  Effect.die(new Error(`build ${id} belongs to the node ${nodeId}`));

/** Builds on other nodes (nodes/building.ts). A node alone has none. */
export const BuildingElsewhere = Context.Reference<{
  readonly run: (build: EnvironmentBuild) => Effect.Effect<BuildOutcome>;
  readonly end: (build: EnvironmentBuild) => Effect.Effect<void>;
}>("platform/services/BuildingElsewhere", {
  defaultValue: () => ({ run: noNode, end: noNode }),
});

/**
 * A build must outlive the move of its actor to another node, or it is begun again and counts as interrupted. A move takes
 * up to 9 s (docs/operate/nodes.md), and the recovery that then finds the build up to 5 s more. The double of that.
 */
export const UNWATCHED_MS = 30_000;

/** How many bytes of a commit's files one page has at most. */
const PAGE_BYTES = 16 * 1024 * 1024;
/** The log is written in pieces of at most this size, in characters, each time after this pause. */
const PIECE_LENGTH = 64 * 1024;
const PIECE_PAUSE = "300 millis";

/** How often the rest of a log is written again if the database is away. */
const LAST_TRIES = { times: 10, schedule: Schedule.spaced("1 second") };

const failedOutcome = (failure: BuildFailure): BuildOutcome => ({ type: "build.failed", failure });

/** A step may have printed a secret. */
const redactedFailure = (failure: BuildFailure, redactor: Redactor): BuildFailure =>
  "tail" in failure ? { ...failure, tail: redactor.redact(failure.tail) } : failure;

/** Writes a build's output to the ledger in the background. The rest is written before the scope closes. */
const logWriter = Effect.fnUntraced(function* (id: string) {
  const builds = yield* EnvironmentBuilds;
  let waiting = "";
  /** If the database is away, the text waits for the next time. */
  const flush = Effect.suspend(() => {
    const piece = cutText(waiting, PIECE_LENGTH);
    if (piece === "") return Effect.succeed(false);
    return Effect.as(
      Effect.tap(builds.appendLog(id, storableText(piece)), () =>
        Effect.sync(() => {
          waiting = waiting.slice(piece.length);
        }),
      ),
      true,
    );
  }).pipe(
    Effect.orElseSucceed(() => false),
    Effect.uninterruptible,
  );
  const flushAll = Effect.repeat(flush, { while: (isMore) => isMore });
  // The database may be away at the end. The outcome of the build is worth more than the end of its log.
  const flushRest = Effect.suspend(() => (waiting === "" ? Effect.void : Effect.fail("more" as const))).pipe(
    (rest) => Effect.andThen(flushAll, rest),
    Effect.retry(LAST_TRIES),
    Effect.ignore,
  );
  yield* Effect.addFinalizer(() => flushRest);
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(PIECE_PAUSE), flushAll)));
  return (text: string) =>
    Effect.sync(() => {
      waiting += text;
    });
});

/** One line for each step, as people read it in the log. */
const stepLine = ({ step, line, instruction }: Extract<SiteEvent, { readonly kind: "step" }>): string =>
  `[step ${step}, line ${line}] ${instruction}\n`;

/** The pages of the files that a build sees. */
const sourceFiles =
  ({ projectId, source }: EnvironmentBuild, git: Context.Context<GitBackend>): SiteRequest["files"] =>
  (after) =>
    buildFiles({ repository: { projectId }, source, after, maxBytes: PAGE_BYTES }).pipe(
      Effect.provideContext(git),
      Effect.mapError(
        ({ message }) => new BuildError({ failure: { code: "repository_unavailable", message } }),
      ),
      Effect.flatMap((page) =>
        page === null
          ? Effect.fail(new BuildError({ failure: { code: "context_missing", path: source.context } }))
          : Effect.succeed(page),
      ),
    );

/** @returns a function that builds once, from the first file to the kept image. */
const makeBuild = Effect.fnUntraced(function* (basesMs: number) {
  const builds = yield* EnvironmentBuilds;
  const bases = yield* EnvironmentBases;
  const actors = yield* Actors;
  const site = yield* BuildSite;
  const services = yield* Effect.context<Secrets | Keyring | GitBackend>();

  /** The values of the secrets that a build names, and no others. */
  const buildSecrets = Effect.fnUntraced(function* ({ projectId, source }: EnvironmentBuild) {
    const { secrets: names = [] } = source;
    if (names.length === 0) return {};
    const secrets = Effect.provideContext(openSecrets(projectId), services);
    const { values } = yield* waitOutOutage("a build's secrets", secrets);
    const missing = names.find((name) => values[name] === undefined);
    if (missing !== undefined)
      return yield* new BuildError({ failure: { code: "secret_missing", name: missing } });
    return Object.fromEntries(names.map((name) => [name, values[name] ?? ""]));
  });

  /** A lost report costs the people who watch a state. The outcome comes all the same. */
  const tell = (id: string, event: EnvironmentBuildEvent) =>
    Effect.ignore(
      Effect.tapError(actors.environmentBuild(id, event), (error) =>
        Effect.logWarning("a build could not report its progress", { build: id, error }),
      ),
    );

  /** Later looks are compared with this one, so an outage of the database must not lose it. */
  const noteBases = Effect.fnUntraced(function* (id: string, newBases: readonly BuildBase[]) {
    const now = yield* Clock.currentTimeMillis;
    yield* waitOutOutage("a build's base images", builds.noteBases(id, newBases));
    for (const { reference, digest } of newBases)
      if (digest !== null)
        yield* waitOutOutage("base images", bases.found({ reference, digest, now, dueAt: now + basesMs }));
  });

  return Effect.fnUntraced(function* (build: EnvironmentBuild) {
    const { id, projectId, source, cause } = build;
    yield* tell(id, { type: "build.begun" });
    yield* waitOutOutage("a build's log", builds.clearLog(id));
    const log = yield* logWriter(id);
    const redactor = new Redactor([]);
    const report = (event: SiteEvent): Effect.Effect<void> => {
      switch (event.kind) {
        case "context":
          return tell(id, { type: "context.read" });
        case "bases":
          return noteBases(id, event.bases);
        case "step": {
          const { step, line, instruction } = event;
          return Effect.andThen(
            log(stepLine(event)),
            Effect.ignore(builds.noteStep(id, { step, line, instruction })),
          );
        }
        case "log":
          return log(redactor.redact(event.text));
        case "exporting":
          return tell(id, { type: "steps.done" });
      }
    };
    // A person who asks for a build expects the newest base images.
    const pull = cause === "refresh" || cause === "asked" ? "newer" : "missing";
    const building = Effect.gen(function* () {
      const secrets = yield* buildSecrets(build);
      for (const value of Object.values(secrets)) redactor.add(value);
      return yield* site.build(
        { id, projectId, source, secrets, pull, files: sourceFiles(build, services) },
        report,
      );
    });
    return yield* Effect.match(building, {
      onSuccess: (image): BuildOutcome => ({ type: "image.ready", image }),
      onFailure: ({ failure }) => failedOutcome(redactedFailure(failure, redactor)),
    });
  }, Effect.scoped);
});

export interface BuildingOptions {
  readonly nodeId: string;
  /** PLATFORM_BUILDS_AT_ONCE. */
  readonly atOnce: number;
  /** After which time the tag of a base image is looked up again, ms (PLATFORM_ENVIRONMENT_BASES_MS). */
  readonly basesMs: number;
}

/** @returns a function that runs a build when it has a place, and the numbers of both kinds. */
const makeTurns = Effect.fnUntraced(function* ({ atOnce, basesMs }: Omit<BuildingOptions, "nodeId">) {
  const build = yield* makeBuild(basesMs);
  const places = yield* Semaphore.make(atOnce);
  const count = { running: 0, waiting: 0 };
  const move = (by: Partial<typeof count>) =>
    Effect.sync(() => {
      count.running += by.running ?? 0;
      count.waiting += by.waiting ?? 0;
    });
  const inTurn = (one: EnvironmentBuild) =>
    Effect.acquireUseRelease(
      move({ waiting: 1 }),
      () =>
        places.withPermit(
          Effect.acquireUseRelease(
            move({ waiting: -1, running: 1 }),
            () => build(one),
            () => move({ waiting: 1, running: -1 }),
          ),
        ),
      () => move({ waiting: -1 }),
    );
  return { inTurn, state: () => ({ ...count }) };
});

export const buildingLayer = ({ nodeId: self, ...options }: BuildingOptions) =>
  Layer.effect(
    Building,
    Effect.gen(function* () {
      const elsewhere = yield* BuildingElsewhere;
      const { inTurn, state } = yield* makeTurns(options);
      // The rows are equal for all callers of one build, so the first one's is used.
      const rows = new Map<string, EnvironmentBuild>();
      const fibers = new Map<string, Fiber.Fiber<BuildOutcome>>();
      const running = yield* RcMap.make({
        lookup: Effect.fnUntraced(function* (id: string) {
          const row = rows.get(id);
          if (row === undefined) return yield* Effect.die(new Error(`build ${id} was not asked for`));
          const fiber = yield* Effect.forkScoped(inTurn(row));
          fibers.set(id, fiber);
          yield* Effect.addFinalizer(() => Effect.sync(() => fibers.delete(id)));
          return fiber;
        }),
        idleTimeToLive: UNWATCHED_MS,
      });
      const here = (one: EnvironmentBuild) =>
        Effect.suspend(() => {
          rows.set(one.id, one);
          const fiber = Effect.tap(RcMap.get(running, one.id), () => Effect.sync(() => rows.delete(one.id)));
          return Effect.scoped(Effect.flatMap(fiber, Fiber.join));
        });
      const endHere = Effect.fnUntraced(function* ({ id }: EnvironmentBuild) {
        const fiber = fibers.get(id);
        if (fiber !== undefined) yield* Fiber.interrupt(fiber);
        yield* RcMap.invalidate(running, id);
      });
      return Building.of({
        run: (one) => (one.nodeId === self ? here(one) : elsewhere.run(one)),
        end: (one) => (one.nodeId === self ? endHere(one) : elsewhere.end(one)),
        state,
      });
    }),
  );

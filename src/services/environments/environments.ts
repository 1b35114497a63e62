/**
 * Chooses the root file system of a project's sandboxes: this node's own files, an operator's image, or the image of a build.
 *
 *  W1 A sandbox of a project with a Dockerfile boots on an image of that project, or it fails with the reason. It gets the
 *     node's own files only if the operator has chosen that nothing is built (PLATFORM_BUILDER=none).
 *  W2 A boot waits for a build only if the project has no image yet. Otherwise it takes the newest one, marked stale.
 *     An image whose base images have changed since is not the newest one any more, and boots like that of an earlier Dockerfile.
 *  W3 At most one build of a key is under way on a node. A build that failed is not begun again by a boot, unless its
 *     failure may pass by itself, and then not within RETRY_PAUSE_MS.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as RcMap from "effect/RcMap";
import * as Schema from "effect/Schema";
import { Actors } from "../actors.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { BuildSite } from "../../builder/site/port.ts";
import { hasNewerBase } from "../../domain/environment/base-image.ts";
import { type BuildFailure, describeBuildFailure, mayPass } from "../../domain/environment/build-failure.ts";
import type { BuildSource } from "../../domain/environment/environment-source.ts";
import { parseManifest } from "../../domain/manifest/manifest.ts";
import { isLiveBuildState } from "../../machines/environment-build.ts";
import { EnvironmentBases } from "../../store/ports/projects/environment-bases.ts";
import {
  type BuildCause,
  EnvironmentBuilds,
  type EnvironmentBuild,
} from "../../store/ports/projects/environment-builds.ts";
import { newUuid } from "../entropy.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import type { GoodManifest } from "../../store/ports/projects/projects.ts";
import { type Sandbox, Sandboxes } from "../../store/ports/sessions/sandboxes.ts";

/** A project's environment cannot be had. The message is for people. */
export class EnvironmentFailed extends Schema.TaggedError<EnvironmentFailed>()("EnvironmentFailed", {
  message: Schema.String,
}) {}

/** What a manifest names. */
export type EnvironmentPlan =
  | { readonly kind: "machine" }
  | { readonly kind: "image"; readonly image: string }
  | { readonly kind: "dockerfile" | "devcontainer"; readonly source: BuildSource };

/** After a failure that may pass, a boot begins the next build no sooner. */
export const RETRY_PAUSE_MS = 60_000;
/** How many images of a project are looked at for one that is on the disk. */
const READY_LOOKED_AT = 5;
const POLL = "500 millis";
/** How many lines of a failed step's output a session's failure has. */
const TAIL_LINES = 12;

/** Whether a manifest may have the table. A key can also be written with escapes. */
const MAY_NAME_IMAGE = /environment|\\/;

export const environmentPlan = (manifest: GoodManifest | null): EnvironmentPlan => {
  if (manifest === null) return { kind: "machine" };
  const { environment: source, text } = manifest;
  if (source !== null)
    return { kind: source.devcontainer === undefined ? "dockerfile" : "devcontainer", source };
  // Parsing a manifest with a thousand triggers takes 20 ms, and every boot would wait for it.
  if (!MAY_NAME_IMAGE.test(text)) return { kind: "machine" };
  const { environment } = parseManifest(Buffer.from(text));
  return environment.kind === "image" ? environment : { kind: "machine" };
};

/** On what a sandbox boots. */
export interface BootEnvironment {
  /** The name of an image. Null means the machine's own files. */
  readonly image: string | null;
  /** Variables of the project's devcontainer.json, for the agent. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Who asks for a build. */
export interface BuildRequester {
  readonly cause: BuildCause;
  readonly requestedBy: string | null;
}

export class Environments extends Context.Service<
  Environments,
  {
    /** What builds on this node. Null if nothing does. */
    readonly builder: string | null;
    /** Begins a build on this node, or returns the one that is under way. Null if the project does not exist. */
    readonly begin: (
      projectId: string,
      source: BuildSource,
      request: BuildRequester,
    ) => Effect.Effect<EnvironmentBuild | null, StoreError>;
    /**
     * Begins the build of a new manifest's Dockerfile, unless a node has built it before. Each node notices a new commit, and
     * one image is enough until a sandbox needs another.
     */
    readonly prepare: (projectId: string, manifest: GoodManifest) => Effect.Effect<void, StoreError>;
    /**
     * Begins the build of a Dockerfile on this node again if a base image of its last build has changed since. Once for
     * each change: a build that fails is left to the next boot. @returns the new build
     */
    readonly renew: (
      projectId: string,
      source: BuildSource,
    ) => Effect.Effect<EnvironmentBuild | null, StoreError>;
    /**
     * Waits until a sandbox can boot, and records what it boots on. An image may be older than the manifest in force. The
     * variables are always those of the manifest.
     */
    readonly forBoot: (
      sandbox: Pick<Sandbox, "id" | "nodeId">,
      of: { readonly projectId: string; readonly manifest: GoodManifest | null },
    ) => Effect.Effect<BootEnvironment, EnvironmentFailed | StoreError>;
  }
>()("platform/services/Environments") {}

export interface EnvironmentsOptions {
  readonly nodeId: string;
  /** The age from which an image's base images are asked for again, ms (PLATFORM_ENVIRONMENT_REFRESH_MS). */
  readonly refreshMs: number;
}

const lastLines = (text: string): string => text.trimEnd().split("\n").slice(-TAIL_LINES).join("\n");

const failureText = (failure: BuildFailure): string => {
  const tail = "tail" in failure ? lastLines(failure.tail) : "";
  const sentence = `The project's environment could not be built: ${describeBuildFailure(failure)}.`;
  return tail === "" ? sentence : `${sentence} The end of its output:\n${tail}`;
};

const failedBy = (failure: BuildFailure | null) =>
  new EnvironmentFailed({
    message: failure === null ? "The project's environment could not be built." : failureText(failure),
  });

const NOT_BUILT =
  "The project has a Dockerfile or a devcontainer.json, but this node builds no images (PLATFORM_BUILDER=none).";

type Wanted = Pick<EnvironmentBuild, "projectId" | "nodeId" | "source">;

const REFRESH: BuildRequester = { cause: "refresh", requestedBy: null };

/** @returns the functions that begin builds, wait for them, and find their images. */
const makeLooking = Effect.fnUntraced(function* ({ nodeId: self, refreshMs }: EnvironmentsOptions) {
  const builds = yield* EnvironmentBuilds;
  const baseStore = yield* EnvironmentBases;
  const actors = yield* Actors;
  const site = yield* BuildSite;

  /** Completes when a build is over. All who wait for it share one look at the ledger. */
  const watching = yield* RcMap.make({
    lookup: (id: string) =>
      waitOutOutage("waiting for a build", builds.get(id)).pipe(
        Effect.delay(POLL),
        Effect.repeat({ while: (build) => build !== null && isLiveBuildState(build.status) }),
        Effect.forkScoped,
      ),
  });
  const over = (id: string) => Effect.scoped(Effect.flatMap(RcMap.get(watching, id), Fiber.join));

  const begin = Effect.fnUntraced(function* ({ projectId, nodeId, source }: Wanted, request: BuildRequester) {
    const now = yield* Clock.currentTimeMillis;
    const opening = yield* builds.open({ id: yield* newUuid, projectId, nodeId, source, ...request, now });
    if (opening?.isNew === true) yield* actors.wake("environmentBuild", opening.build.id);
    return opening?.build ?? null;
  });

  /** The project's images on a node, newest first. Another node's disk is not looked at. */
  const presentImages = Effect.fnUntraced(function* (projectId: string, nodeId: string) {
    const ready = yield* builds.ready({ projectId, nodeId, limit: READY_LOOKED_AT });
    if (nodeId !== self) return ready;
    const present = yield* Effect.filter(ready, ({ id }) =>
      Effect.map(site.find(id), (image) => image !== null),
    );
    const absent = ready.filter((build) => !present.includes(build));
    if (absent.length > 0) yield* builds.forgetImages(absent.map(({ id }) => id));
    return present;
  });

  /** Whether a base image has changed since a build. */
  const hasChanged = ({ bases }: EnvironmentBuild) =>
    bases.length === 0
      ? Effect.succeed(false)
      : Effect.map(baseStore.get(bases.map(({ reference }) => reference)), (now) => hasNewerBase(bases, now));

  /** Null if no base image of the last build has changed, or a build is under way. */
  const renew = Effect.fnUntraced(function* (target: Wanted) {
    const { projectId, nodeId, source } = target;
    const newest = yield* builds.newest({ projectId, nodeId, key: source.key });
    if (newest === null || isLiveBuildState(newest.status) || !(yield* hasChanged(newest))) return null;
    return yield* begin(target, REFRESH);
  });

  /** The build that a boot without an image waits for, or that makes up for a stale one. */
  const neededBuild = Effect.fnUntraced(function* (target: Wanted) {
    const { projectId, nodeId, source } = target;
    const newest = yield* builds.newest({ projectId, nodeId, key: source.key });
    const request = { cause: "session", requestedBy: null } as const;
    if (newest !== null && isLiveBuildState(newest.status)) return newest;
    if (newest !== null && (yield* hasChanged(newest))) return yield* begin(target, REFRESH);
    if (newest === null || newest.status === "ready") return yield* begin(target, request);
    const since = (yield* Clock.currentTimeMillis) - (newest.endedAt ?? 0);
    const isAgain = newest.failure !== null && mayPass(newest.failure) && since > RETRY_PAUSE_MS;
    return isAgain ? yield* begin(target, request) : newest;
  });

  /** Whether the last build of the key, of whatever outcome, is so old that its base images may be, too. */
  const isOld = Effect.fnUntraced(function* ({ source: { key }, ...of }: Wanted) {
    const newest = yield* builds.newest({ ...of, key });
    return newest === null || (yield* Clock.currentTimeMillis) - newest.createdAt > refreshMs;
  });
  return { over, begin, imagesOf: presentImages, hasChanged, renew, needed: neededBuild, isOld };
});

const make = Effect.fnUntraced(function* (options: EnvironmentsOptions) {
  const { nodeId: self } = options;
  const builds = yield* EnvironmentBuilds;
  const sandboxes = yield* Sandboxes;
  const site = yield* BuildSite;
  const { over, begin, imagesOf, hasChanged, renew, needed, isOld } = yield* makeLooking(options);

  const forDockerfile = Effect.fnUntraced(function* (
    { id: sandboxId, nodeId }: Pick<Sandbox, "id" | "nodeId">,
    projectId: string,
    source: BuildSource,
  ) {
    const note = Effect.fnUntraced(function* (buildId: string, isStale: boolean) {
      yield* sandboxes.noteEnvironment(sandboxId, { buildId, isStale, now: yield* Clock.currentTimeMillis });
    });
    const target = { projectId, nodeId, source };
    for (let isFirst = true; ; isFirst = false) {
      const images = yield* imagesOf(projectId, nodeId);
      const current = images.find((build) => build.source.key === source.key);
      const image = current ?? images[0];
      if (image !== undefined) {
        const isStale = current === undefined || (yield* hasChanged(current));
        if (isStale) yield* needed(target);
        else if (yield* isOld(target)) yield* begin(target, REFRESH);
        yield* note(image.id, isStale);
        if (nodeId !== self) return site.imageName(image.id);
        yield* site.noteUse(image.id, yield* Clock.currentTimeMillis);
        // Before the note, the image could still be removed to make room.
        if ((yield* site.find(image.id)) !== null) return site.imageName(image.id);
        continue;
      }
      const build = yield* needed(target);
      if (build === null) return yield* failedBy(null);
      yield* note(build.id, false);
      // A boot waits for one build. If that fails, the session says why.
      if (!isLiveBuildState(build.status) || !isFirst) return yield* failedBy(build.failure);
      const lastBuild = yield* over(build.id);
      if (lastBuild?.status !== "ready") return yield* failedBy(lastBuild?.failure ?? null);
    }
  });

  return Environments.of({
    builder: site.builder,
    begin: (projectId, source, request) => begin({ projectId, nodeId: self, source }, request),
    prepare: Effect.fnUntraced(function* (projectId, { environment: source }) {
      if (source === null || site.builder === null) return;
      const newestBuild = yield* builds.newest({ projectId, key: source.key });
      if (newestBuild === null)
        yield* begin({ projectId, nodeId: self, source }, { cause: "manifest", requestedBy: null });
    }),
    renew: (projectId, source) => renew({ projectId, nodeId: self, source }),
    forBoot: Effect.fnUntraced(function* (sandbox, { projectId, manifest }) {
      const plan = environmentPlan(manifest);
      switch (plan.kind) {
        case "machine":
          return { image: null, variables: {} };
        case "image":
          yield* sandboxes.noteImage(sandbox.id, plan.image);
          return { image: plan.image, variables: {} };
        case "dockerfile":
        case "devcontainer": {
          const { variables = {} } = plan.source.devcontainer ?? {};
          if (site.builder === null) {
            yield* Effect.logInfo(NOT_BUILT, { project: projectId });
            return { image: null, variables };
          }
          return { image: yield* forDockerfile(sandbox, projectId, plan.source), variables };
        }
      }
    }),
  });
});

export const environmentsLayer = (options: EnvironmentsOptions) => Layer.effect(Environments, make(options));

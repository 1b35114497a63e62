/**
 * The site of a node that builds: a builder (port.ts), and the images on this machine's disk (sandbox/images/store.ts).
 *
 *     <directory>/contexts/<build>/   the files of a build under way. The start removes the files of a killed service.
 */
import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import * as Stream from "effect/Stream";
import { thrownText } from "../../ground/thrown.ts";
import type { BuildBase } from "../../domain/environment/base-image.ts";
import type { BuildSource } from "../../domain/environment/environment-source.ts";
import { buildImageName, buildOfImageName } from "../../domain/environment/image.ts";
import { taggedReference } from "../../domain/environment/registry-reference.ts";
import type { BuiltImage } from "../../machines/environment-build.ts";
import type { ImageFacts } from "../../sandbox/images/image.ts";
import { type AskRegistry, RegistryFailure } from "../../sandbox/images/registry/client.ts";
import { lookUp as lookUpTag, publicRegistries } from "../../sandbox/images/registry/lookup.ts";
import type { RegistryImages } from "../../sandbox/images/registry/images.ts";
import type { NamedImage } from "../../sandbox/images/image.ts";
import type { ImageStore } from "../../sandbox/images/store.ts";
import { UnpackFailure } from "../../sandbox/images/unpack/failure.ts";
import { prepareRoot } from "../../sandbox/images/unpack/mount-points.ts";
import { removeTree } from "../../sandbox/machine/disk/run-directory.ts";
import { namedBases } from "../bases.ts";
import { readDockerfile } from "../context-file.ts";
import { writeContext } from "./context.ts";
import { BuildError, type BuildLimits, type BuildRequest, EnvironmentBuilder } from "../port.ts";
import { BaseUnknown, BuildSite, type CollectRequest, type SiteEvent, type SiteRequest } from "./port.ts";

export interface ImageSiteOptions {
  readonly store: ImageStore;
  /** This site's own directory, on a disk. */
  readonly directory: string;
  readonly limits: BuildLimits;
  /** Hosts that builds may reach. */
  readonly egressAllow: readonly string[];
  /** The files of all images together, in bytes (PLATFORM_IMAGES_MAX_MB). */
  readonly imagesBytes: number;
  /** Digests of images that sandboxes on this machine use. */
  readonly inUse: () => Promise<ReadonlySet<string>>;
  /** Where images are pushed for sandboxes elsewhere. Null means nowhere. */
  readonly registry: RegistryImages | null;
  /** How registries are asked for the digests of tags. Tests do without a network. */
  readonly askRegistry?: AskRegistry;
}

const builtImage = ({ digest, bytes, files }: ImageFacts): BuiltImage => ({ digest, bytes, files });

const toBuildError = (error: unknown): BuildError => {
  if (error instanceof BuildError) return error;
  const message = thrownText(error);
  return new BuildError({
    failure:
      error instanceof UnpackFailure
        ? { code: "image_unusable", problem: message }
        : { code: "builder_unavailable", problem: message },
  });
};

const attempt = <A>(work: () => Promise<A>) => Effect.tryPromise({ try: work, catch: toBuildError });

/** A directory that is removed when the scope closes. */
const temporary = (make: () => Promise<string>) =>
  Effect.acquireRelease(attempt(make), (directory) => Effect.promise(() => removeTree(directory)));

/**
 * The images to remove: of builds that are gone, and of those that need not stay, the least recently used first, until all are
 * within the budget.
 * Several names of one image count once.
 */
const excess = (
  images: readonly NamedImage[],
  { kept, gone }: Pick<CollectRequest, "kept" | "gone">,
  budget: number,
): readonly NamedImage[] => {
  const names = new Map<string, number>();
  let bytes = 0;
  for (const { tree: image } of images) {
    if (!names.has(image.digest)) bytes += image.bytes;
    names.set(image.digest, (names.get(image.digest) ?? 0) + 1);
  }
  const removals: NamedImage[] = [];
  for (const image of images.toSorted((one, other) => one.usedMs - other.usedMs)) {
    const build = buildOfImageName(image.name);
    if (build === null || kept.has(build) || (bytes <= budget && !gone.has(build))) continue;
    const remaining = (names.get(image.tree.digest) ?? 1) - 1;
    names.set(image.tree.digest, remaining);
    if (remaining === 0) bytes -= image.tree.bytes;
    removals.push(image);
  }
  return removals;
};

/** @returns a function that asks a registry for the digest of a tag */
const baseLookup = ({ egressAllow, askRegistry: ask = publicRegistries() }: ImageSiteOptions) =>
  Effect.fnUntraced(function* (reference: string): Effect.fn.Return<string, BaseUnknown> {
    const tag = taggedReference(reference);
    if (tag === null)
      return yield* new BaseUnknown({ message: `${reference} is no tag of an image`, waitMs: null });
    return yield* Effect.tryPromise({
      try: () => lookUpTag(tag, { egressAllow, ask }),
      catch: (error) =>
        new BaseUnknown({
          message: thrownText(error),
          waitMs: error instanceof RegistryFailure ? error.waitMs : null,
        }),
    });
  });

/** @returns a function that names the tags from which a Dockerfile builds; the builder reports faults of the file */
const makeBasesIn = (lookUp: ReturnType<typeof baseLookup>) =>
  Effect.fnUntraced(function* (request: Parameters<typeof readDockerfile>[0], source: BuildSource) {
    const dockerfile = yield* Effect.option(attempt(() => readDockerfile(request)));
    if (Option.isNone(dockerfile)) return [];
    return yield* Effect.forEach(
      namedBases(dockerfile.value, source),
      (reference) =>
        lookUp(reference).pipe(
          Effect.orElseSucceed(() => null),
          Effect.map((digest): BuildBase => ({ reference, digest })),
        ),
      // A Dockerfile has at most BASES_MAX. Each look has a time limit.
      { concurrency: "unbounded" },
    );
  });

/** Pushes a new image. A failure fails no build: the start of a sandbox tries again, and reports it. */
const pushing = (
  registry: RegistryImages,
  id: string,
  report: (event: SiteEvent) => Effect.Effect<void>,
): Effect.Effect<void> =>
  Effect.tryPromise(() => registry.ensure(buildImageName(id))).pipe(
    Effect.match({
      onSuccess: (reference) => `The image is in the registry as ${reference ?? "nothing"}.\n`,
      onFailure: ({ cause }) =>
        `The image could not be pushed to ${registry.place}: ${thrownText(cause)}. The next sandbox that needs it tries again.\n`,
    }),
    Effect.flatMap((text) => report({ kind: "log", text })),
  );

/** Removes images from the registry, where it allows that. Others stay there until its operator removes them. */
const forgetting = (registry: RegistryImages, names: readonly string[]): Effect.Effect<void> =>
  Effect.forEach(
    names,
    (name) =>
      Effect.tryPromise(() => registry.forget(name)).pipe(
        Effect.flatMap((outcome) =>
          outcome === "not_supported"
            ? Effect.logInfo("the registry keeps an image: it does not let images be removed", {
                image: name,
              })
            : Effect.void,
        ),
        Effect.catch(({ cause }) =>
          Effect.logWarning("an image could not be removed from the registry", cause, { image: name }),
        ),
      ),
    { discard: true },
  );

/** @returns a function that makes room on the disk */
const collecting = ({ store, imagesBytes, registry, inUse }: ImageSiteOptions) =>
  Effect.fnUntraced(function* ({ now, ...builds }: CollectRequest) {
    const removals = excess(yield* Effect.promise(() => store.list()), builds, imagesBytes);
    // A sandbox of another name of the same image pushes it again.
    if (registry !== null)
      yield* forgetting(
        registry,
        removals.map(({ name }) => name),
      );
    yield* Effect.promise(() => Promise.all(removals.map(({ name }) => store.remove(name))));
    // Also what lost its name before: a new build of the same name, or an operator's removal.
    yield* Effect.tryPromise(async () => store.prune(await inUse(), now)).pipe(
      Effect.catch(({ cause }) => Effect.logWarning("unused images stay", cause)),
    );
    return removals.flatMap(({ name }) => buildOfImageName(name) ?? []);
  });

/** Runs a builder. @returns the facts of the image; its files are in the output */
const runBuilder =
  (builder: EnvironmentBuilder["Service"]) =>
  (request: BuildRequest, report: (event: SiteEvent) => Effect.Effect<void>) =>
    Stream.runFoldEffect(
      builder.build(request),
      (): Option.Option<ImageFacts> => Option.none(),
      (former, event) =>
        event.kind === "built"
          ? Effect.succeed(Option.some({ digest: event.digest, ...event.config }))
          : Effect.as(report(event), former),
    );

const make = Effect.fnUntraced(function* (options: ImageSiteOptions) {
  const { store, directory, limits } = options;
  const builder = yield* EnvironmentBuilder;
  const contexts = join(directory, "contexts");
  yield* attempt(async () => {
    await removeTree(contexts);
    await mkdir(contexts, { recursive: true, mode: 0o700 });
  });

  const lookUp = baseLookup(options);
  const basesIn = makeBasesIn(lookUp);

  const find = (id: string) =>
    Effect.map(
      attempt(() => store.find(buildImageName(id))),
      (image) => image && builtImage(image),
    );

  const build = Effect.fnUntraced(function* (
    { id, projectId, source, secrets, pull, files }: SiteRequest,
    report: (event: SiteEvent) => Effect.Effect<void>,
  ) {
    const image = yield* find(id);
    if (image !== null) return image;
    const context = yield* temporary(() => mkdtemp(join(contexts, `${id}-`)));
    yield* writeContext(context, files, { bytes: limits.diskBytes, files: limits.imageFiles });
    yield* report({ kind: "context" });
    const output = yield* temporary(() => store.openDraft());
    const place = {
      contextDirectory: context,
      dockerfile:
        source.context === "" ? source.dockerfile : source.dockerfile.slice(source.context.length + 1),
    };
    const bases = yield* basesIn(place, source);
    if (bases.length > 0) yield* report({ kind: "bases", bases });
    const request: BuildRequest = {
      id,
      ...place,
      target: source.target,
      args: source.args,
      secrets,
      layerStore: projectId,
      egressAllow: options.egressAllow,
      // A digest that is on record must be that of the image that is used.
      pull: bases.some(({ digest }) => digest !== null) ? "newer" : pull,
      limits,
      output,
    };
    const facts = yield* Effect.flatMap(
      runBuilder(builder)(request, report),
      Option.match({
        onNone: () => Effect.die(new Error("a build ended without an image")),
        onSome: Effect.succeed,
      }),
    );
    yield* attempt(() => prepareRoot(join(output, "root")));
    const result = yield* attempt(() => store.keep(output, buildImageName(id), facts));
    if (options.registry !== null) yield* pushing(options.registry, id, report);
    return builtImage(result);
  }, Effect.scoped);

  return BuildSite.of({
    builder: builder.name,
    imageName: buildImageName,
    build,
    lookUp,
    find: (id) => Effect.orDie(find(id)),
    held: Effect.promise(async () =>
      (await store.list()).flatMap(({ name }) => buildOfImageName(name) ?? []),
    ),
    noteUse: (id, now) => Effect.promise(() => store.noteUse(buildImageName(id), now)),
    collect: collecting(options),
  });
});

export const imageSite = (
  options: ImageSiteOptions,
): Layer.Layer<BuildSite, BuildError, EnvironmentBuilder> => Layer.effect(BuildSite, make(options));

/** The site of a node that builds nothing (PLATFORM_BUILDER=none). */
export const noSite: Layer.Layer<BuildSite> = Layer.succeed(
  BuildSite,
  BuildSite.of({
    builder: null,
    imageName: buildImageName,
    build: () =>
      Effect.fail(
        new BuildError({
          failure: {
            code: "builder_unavailable",
            problem: "PLATFORM_BUILDER is none",
          },
        }),
      ),
    lookUp: () => new BaseUnknown({ message: "this node builds no images", waitMs: null }),
    find: () => Effect.succeed(null),
    held: Effect.succeed([]),
    noteUse: () => Effect.void,
    collect: () => Effect.succeed([]),
  }),
);

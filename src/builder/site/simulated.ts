/**
 * The twin of every site: it reads the whole context, then builds at once, or does what a test told it. Its images survive
 * the service, as a disk does. Time is Effect's Clock.
 */
import { createHash } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { BuildFailure } from "../../domain/environment/build-failure.ts";
import { buildImageName } from "../../domain/environment/image.ts";
import type { BuiltImage } from "../../machines/environment-build.ts";
import { BuildError } from "../port.ts";
import { namedBases } from "../bases.ts";
import { parseDockerfile } from "../../domain/environment/dockerfile.ts";
import { BaseUnknown, BuildSite, type SiteRequest } from "./port.ts";

/** What becomes of a build. */
export interface SimulatedSitePlan {
  /** Milliseconds of the steps, and of the copying of the image. */
  readonly stepsMs: number;
  readonly exportMs: number;
  /** Null if it succeeds. */
  readonly failure: BuildFailure | null;
}

const AT_ONCE: SimulatedSitePlan = { stepsMs: 0, exportMs: 0, failure: null };

/** A site and what a test sees and sets of it. */
export class SimulatedSite {
  /** By build. */
  readonly images = new Map<string, BuiltImage>();
  /** Builds under way. */
  readonly running = new Set<string>();
  /** Called for each build. */
  plan: (request: SiteRequest) => SimulatedSitePlan = () => AT_ONCE;
  /** What tags stand for, by reference. A tag that is not here is unknown to its registry. */
  readonly tags = new Map<string, string>();
  /** References that were looked up, in order. */
  readonly looks: string[] = [];
  /** How many images are kept beside those that must stay. */
  budget = Number.POSITIVE_INFINITY;

  readonly service = BuildSite.of({
    builder: "simulated",
    imageName: buildImageName,
    find: (id) => Effect.sync(() => this.images.get(id) ?? null),
    lookUp: (reference) =>
      Effect.suspend(() => {
        this.looks.push(reference);
        const digest = this.tags.get(reference);
        return digest === undefined
          ? new BaseUnknown({ message: `no registry has ${reference}`, waitMs: null })
          : Effect.succeed(digest);
      }),
    held: Effect.sync(() => [...this.images.keys()]),
    noteUse: () => Effect.void,
    collect: ({ kept, gone }) =>
      Effect.sync(() => {
        const free = [...this.images.keys()].filter((id) => !kept.has(id) && !gone.has(id));
        const deletedIds = [...gone].filter((id) => this.images.has(id));
        const removals = [...deletedIds, ...free.slice(0, Math.max(0, free.length - this.budget))];
        for (const id of removals) this.images.delete(id);
        return removals;
      }),
    build: (request, report) =>
      Effect.acquireUseRelease(
        Effect.sync(() => void this.running.add(request.id)),
        () => this.#build(request, report),
        () => Effect.sync(() => void this.running.delete(request.id)),
      ),
  });

  readonly #build = Effect.fnUntraced(function* (
    this: SimulatedSite,
    request: SiteRequest,
    report: Parameters<(typeof BuildSite)["Service"]["build"]>[1],
  ) {
    const former = this.images.get(request.id);
    if (former !== undefined) return former;
    const content = createHash("sha256");
    let dockerfile = "";
    for (let after: string | null = null, isMore = true; isMore;) {
      const page: Effect.Success<ReturnType<SiteRequest["files"]>> = yield* request.files(after);
      for (const { path, content: bytes } of page.entries) {
        content.update(path).update(bytes);
        if (path.endsWith("Dockerfile")) dockerfile = Buffer.from(bytes).toString("utf8");
      }
      after = page.next;
      isMore = after !== null;
    }
    const { stepsMs, exportMs, failure } = this.plan(request);
    yield* report({ kind: "context" });
    const stages = parseDockerfile(dockerfile);
    const references = stages.kind === "stages" ? namedBases(stages, request.source) : [];
    const bases = references.map((reference) => ({ reference, digest: this.tags.get(reference) ?? null }));
    if (bases.length > 0) yield* report({ kind: "bases", bases });
    yield* report({ kind: "step", step: 1, line: 1, instruction: "FROM scratch" });
    yield* Effect.sleep(stepsMs);
    if (failure !== null) return yield* new BuildError({ failure });
    yield* report({ kind: "exporting" });
    yield* Effect.sleep(exportMs);
    const image = { digest: `sha256:${content.digest("hex")}`, bytes: 0, files: 1 };
    this.images.set(request.id, image);
    return image;
  });
}

/** A site of its own for each build of the layer. */
export const simulatedSite: Layer.Layer<BuildSite> = Layer.sync(BuildSite, () => new SimulatedSite().service);

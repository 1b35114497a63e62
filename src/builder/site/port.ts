/**
 * The port to what one node builds and keeps: the images of environments. A site takes the files of a commit page by page,
 * builds, and keeps the result under the id of the build.
 *
 *  S1 An image is found under its id only when it is complete. It stays until `collect` removes it.
 *  S2 A build that fails or is interrupted leaves nothing. A build whose image is here already builds nothing.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type { BuildBase } from "../../domain/environment/base-image.ts";
import type { BuildSource } from "../../domain/environment/environment-source.ts";
import type { TreePage } from "../../git/port.ts";
import type { BuiltImage } from "../../machines/environment-build.ts";
import type { BuildError, BuildEvent } from "../port.ts";

export interface SiteRequest {
  /** A lower-case UUID. */
  readonly id: string;
  /** Builds of one project share layers. */
  readonly projectId: string;
  readonly source: BuildSource;
  /** The values of the secrets that the source names. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Whether the registries are asked again for base images that are here. */
  readonly pull: "missing" | "newer";
  /** The files of the context, behind a path. */
  readonly files: (after: string | null) => Effect.Effect<TreePage, BuildError>;
}

/** What a site reports while it builds. */
export type SiteEvent =
  | { readonly kind: "context" }
  /** The tags from which the image is made, as they are now. Only for a Dockerfile with base images in registries. */
  | { readonly kind: "bases"; readonly bases: readonly BuildBase[] }
  | Exclude<BuildEvent, { readonly kind: "built" }>;

/** A registry has not said what a tag stands for. The message is for people. */
export class BaseUnknown extends Schema.TaggedError<BaseUnknown>()("BaseUnknown", {
  message: Schema.String,
  /** The registry asks not to be asked again for so long, ms. */
  waitMs: Schema.NullOr(Schema.Finite),
}) {}

export interface CollectRequest {
  /** Builds whose images must stay: sandboxes use them, or would use them next. */
  readonly kept: ReadonlySet<string>;
  /** Builds whose images go now, whatever room there is: their projects are gone. */
  readonly gone: ReadonlySet<string>;
  /** ms since the epoch. */
  readonly now: number;
}

export class BuildSite extends Context.Service<
  BuildSite,
  {
    /** What builds here. Null if nothing does, and Dockerfiles have no effect. */
    readonly builder: string | null;
    /** Builds and keeps an image. Interrupt it to cancel the build. */
    readonly build: (
      request: SiteRequest,
      report: (event: SiteEvent) => Effect.Effect<void>,
    ) => Effect.Effect<BuiltImage, BuildError>;
    /** Asks a registry what a tag stands for now, as a build here would find it. @param reference with registry and tag */
    readonly lookUp: (reference: string) => Effect.Effect<string, BaseUnknown>;
    /** The image of a build. Null if it is not here. */
    readonly find: (id: string) => Effect.Effect<BuiltImage | null>;
    /** The builds that have an image here. */
    readonly held: Effect.Effect<readonly string[]>;
    /** The name under which a sandbox's spec asks for the image of a build. */
    readonly imageName: (id: string) => string;
    /** Notes that a sandbox boots on the image of a build: it is removed later than others. */
    readonly noteUse: (id: string, now: number) => Effect.Effect<void>;
    /** Makes room: removes images that exceed the budget, least recently used first. @returns the builds that had them */
    readonly collect: (request: CollectRequest) => Effect.Effect<readonly string[]>;
  }
>()("platform/builder/BuildSite") {}

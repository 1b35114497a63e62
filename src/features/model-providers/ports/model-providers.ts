/** The providers of models of accounts, projects and persons, with their sealed keys. */
import * as Context from "effect/Context";
import * as Schema from "effect/Schema";
import type { AccountProvider, ModelUser } from "../../../domain/sandbox/account-provider.ts";
import type { Prices } from "../../../domain/model/prices.ts";
import type { ProviderPlace } from "../rules/provider.ts";
import type { Fenced, Stored, StoreError } from "../../../store/ports/journal.ts";
import type * as Effect from "effect/Effect";

export interface SealedKey {
  /** Counted up with each write of the row. */
  readonly version: number;
  readonly envelope: Uint8Array;
}

/** A call that the provider refused. */
export interface Refusal {
  readonly at: number;
  /** A sentence, with the provider's own words. */
  readonly text: string;
}

export interface ModelProvider extends AccountProvider, ProviderPlace {
  readonly id: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly hasKey: boolean;
  /** Own prices of its models. */
  readonly prices: Prices;
  readonly sealed: SealedKey;
  /** When the provider last accepted what the row has. Null if it was saved without asking. */
  readonly triedAt: number | null;
  /** The last one, if no call and no try succeeded since. */
  readonly refusal: Refusal | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What may change. The name is part of sessions' choices of models, so it stays. */
export type ProviderChange = Pick<
  ModelProvider,
  "baseUrl" | "models" | "hasKey" | "prices" | "sealed" | "triedAt"
>;

export type NewProvider = Omit<ModelProvider, "owner" | "refusal" | "createdAt" | "updatedAt">;

export interface SessionOfSandbox {
  readonly sessionId: string;
  readonly projectId: string;
}

/** The providers of one name that a sandbox may use. */
export interface ProvidersOfSandbox extends SessionOfSandbox {
  readonly origin: "session" | "trigger";
  readonly createdBy: string;
  /** The narrowest owner's first. One of a person is that of the session's person, who may have suspended it. */
  readonly providers: readonly ModelProvider[];
}

/** The owner has a provider of this name. */
export class NameTaken extends Schema.TaggedError<NameTaken>()("NameTaken", { name: Schema.String }) {}
export class ProvidersFull extends Schema.TaggedError<ProvidersFull>()("ProvidersFull", {
  limit: Schema.Finite,
}) {}

export class ModelProviders extends Context.Service<
  ModelProviders,
  {
    readonly create: (
      provider: NewProvider & { readonly now: number },
    ) => Effect.Effect<ModelProvider, StoreError | NameTaken | ProvidersFull>;
    /** All of an owner, the oldest first. */
    readonly list: (place: ProviderPlace) => Stored<readonly ModelProvider[]>;
    /** All that a session may use, the narrowest owner's first, of each the oldest first. */
    readonly usable: (user: ModelUser) => Stored<readonly ModelProvider[]>;
    readonly get: (place: ProviderPlace, id: string) => Stored<ModelProvider | null>;
    /** Fenced unless the row has the version before `change.sealed.version`. Null if the owner has none with this id. A refusal is forgotten. */
    readonly change: (
      place: ProviderPlace,
      id: string,
      change: ProviderChange & { readonly now: number },
    ) => Effect.Effect<ModelProvider | null, StoreError | Fenced>;
    /** Whether there was one. Its usage stays. */
    readonly remove: (place: ProviderPlace, id: string) => Stored<boolean>;
    /** Stores the last refusal, or null after a call that succeeded. */
    readonly noteRefusal: (id: string, refusal: Refusal | null) => Stored<void>;
    /** The providers of this name for a sandbox's session. Null without a provider, and if the sandbox has ended. */
    readonly ofSandbox: (sandboxId: string, name: string) => Stored<ProvidersOfSandbox | null>;
  }
>()("platform/model-providers/ModelProviders") {}

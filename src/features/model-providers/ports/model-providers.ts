/** The providers of models of accounts, with their sealed keys. */
import * as Context from "effect/Context";
import * as Schema from "effect/Schema";
import type { AccountProvider } from "../../../domain/sandbox/account-provider.ts";
import type { Prices } from "../rules/prices.ts";
import type { Fenced, Stored, StoreError } from "../../../store/ports/journal.ts";
import type * as Effect from "effect/Effect";

export interface SealedKey {
  /** Counted up with each write of the row. */
  readonly version: number;
  readonly envelope: Uint8Array;
}

export interface ModelProvider extends AccountProvider {
  readonly id: string;
  readonly accountId: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly hasKey: boolean;
  /** Own prices of its models. */
  readonly prices: Prices;
  readonly sealed: SealedKey;
  /** When the provider last accepted what the row has. Null: it was saved without. */
  readonly triedAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What may change. The name is part of sessions' choices of models, so it stays. */
export type ProviderChange = Pick<
  ModelProvider,
  "baseUrl" | "models" | "hasKey" | "prices" | "sealed" | "triedAt"
>;

export interface SessionOfSandbox {
  readonly sessionId: string;
  readonly projectId: string;
}

/** A provider as one sandbox uses it. */
export interface ProviderOfSandbox extends SessionOfSandbox {
  readonly provider: ModelProvider;
}

/** The account has a provider of this name. */
export class NameTaken extends Schema.TaggedError<NameTaken>()("NameTaken", { name: Schema.String }) {}
export class ProvidersFull extends Schema.TaggedError<ProvidersFull>()("ProvidersFull", {
  limit: Schema.Finite,
}) {}

export class ModelProviders extends Context.Service<
  ModelProviders,
  {
    readonly create: (
      provider: Omit<ModelProvider, "createdAt" | "updatedAt"> & { readonly now: number },
    ) => Effect.Effect<ModelProvider, StoreError | NameTaken | ProvidersFull>;
    /** All of an account, the oldest first: a session without a choice uses the first. */
    readonly list: (accountId: string) => Stored<readonly ModelProvider[]>;
    readonly get: (accountId: string, id: string) => Stored<ModelProvider | null>;
    /** Fenced unless the row has the version before `change.sealed.version`. Null: the account has none with this id. */
    readonly change: (
      accountId: string,
      id: string,
      change: ProviderChange & { readonly now: number },
    ) => Effect.Effect<ModelProvider | null, StoreError | Fenced>;
    /** Whether there was one. Its usage stays. */
    readonly remove: (accountId: string, id: string) => Stored<boolean>;
    /** The provider of this name in the account of a sandbox's session. Null: none, or the sandbox has ended. */
    readonly ofSandbox: (sandboxId: string, name: string) => Stored<ProviderOfSandbox | null>;
    /** Null: the sandbox has ended. */
    readonly sessionOf: (sandboxId: string) => Stored<SessionOfSandbox | null>;
  }
>()("platform/model-providers/ModelProviders") {}

/** People's own subscriptions at the makers of runtimes, sealed, and the sandboxes that have them. */
import * as Context from "effect/Context";
import type { Stored } from "../../../store/ports/journal.ts";

/** The person whose own it is. */
export interface SubscriptionOwner {
  readonly accountId: string;
  readonly userId: string;
}

export interface Sealed {
  /** Counted up with each renewal. */
  readonly version: number;
  readonly envelope: Uint8Array;
}

export interface Subscription extends SubscriptionOwner {
  /** Another one each time that the person saves it. */
  readonly id: string;
  /** The runtime's name. */
  readonly runtime: string;
  readonly sealed: Sealed;
  /** Instants in ms since the epoch. */
  readonly savedAt: number;
  /** When a sandbox last gave a renewed file back. */
  readonly renewedAt: number | null;
  /** When a sandbox last started with it. */
  readonly usedAt: number | null;
}

/** A sandbox that runs, and may have a subscription. */
export interface Holder {
  readonly sandboxId: string;
  readonly sessionId: string;
}

export class Subscriptions extends Context.Service<
  Subscriptions,
  {
    /** Replaces the owner's one for the runtime. */
    readonly save: (
      subscription: Omit<Subscription, "savedAt" | "renewedAt" | "usedAt"> & { readonly now: number },
    ) => Stored<Subscription>;
    /** All of a person, by runtime. */
    readonly list: (owner: SubscriptionOwner) => Stored<readonly Subscription[]>;
    /** Whether there was one. */
    readonly remove: (id: string) => Stored<boolean>;
    /** Whether the row had the version before `sealed.version`. */
    readonly renew: (
      id: string,
      renewal: { readonly sealed: Sealed; readonly now: number },
    ) => Stored<boolean>;
    /** Notes that a sandbox is about to get it. `gone`: it was saved anew or removed meanwhile, and nothing is noted. */
    readonly deliver: (
      sandboxId: string,
      subscription: Pick<Subscription, "id" | "userId" | "runtime">,
      now: number,
    ) => Stored<"new" | "known" | "gone">;
    /** The sandbox is without it. */
    readonly forgetDelivery: (sandboxId: string) => Stored<void>;
    /** The subscription that a running sandbox got, as it is kept now. Null if it got none, or if it was saved anew or removed since. */
    readonly deliveredTo: (sandboxId: string) => Stored<Subscription | null>;
    /** The running sandboxes with a subscription of a session, and of those that its agent started. */
    readonly holdersBelow: (sessionId: string) => Stored<readonly Holder[]>;
    /** The running sandboxes with a subscription of a person for this runtime, including one that was saved anew or removed since. */
    readonly holders: (userId: string, runtime: string) => Stored<readonly Holder[]>;
  }
>()("platform/subscriptions/Subscriptions") {}

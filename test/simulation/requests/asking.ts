/** How users ask: who they are, what they ask about, and what an answer means. */
import * as Cause from "effect/Cause";
import type * as Effect from "effect/Effect";
import type { Caller } from "../../../src/http/api/access.ts";
import { Internal, Unavailable } from "../../../src/http/api/errors.ts";
import type { Principal } from "../../../src/store/ports/people/identity.ts";
import type { Asked } from "../ledger.ts";
import type { Node } from "../world/nodes.ts";
import { ACCOUNTS, USERS } from "../oracles/settled.ts";
import type { Services } from "../world.ts";

/** What a handler runs. */
export type Endpoint = Effect.Effect<unknown, unknown, Services | Caller>;

export const callerOf = (account: number): Principal => ({
  tokenId: "00000000-0000-7000-8000-000000000031",
  kind: "access",
  origin: "user",
  accountId: ACCOUNTS[account === 0 ? 0 : 1],
  user: { id: USERS[account === 0 ? 0 : 1], name: "user" },
  accountRole: "owner",
  projectId: null,
  sessionId: null,
  sandboxId: null,
  expiresAt: null,
  openedBy: null,
  reachEndsAt: null,
});

/** Whether the service refused, or could not say. */
export const refusal = (cause: Cause.Cause<unknown>): "refused" | "unknown" => {
  const error = Cause.squash(cause);
  const cannotSay = error instanceof Unavailable || error instanceof Internal;
  return Cause.hasDies(cause) || cannotSay ? "unknown" : "refused";
};

export interface Subject {
  readonly account: number;
  /** The session, the fire or the change request. */
  readonly id: string | null;
  /** Hears the answer, if it is done. */
  readonly done?: (value: unknown) => void;
  /** The request goes to another node than this one. */
  readonly elsewhere?: Node;
  /** Hears that the service could not say. */
  readonly unanswered?: () => void;
}

/** Asks the next node. @returns the request, whose answer comes later. */
export type Ask = (kind: Asked["kind"], about: Subject, effect: Endpoint) => Asked;

/** The account of a row, as a caller has it. */
export const accountOf = ({ accountId }: { readonly accountId: string }): number =>
  accountId === ACCOUNTS[0] ? 0 : 1;

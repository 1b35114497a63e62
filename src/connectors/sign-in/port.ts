/**
 * The port to signing in at the servers of connectors (OAuth).
 *
 *  V1 Every request goes to a host that was resolved and checked, follows no redirect, and is bounded in time and size: those
 *     for metadata, too, whose addresses a server chooses.
 *  V2 A code, a refresh token and a client's secret go to the token or revocation endpoint of their own server only.
 *  V3 No code, token or secret is part of a fault.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { ConnectorKind } from "../../domain/connector/connector-kind.ts";
import type { Grant, OAuthClient, PendingSignIn } from "../../domain/connector/connector-grant.ts";

/** Why there is no sign-in, or no token. */
export interface SignInFault {
  readonly _tag: "SignInFault";
  /**
   * `denied`: the person or the server said no. `refused`: the server does not accept what the service has, or its answer is not
   * right. `unreachable`: it does not answer now. `unsupported`: it does not offer what is needed. `needs_client`: it
   * registers no clients, and none is stored.
   */
  readonly kind: "denied" | "refused" | "unreachable" | "unsupported" | "needs_client";
  /** A sentence without its full stop. It may quote the server. */
  readonly why: string;
}

/** The connector that is signed in to. */
interface SignInAt {
  readonly kind: ConnectorKind;
  /** Of the connector. */
  readonly url: string;
  /** The authorization server that the manifest names. Null if the connector's server says it. */
  readonly issuer: string | null;
  /** What the manifest asks for. Null means what the server asks for itself. */
  readonly scope: string | null;
}

export interface NewSignIn extends SignInAt {
  /** If null, the service registers itself. */
  readonly client: OAuthClient | null;
  /** How a client that registers itself proves itself (OAuthClient). */
  readonly isPlain: boolean;
  readonly redirectUri: string;
  readonly state: string;
  /** Of PKCE. */
  readonly verifier: string;
}

type Answered<A> = Effect.Effect<A, SignInFault>;

export interface SignIns {
  /** Finds the server's authorization server, registers if needed, and says where the person's browser goes. */
  readonly begin: (wish: NewSignIn) => Answered<PendingSignIn>;
  /** @param callback the redirect URI with the query that the browser brought. */
  readonly finish: (pending: PendingSignIn, callback: URL) => Answered<Grant>;
  /** The first token of a client that signs in as itself. */
  readonly fetchToken: (wish: SignInAt & { readonly client: OAuthClient }) => Answered<Grant>;
  /** The next tokens. A fault `refused` says that there will never be any. */
  readonly renew: (grant: Grant) => Answered<Grant>;
  /** Tells the server that its tokens are not used any more, if it offers that. */
  readonly revoke: (grant: Grant) => Answered<void>;
}

const none = Effect.fail<SignInFault>({
  _tag: "SignInFault",
  kind: "unreachable",
  why: "This service asks no servers",
});

/** The way to sign in. Without one, no server is reached. */
export const ConnectorSignIns = Context.Reference<SignIns>("platform/connectors/ConnectorSignIns", {
  defaultValue: () => ({
    begin: () => none,
    finish: () => none,
    fetchToken: () => none,
    renew: () => none,
    revoke: () => none,
  }),
});

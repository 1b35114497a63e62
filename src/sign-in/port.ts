/**
 * The port to sign-in providers.
 *
 *  L1 A flow is bound to its state, nonce and code verifier. An answer that does not fit all of them is refused.
 *  L2 An identity comes from an answer that the provider signed, or that it gave to the service itself.
 *  L3 No code, token or secret is part of a fault.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { ProviderId, SignInCause } from "../domain/person/sign-in.ts";

/** The secrets of one flow, which its browser keeps sealed. */
export interface FlowSecrets {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE. */
  readonly verifier: string;
}

/** Who has signed in, according to the provider. */
export interface ProvidedPerson {
  readonly issuer: string;
  readonly subject: string;
  /** A name to show, if she is new. */
  readonly name: string;
  /** The address that the provider verified. Null if it says none. */
  readonly email: string | null;
  /** Why the settings do not let her in at all. Null if they do. */
  readonly entryRefusal: SignInCause | null;
  /** Why the settings do not let her sign up without an invitation. Null if they do. */
  readonly signUpRefusal: SignInCause | null;
}

/** Why a sign-in did not succeed. */
export interface ProviderFault {
  readonly _tag: "ProviderFault";
  /** `denied`: the person or the provider said no. `refused`: the answer is not right. `unreachable`: it does not answer. */
  readonly kind: "denied" | "refused" | "unreachable";
  /** For the log: what was wrong, with the provider's own words. */
  readonly why: string;
  /** The provider's code of its refusal, for the page. Null if it gave none. */
  readonly code: string | null;
}

export interface SignInProvider {
  readonly id: ProviderId;
  /** The issuer of the identities that it gives. */
  readonly issuer: string;
  /** As in "Sign in with …". */
  readonly label: string;
  /** Where the browser goes. */
  readonly begin: (secrets: FlowSecrets, redirectUri: string) => Effect.Effect<string, ProviderFault>;
  /**
   * Who came back.
   *
   * @param callback the redirect URI with the query that the browser brought.
   */
  readonly finish: (callback: URL, secrets: FlowSecrets) => Effect.Effect<ProvidedPerson, ProviderFault>;
}

/** Those that the operator has set up. The default is none. */
export const SignInProviders = Context.Reference<readonly SignInProvider[]>("platform/sign-in/Providers", {
  defaultValue: () => [],
});

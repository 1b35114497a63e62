/**
 * The use of a connector's credential: a request to its server that carries it, with a token that is renewed on the way.
 *
 *  Y1 A token is renewed before it ends, or after the server answered 401, and at most once for a use.
 *  Y2 A use is repeated only after a 401, which says that the server did nothing. It is repeated once.
 *  Y3 The mask of an answer covers everything that this use could have sent: the tokens from before and after a renewal, too.
 *  Y4 A paused copy uses none (ground/pause.ts): what its original asks must not be asked twice, and a renewal would end the
 *     original's tokens.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type { Connector } from "../../domain/connector/connector.ts";
import { credentialMask, secretsOfValue } from "../../domain/connector/connector-credential.ts";
import { mustRenew, grantSecrets, type Grant } from "../../domain/connector/connector-grant.ts";
import type { Redactor } from "../../domain/secret/redactor.ts";
import { Pause, PAUSED } from "../../ground/pause.ts";
import type { ServerFault } from "../../connectors/port.ts";
import type { Credential, HeldGrant } from "./credentials.ts";
import { renewGrant, type CredentialFault } from "./renewal.ts";

/** A use is not repeated later than this: both together stay below the time after which a call counts as lost. */
const REPEAT_WITHIN_MS = 25_000;

/** A server's answer, and a mask for everything that was sent to it. */
export interface Used<A> {
  readonly answer: Result.Result<A, ServerFault | CredentialFault>;
  readonly mask: Redactor;
}

type Use<A, R> = (value: string | null) => Effect.Effect<A, ServerFault, R>;

const isUnauthorized = (fault: ServerFault): boolean => fault.status === 401 && !fault.isUnknown;

/** Uses a credential. It never fails: a credential that cannot be renewed is an answer, too. */
export const withCredential = Effect.fnUntraced(function* <A, R>(
  connector: Connector,
  credential: Credential,
  use: Use<A, R>,
) {
  if ((yield* Pause).isOn) {
    const pausedFault: CredentialFault = { _tag: "CredentialFault", message: PAUSED, isFinal: false };
    return { answer: Result.fail(pausedFault), mask: credentialMask([]) } satisfies Used<A>;
  }
  if (credential.kind !== "grant") {
    const value = credential.kind === "value" ? credential.value : null;
    const answer: Used<A>["answer"] = yield* Effect.result(use(value));
    return {
      answer,
      mask: credentialMask(value === null ? [] : secretsOfValue(connector.auth, value)),
    } satisfies Used<A>;
  }
  const secrets: string[] = [];
  const note = (grant: Grant | null) => void secrets.push(...(grant === null ? [] : grantSecrets(grant)));
  const answer = yield* Effect.result(withGrant(connector, credential.held, { use, note }));
  return { answer, mask: credentialMask([...new Set(secrets)]) } satisfies Used<A>;
});

interface Using<A, R> {
  readonly use: Use<A, R>;
  /** Hears of all tokens, so that they are masked (Y3). */
  readonly note: (grant: Grant | null) => void;
}

const withGrant = Effect.fnUntraced(function* <A, R>(
  connector: Connector,
  heldGrant: HeldGrant,
  { use, note }: Using<A, R>,
) {
  note(heldGrant.grant);
  const now = yield* Clock.currentTimeMillis;
  const isEarly = heldGrant.grant === null || mustRenew(heldGrant.grant, now);
  const first = isEarly ? yield* renewedOr(connector, heldGrant) : heldGrant.grant;
  note(first);
  const answer = yield* Effect.result(use(first.accessToken));
  if (Result.isSuccess(answer)) return answer.success;
  if (isEarly || !isUnauthorized(answer.failure)) return yield* Effect.fail(answer.failure);
  // The server says that the tool did not run.
  const second = (yield* renewGrant(connector, heldGrant)).grant;
  note(second);
  if ((yield* Clock.currentTimeMillis) - now > REPEAT_WITHIN_MS) return yield* Effect.fail(answer.failure);
  return yield* use(second.accessToken);
});

/** The renewed tokens, or those that still are good for a moment, if the server does not answer now. */
const renewedOr = Effect.fnUntraced(function* (connector: Connector, heldGrant: HeldGrant) {
  const next = yield* Effect.result(renewGrant(connector, heldGrant));
  if (Result.isSuccess(next)) return next.success.grant;
  const { failure } = next;
  const { grant } = heldGrant;
  const now = yield* Clock.currentTimeMillis;
  const isGood = grant !== null && grant.expiresAt !== null && grant.expiresAt > now;
  return failure.isFinal || !isGood ? yield* Effect.fail(failure) : grant;
});

/**
 * The cookie of a sign-in at a provider: everything that the callback must find again, sealed with the installation's key,
 * so that any node opens it.
 *
 *  Q1 It is bound to its provider and to ten minutes. Only the browser that began a flow can end it.
 *  Q2 SameSite=Lax, because the browser comes from the provider's page. It opens nothing by itself: it has no session.
 *  Q3 Over https its name has the prefix `__Host-`, so no other host, not even a sibling, can plant one. A planted one
 *     would have to be sealed by this service, for a flow whose code its planter holds.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { HttpServerRequest, HttpServerResponse } from "effect/http";
import { PROVIDERS, type ProviderId } from "../../domain/person/sign-in.ts";
import { NONCE_BYTES, sealSecret, unsealSecret } from "../../domain/secret/secret.ts";
import { Entropy } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { Addresses } from "../limits.ts";
import { hostCookie, isSecure } from "./dashboard-sessions.ts";

const FLOW_LIFE_MS = 10 * 60 * 1000;
const NAME = "platform_sign_in";
/** The longest cookie that a browser keeps has 4096 bytes. */
const COOKIE_MAX = 4096;

const Flow = Schema.Struct({
  provider: Schema.Literals(PROVIDERS),
  state: Schema.String,
  nonce: Schema.String,
  verifier: Schema.String,
  /** Where the browser goes afterwards: checked when the flow began. */
  returnTo: Schema.String,
  /** The hash of an invitation's code. */
  invitation: Schema.NullOr(Schema.String),
  /** The person who adds the identity to herself, and the session of the browser in which she began. */
  linkTo: Schema.NullOr(Schema.Struct({ userId: Schema.String, browserId: Schema.String })),
  expiresAt: Schema.Finite,
});
export type Flow = typeof Flow.Type;

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Flow));

/** No project has this id, so the key is the flow's own. */
const sealPlace = (provider: ProviderId) => ({ projectId: "sign-in", name: provider, version: 1 });

const setFlowCookie = Effect.fnUntraced(function* (
  response: HttpServerResponse.HttpServerResponse,
  value: string,
  maxAgeSeconds: number,
) {
  const { publicUrl } = yield* Addresses;
  return HttpServerResponse.setCookieUnsafe(response, hostCookie(publicUrl, NAME), value, {
    httpOnly: true,
    sameSite: "lax",
    secure: isSecure(publicUrl),
    path: "/",
    maxAge: `${maxAgeSeconds} seconds`,
  });
});

/** Gives the browser the cookie of a flow that begins now. */
export const withFlow = Effect.fnUntraced(function* (
  response: HttpServerResponse.HttpServerResponse,
  flow: Omit<Flow, "expiresAt">,
) {
  const expiresAt = (yield* Clock.currentTimeMillis) + FLOW_LIFE_MS;
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const value = JSON.stringify({ ...flow, expiresAt } satisfies Flow);
  const sealed = sealSecret((yield* Keyring).secrets, sealPlace(flow.provider), { value, nonce });
  return yield* setFlowCookie(response, Buffer.from(sealed).toString("base64url"), FLOW_LIFE_MS / 1000);
});

/** Takes the cookie away: a flow ends with its first callback. */
export const withoutFlow = (response: HttpServerResponse.HttpServerResponse) =>
  setFlowCookie(response, "", 0);

/** The flow of the request's browser at this provider. Null if it has none, or if it took too long. */
export const browserFlow = Effect.fnUntraced(function* (provider: ProviderId) {
  const { cookies } = yield* HttpServerRequest.HttpServerRequest;
  const { publicUrl } = yield* Addresses;
  const cookie = cookies[hostCookie(publicUrl, NAME)] ?? "";
  if (cookie === "" || cookie.length > COOKIE_MAX) return null;
  const envelope = Buffer.from(cookie, "base64url");
  const opened = unsealSecret((yield* Keyring).secrets, sealPlace(provider), envelope);
  if (Result.isFailure(opened)) return null;
  const flow = decode(opened.success);
  if (Result.isFailure(flow) || flow.success.expiresAt <= (yield* Clock.currentTimeMillis)) return null;
  return flow.success;
});

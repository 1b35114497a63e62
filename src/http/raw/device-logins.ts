/**
 * Signing in a program that has no browser, for the program (RFC 8628, api.md 2): it gets its codes, and asks for the token
 * until a person has decided. Requests are forms, and answers and errors have the standard's shape, so that any OAuth
 * client can do it. The codes come in bodies, which no log has.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schema from "effect/Schema";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import {
  CLIENT_MAX,
  DEVICE_GRANT_TYPE,
  LOGIN_LIFE_MS,
  POLL_MS,
  shownCode,
} from "../../domain/person/device-login.ts";
import { tokenHash } from "../../domain/ids.ts";
import { withAudit, type AuditEntry } from "../../services/audit.ts";
import { newAccessToken, newPassword, newUserCode, newUuid } from "../../services/entropy.ts";
import { DeviceLogins, type ClaimResult } from "../../store/ports/people/device-logins.ts";
import { actingUnknown, requestSender } from "../callers/acting.ts";
import { nameText } from "../api/schemas.ts";
import { awaitBody } from "../reading/body.ts";
import { instant } from "../steps/wire.ts";
import { Addresses } from "../limits.ts";
import { withErrors } from "./raw-route.ts";

/** A form of either endpoint has a few hundred bytes. */
const FORM_LIMIT_BYTES = 4096;
const UNNAMED = "A program";

const answer = (body: Readonly<Record<string, unknown>>, status = 200) =>
  HttpServerResponse.jsonUnsafe(body, { status, headers: { "cache-control": "no-store" } });

const refusal = (error: string, description: string) =>
  answer({ error, error_description: description }, 400);

const form = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest;
  yield* awaitBody(request, FORM_LIMIT_BYTES);
  return new URLSearchParams(yield* Effect.orDie(request.text));
});

const isName = Schema.decodeUnknownOption(nameText(CLIENT_MAX));

const begin = Effect.gen(function* () {
  const client = isName((yield* form).get("client_name") ?? UNNAMED);
  if (Option.isNone(client))
    return refusal("invalid_request", `client_name must be one line of 1 to ${CLIENT_MAX} characters.`);
  const [device, code] = [yield* newPassword, yield* newUserCode];
  yield* (yield* DeviceLogins).begin({
    id: yield* newUuid,
    deviceHash: tokenHash(device),
    userHash: tokenHash(code),
    client: client.value,
    ...(yield* requestSender(yield* HttpServerRequest.HttpServerRequest)),
    now: yield* Clock.currentTimeMillis,
  });
  return answer({
    device_code: device,
    user_code: shownCode(code),
    verification_uri: `${(yield* Addresses).publicUrl}/#/device`,
    expires_in: LOGIN_LIFE_MS / 1000,
    interval: POLL_MS / 1000,
  });
});

const WAITING: Readonly<Record<Exclude<ClaimResult["kind"], "token">, readonly [string, string]>> = {
  waiting: ["authorization_pending", "The person has not decided yet."],
  too_early: ["slow_down", "Wait five seconds longer between two requests."],
  denied: ["access_denied", "The person denied the login."],
  unknown: ["expired_token", "The device code is unknown, used or expired. Begin again."],
};

/** The token on the audit record: its approver made it, in the program's request. */
const createdBy = (
  { accountId, user, client, projectId, expiresAt }: Extract<ClaimResult, { kind: "token" }>,
  id: string,
) =>
  ({
    action: "token.created",
    target: id,
    actor: { kind: "person", ...user, tokenId: null },
    accountId,
    ...(projectId !== null && { projectId }),
    changes: { name: client, ...(expiresAt !== null && { expires_at: instant(expiresAt) }) },
  }) satisfies AuditEntry;

const claim = Effect.gen(function* () {
  const fields = yield* form;
  const device = fields.get("device_code");
  if (fields.get("grant_type") !== DEVICE_GRANT_TYPE)
    return refusal("unsupported_grant_type", `grant_type must be ${DEVICE_GRANT_TYPE}.`);
  if (device === null) return refusal("invalid_request", "device_code is missing.");
  const [token, id, now] = [yield* newAccessToken, yield* newUuid, yield* Clock.currentTimeMillis];
  const result = yield* (yield* DeviceLogins)
    .claim({ deviceHash: tokenHash(device), token: { id, hash: tokenHash(token) }, now })
    .pipe(withAudit((outcome) => (outcome.kind === "token" ? createdBy(outcome, id) : null)));
  if (result.kind !== "token") return refusal(...WAITING[result.kind]);
  const { expiresAt } = result;
  return answer({
    access_token: token,
    token_type: "Bearer",
    ...(expiresAt !== null && { expires_in: Math.floor((expiresAt - now) / 1000) }),
  });
});

export const deviceLoginRoutes = HttpRouter.addAll([
  HttpRouter.route("POST", "/v1/device-logins", withErrors(begin)),
  HttpRouter.route("POST", "/v1/device-logins/token", withErrors(actingUnknown(claim))),
]);

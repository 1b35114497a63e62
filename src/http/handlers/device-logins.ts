/** Handlers of api/device-logins.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import type { AuditAction } from "../../domain/person/audit.ts";
import { readCode, MISSES_MAX, MISSES_MS } from "../../domain/person/device-login.ts";
import { tokenHash } from "../../domain/ids.ts";
import { withAudit, type AuditEntry } from "../../services/audit.ts";
import { DeviceLogins, type DeviceGrant, type DeviceLogin } from "../../store/ports/people/device-logins.ts";
import { Caller } from "../api/access.ts";
import { badRequest, NotFound, TooMany } from "../api/errors.ts";
import { withApiErrors } from "../steps/answers.ts";
import { tokenGrant, type WantedGrant } from "../steps/token-grant.ts";
import { instant, instantOrNull } from "../steps/wire.ts";
import { DeviceLoginsGroup } from "../api/device-logins.ts";
import { Platform } from "../api/platform.ts";

/** Reads what the person typed. A text that cannot be a code does not count as a guess. */
const readLoginCode = Effect.fnUntraced(function* (text: string) {
  const code = readCode(text);
  if (code === null) return yield* badRequest("code", "must be the eight letters that the program shows");
  const { user, tokenId } = yield* Caller;
  return { userId: user.id, tokenId, userHash: tokenHash(code), now: yield* Clock.currentTimeMillis };
});

/** The login, or the error that the person gets without it. */
const requireLogin = (login: DeviceLogin | "too_many" | null) => {
  if (login === "too_many")
    return new TooMany({
      error: `${MISSES_MAX} wrong codes. Try again ${MISSES_MS / 60_000} minutes after the first of them.`,
      code: "too_many_codes",
    });
  return login === null
    ? new NotFound({
        error:
          "No login waits with this code. Codes are valid for ten minutes and for one decision. Check the letters, or run the command again.",
        code: "code_invalid",
      })
    : Effect.succeed(login);
};

const wire = ({ id, client, address, userAgent, createdAt, expiresAt }: DeviceLogin) => ({
  id,
  client,
  address,
  user_agent: userAgent,
  created_at: instant(createdAt),
  expires_at: instant(expiresAt),
});

/** A decision on the audit record. A wrong code has none. */
const decidedBy =
  (action: AuditAction, { projectId, expiresAt }: DeviceGrant = { projectId: null, expiresAt: null }) =>
  (login: DeviceLogin | "too_many" | null): AuditEntry | null =>
    login === null || login === "too_many"
      ? null
      : {
          action,
          target: login.id,
          ...(projectId !== null && { projectId }),
          changes: { client: login.client, expires_at: instantOrNull(expiresAt) ?? undefined },
        };

const look = Effect.fnUntraced(function* ({ code }: { readonly code: string }) {
  return wire(yield* requireLogin(yield* (yield* DeviceLogins).look(yield* readLoginCode(code))));
});

const approve = Effect.fnUntraced(function* ({ code, ...wanted }: WantedGrant & { readonly code: string }) {
  const grant = yield* tokenGrant(wanted);
  const decision = (yield* DeviceLogins).decide({ ...(yield* readLoginCode(code)), grant });
  return wire(
    yield* requireLogin(yield* decision.pipe(withAudit(decidedBy("device_login.approved", grant)))),
  );
});

const deny = Effect.fnUntraced(function* ({ code }: { readonly code: string }) {
  const decision = (yield* DeviceLogins).decide({ ...(yield* readLoginCode(code)), grant: null });
  yield* requireLogin(yield* decision.pipe(withAudit(decidedBy("device_login.denied"))));
});

export const deviceLoginHandlers = HttpApiBuilder.group(
  Platform.add(DeviceLoginsGroup),
  "deviceLogins",
  (handlers) =>
    handlers
      .handle("lookAtDeviceLogin", ({ payload }) => withApiErrors(look(payload)))
      .handle("approveDeviceLogin", ({ payload }) => withApiErrors(approve(payload)))
      .handle("denyDeviceLogin", ({ payload }) => withApiErrors(deny(payload))),
);

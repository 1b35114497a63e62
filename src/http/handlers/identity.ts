/** Handlers of api/identity.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { withAudit } from "../../services/audit.ts";
import { newAccessToken, newUuid } from "../../services/entropy.ts";
import { Pause } from "../../ground/pause.ts";
import { tokenHash } from "../../domain/ids.ts";
import { SignInProviders, type SignInProvider } from "../../sign-in/port.ts";
import { BrowserSessions, type BrowserSession } from "../../store/ports/people/browser-sessions.ts";
import { Identities, type KnownIdentity } from "../../store/ports/people/identities.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { listReader } from "../callers/access.ts";
import { Caller } from "../api/access.ts";
import { Conflict, notFound } from "../api/errors.ts";
import { Limits } from "../limits.ts";
import { mayOperate } from "../callers/operator-account.ts";
import { withApiErrors } from "../steps/answers.ts";
import { tokenGrant, type WantedGrant } from "../steps/token-grant.ts";
import { accountWire, instantOrNull, pageRequest, tokenWire, wireForm } from "../steps/wire.ts";
import { BrowserWire, IdentityGroup, IdentityWire } from "../api/identity.ts";
import { Platform } from "../api/platform.ts";

const me = Effect.gen(function* () {
  const caller = yield* Caller;
  const account = yield* (yield* Identity).account(caller.accountId);
  if (account === null) return yield* notFound("account");
  return {
    user: { ...caller.user, role: caller.accountRole },
    account: { ...accountWire(account), operator: yield* mayOperate(caller) },
    token: { id: caller.openedBy ?? caller.tokenId, origin: caller.origin, project_id: caller.projectId },
    terminals: (yield* Limits).terminals,
    paused: (yield* Pause).isOn,
  };
});

/** The new token permanently has the origin `user`, the only one that reaches this endpoint. */
const createToken = Effect.fnUntraced(function* ({
  name,
  ...wanted
}: WantedGrant & { readonly name: string }) {
  const caller = yield* Caller;
  const grant = yield* tokenGrant(wanted);
  const token = yield* newAccessToken;
  const row = yield* (yield* Identity)
    .createToken({
      id: yield* newUuid,
      accountId: caller.accountId,
      userId: caller.user.id,
      name,
      hash: tokenHash(token),
      origin: "user",
      ...grant,
      now: yield* Clock.currentTimeMillis,
    })
    .pipe(
      withAudit(({ id, projectId }) => ({
        action: "token.created",
        target: id,
        ...(projectId !== null && { projectId }),
        changes: { name, expires_at: instantOrNull(grant.expiresAt) ?? undefined },
      })),
    );
  return { ...tokenWire(row), token };
});

const browserForm = wireForm(BrowserWire);
const showBrowser = (session: BrowserSession, current: boolean) =>
  browserForm({ ...session, tokenId: session.openedBy, current });
const identityForm = wireForm(IdentityWire);
const showIdentity = (identity: KnownIdentity, providers: readonly SignInProvider[]) =>
  identityForm({
    ...identity,
    provider: providers.find(({ issuer }) => issuer === identity.issuer)?.id ?? null,
    lastSignInAt: identity.signedInAt,
  });

const lastSignIn = () =>
  new Conflict({
    error: "This is your last way to sign in at a provider. Add another one first.",
    code: "last_sign_in",
  });

const removeIdentity = Effect.fnUntraced(function* (id: string) {
  const { user } = yield* Caller;
  const issuers = (yield* SignInProviders).map(({ issuer }) => issuer);
  const result = yield* (yield* Identities).remove({ userId: user.id, id, issuers }).pipe(
    withAudit((identity) => {
      if (identity === null || identity === "last") return null;
      const { issuer, subject, name } = identity;
      return { action: "identity.removed", target: user.id, changes: { issuer, subject, name } };
    }),
  );
  if (result === null) return yield* notFound("identity");
  if (result === "last") return yield* lastSignIn();
});

export const identityHandlers = HttpApiBuilder.group(Platform.add(IdentityGroup), "identity", (handlers) =>
  handlers
    .handle("me", () => withApiErrors(me))
    .handle("listTokens", ({ query }) =>
      withApiErrors(
        Effect.gen(function* () {
          const caller = yield* Caller;
          const owner = { accountId: caller.accountId, userId: listReader(caller) };
          const page = yield* (yield* Identity).listTokens(owner, pageRequest(query));
          return { tokens: page.items.map(tokenWire), next_cursor: page.nextCursor };
        }),
      ),
    )
    .handle("createToken", ({ payload }) => withApiErrors(createToken(payload)))
    .handle("deleteToken", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          const caller = yield* Caller;
          const owner = { accountId: caller.accountId, userId: listReader(caller) };
          const now = yield* Clock.currentTimeMillis;
          const row = { action: "token.deleted", target: params.id } as const;
          const deletion = (yield* Identity).deleteToken(owner, params.id, now);
          if (!(yield* deletion.pipe(withAudit((isDeleted) => (isDeleted ? row : null)))))
            return yield* notFound("token");
        }),
      ),
    )
    .handle("listBrowsers", ({ query }) =>
      withApiErrors(
        Effect.gen(function* () {
          const { user, tokenId } = yield* Caller;
          const now = yield* Clock.currentTimeMillis;
          const page = yield* (yield* BrowserSessions).list(user.id, { ...pageRequest(query), now });
          const browsers = page.items.map((session) => showBrowser(session, session.id === tokenId));
          return { browsers, next_cursor: page.nextCursor };
        }),
      ),
    )
    .handle("endBrowsers", () =>
      withApiErrors(
        Effect.gen(function* () {
          const { user } = yield* Caller;
          const row = { action: "browser.all_ended", target: user.id } as const;
          const sweep = (yield* BrowserSessions).endAll(user.id);
          yield* sweep.pipe(withAudit((isEnded) => (isEnded ? row : null)));
        }),
      ),
    )
    .handle("listIdentities", () =>
      withApiErrors(
        Effect.gen(function* () {
          const providers = yield* SignInProviders;
          const identities = yield* (yield* Identities).list((yield* Caller).user.id);
          return { identities: identities.map((identity) => showIdentity(identity, providers)) };
        }),
      ),
    )
    .handle("removeIdentity", ({ params }) => withApiErrors(removeIdentity(params.id)))
    .handle("endBrowser", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          const row = { action: "browser.ended", target: params.id } as const;
          const ending = (yield* BrowserSessions).end((yield* Caller).user.id, params.id);
          if (!(yield* ending.pipe(withAudit((isEnded) => (isEnded ? row : null)))))
            return yield* notFound("browser");
        }),
      ),
    ),
);

/** The work of `platform admin`: accounts, users, their tokens and tiers, in the installation's database (api.md 2). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { EXIT, Failure } from "../../cli/failure.ts";
import type { Environment } from "../../cli/configuration.ts";
import { accountWire, instantOrNull, tokenWire } from "../../http/steps/wire.ts";
import { withAudit, auditedChange, unlessSame } from "../../services/audit.ts";
import { newAccessToken, newUuid } from "../../services/entropy.ts";
import { readConfig } from "../../settings/config.ts";
import { tokenHash } from "../../domain/ids.ts";
import type { AccountRole } from "../../domain/person/role.ts";
import type { Tier } from "../../domain/person/tier.ts";
import { Accounts, type User } from "../../store/ports/people/accounts.ts";
import type { Audit } from "../../store/ports/audit.ts";
import { BadCursor } from "../../store/ports/errors.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import type { Page, PageRequest } from "../../store/ports/page.ts";
import { asOperator } from "./acting.ts";
import { installedStore } from "./database.ts";

const absent = (what: string): Failure =>
  new Failure(EXIT.notFound, "not_found", {
    message: `${what.charAt(0).toUpperCase()}${what.slice(1)} not found.`,
  });

const userWire = ({ id, accountId, name, role }: User) => ({ id, account_id: accountId, name, role });

const pageWire = <A, W>({ items, nextCursor }: Page<A>, wire: (item: A) => W) => ({
  items: items.map(wire),
  next_cursor: nextCursor,
});

type Stores = Accounts | Audit | Identity | Projects;

/** Runs an effect on the store of the installation that the environment names. */
const onStore = <A, E>(environment: Environment, use: Effect.Effect<A, E, Stores>) =>
  Effect.suspend(() =>
    Effect.provide(asOperator(use), installedStore(readConfig(environment, process.cwd()))),
  ).pipe(
    Effect.mapError((error) =>
      error instanceof BadCursor
        ? new Failure(EXIT.refused, "invalid_request", {
            message: "--cursor must be the cursor of an earlier page.",
          })
        : error,
    ),
  );

const accountOr404 = Effect.fnUntraced(function* (id: string) {
  const account = yield* (yield* Identity).account(id);
  return account ?? (yield* Effect.fail(absent("account")));
});

export const listAccounts = (environment: Environment, request: PageRequest) =>
  onStore(
    environment,
    Effect.flatMap(Accounts, ({ list }) => Effect.map(list(request), (page) => pageWire(page, accountWire))),
  );

export const createAccount = (
  environment: Environment,
  wish: { readonly name: string; readonly tier: Tier | undefined },
) =>
  onStore(
    environment,
    Effect.gen(function* () {
      const { tierCaps, defaultTier } = readConfig(environment, process.cwd());
      const tier = wish.tier ?? defaultTier;
      return accountWire(
        yield* (yield* Accounts)
          .create({
            id: yield* newUuid,
            name: wish.name,
            tier,
            cap: tierCaps[tier],
            now: yield* Clock.currentTimeMillis,
          })
          .pipe(
            withAudit(({ id, name }) => ({
              action: "account.created",
              target: id,
              accountId: id,
              changes: { name, tier },
            })),
          ),
      );
    }),
  );

export const setTier = (environment: Environment, accountId: string, tier: Tier) =>
  onStore(
    environment,
    Effect.gen(function* () {
      yield* accountOr404(accountId);
      const { tierCaps } = readConfig(environment, process.cwd());
      const identity = yield* Identity;
      yield* identity.setTier(accountId, tier, tierCaps[tier]).pipe(
        auditedChange({
          target: accountId,
          read: Effect.map(identity.account(accountId), (account) => account && { tier: account.tier }),
          say: (changes) => unlessSame({ action: "account.tier_set", target: accountId, accountId, changes }),
        }),
      );
      return accountWire(yield* accountOr404(accountId));
    }),
  );

export const listUsers = (environment: Environment, accountId: string, request: PageRequest) =>
  onStore(
    environment,
    Effect.gen(function* () {
      yield* accountOr404(accountId);
      return pageWire(yield* (yield* Accounts).users(accountId, request), userWire);
    }),
  );

export const createUser = (
  environment: Environment,
  wish: { readonly name: string; readonly accountId: string; readonly role: AccountRole },
) =>
  onStore(
    environment,
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      const { accountId, name, role } = wish;
      const user = yield* (yield* Accounts)
        .createUser({ ...wish, id: yield* newUuid, now })
        .pipe(
          withAudit((newUser) =>
            newUser === null
              ? null
              : { action: "person.created", target: newUser.id, accountId, changes: { name, role } },
          ),
        );
      return user === null ? yield* Effect.fail(absent("account")) : userWire(user);
    }),
  );

export const listTokens = (environment: Environment, accountId: string, request: PageRequest) =>
  onStore(
    environment,
    Effect.gen(function* () {
      yield* accountOr404(accountId);
      return pageWire(yield* (yield* Identity).listTokens({ accountId, userId: null }, request), tokenWire);
    }),
  );

interface TokenWish {
  readonly name: string;
  readonly userId: string;
  readonly projectId: string | null;
  /** ms since the epoch. Null if it does not expire. */
  readonly expiresAt: number | null;
}

/** Creates a token like `POST /v1/tokens`, but for any user, who then needs no sign-in for a while. */
export const createToken = (environment: Environment, { name, userId, projectId, expiresAt }: TokenWish) =>
  onStore(
    environment,
    Effect.gen(function* () {
      const user = yield* (yield* Accounts).user(userId);
      if (user === null) return yield* Effect.fail(absent("user"));
      const { accountId } = user;
      const project = projectId === null ? null : yield* (yield* Projects).get(projectId);
      if (projectId !== null && project?.accountId !== accountId)
        return yield* Effect.fail(absent("project"));
      const token = yield* newAccessToken;
      const now = yield* Clock.currentTimeMillis;
      const identity = yield* Identity;
      const row = yield* identity
        .createToken({
          id: yield* newUuid,
          accountId,
          userId,
          projectId,
          name,
          hash: tokenHash(token),
          origin: "user",
          expiresAt,
          now,
        })
        .pipe(
          Effect.tap(() => identity.letIn(userId, now)),
          withAudit(({ id }) => ({
            action: "token.created",
            target: id,
            accountId,
            ...(projectId !== null && { projectId }),
            changes: { name, user_id: userId, expires_at: instantOrNull(expiresAt) },
          })),
        );
      return { ...tokenWire(row), token };
    }),
  );

export const deleteToken = (environment: Environment, accountId: string, tokenId: string) =>
  onStore(
    environment,
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      const row = { action: "token.deleted", target: tokenId, accountId } as const;
      const deletion = (yield* Identity).deleteToken({ accountId, userId: null }, tokenId, now);
      if (!(yield* deletion.pipe(withAudit((isDeleted) => (isDeleted ? row : null)))))
        return yield* Effect.fail(absent("token"));
    }),
  );

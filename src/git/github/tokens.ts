/**
 * The token to send: either the configured one, or one that an app's installation has minted (api.md 2). Minted tokens
 * reach one repository and are only kept in memory.
 *
 *  T1 One token is minted at a time for an installation and a repository. Concurrent callers get the same one.
 *  T2 No token is handed out shortly before it expires. The margin also covers clocks that differ.
 *  T3 A token that the host refused is not handed out again.
 */
import { createHash, createPrivateKey, sign } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import * as Semaphore from "effect/Semaphore";
import { BoundedMap } from "../../ground/bounded-map.ts";
import { type CodeHost, readCodeHost } from "../../domain/repository/code-host.ts";
import type { RepositoryCredential, Upstream } from "../../domain/repository/repository-credential.ts";
import { GitError } from "../port.ts";
import type { Access, Api } from "./api.ts";

type App = Extract<RepositoryCredential, { kind: "app" }>;
export type GithubSource = Extract<Upstream["source"], { kind: "github" }>;

/** Long enough for a clone that begins with it. */
const LEFT_MS = 10 * 60_000;
/** How many minted tokens are kept. */
const TOKENS_KEPT = 10_000;
/** A token is used at least this long: otherwise, with very different clocks, every call would mint one. */
const AT_LEAST_MS = 60_000;
/** The host allows ten minutes at most, and its clock may differ from ours. */
const ASSERTION = { beforeS: 60, afterS: 9 * 60 };

export const digest = (...parts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex");

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** The JSON web token (RS256) with which an app authenticates itself. @param now ms since the epoch. */
export const appAssertion = ({ appId, privateKey }: App, now: number): string => {
  const at = Math.floor(now / 1000);
  const claims = { iat: at - ASSERTION.beforeS, exp: at + ASSERTION.afterS, iss: appId };
  const unsignedToken = `${encode({ alg: "RS256", typ: "JWT" })}.${encode(claims)}`;
  const signature = sign("RSA-SHA256", Buffer.from(unsignedToken), createPrivateKey(privateKey));
  return `${unsignedToken}.${signature.toString("base64url")}`;
};

const Minted = Schema.Struct({
  token: Schema.String,
  expires_at: Schema.String,
  permissions: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
});
export type Minted = typeof Minted.Type;

interface Entry {
  readonly turn: Semaphore.Semaphore;
  token: string;
  /** ms since the epoch. */
  renewAt: number;
}

/** Accesses by a repository's source and credential. `refused` if there is no usable credential. */
export type Accesses = (
  source: GithubSource,
  credential: RepositoryCredential | null,
) => Effect.Effect<Access, GitError>;

const cannot = (message: string): GitError => new GitError({ code: "refused", message });

interface Installation {
  readonly app: App;
  /** The repository's name. */
  readonly name: string;
  readonly host: CodeHost;
}

/** Mints a token for the repository. 401: the app is wrong, 404: its installation, 422: it does not reach the repository. */
export const asInstallation = (api: Api, { app, name, host }: Installation) => {
  const asApp: Access = {
    host,
    key: digest(host.api, app.appId, app.privateKey),
    token: () => Effect.map(Clock.currentTimeMillis, (now) => appAssertion(app, now)),
  };
  return api(asApp, {
    method: "POST",
    path: `/app/installations/${app.installationId}/access_tokens`,
    body: { repositories: [name] },
    answer: Minted,
    known: [401, 404, 422],
    repeatable: true, // a lost one expires unused
    onlyReads: true,
  });
};

const mint = Effect.fnUntraced(function* (api: Api, installation: Installation) {
  const { name, host } = installation;
  const answer = yield* asInstallation(api, installation);
  if (answer.ok) return answer.value;
  const reason = answer.message === "" ? "" : ` It says: ${answer.message}`;
  switch (answer.status) {
    case 401:
      return yield* cannot(`The code host ${host.host} rejects the app's id and private key.${reason}`);
    case 404:
      return yield* cannot(`The code host ${host.host} does not have this installation of the app.${reason}`);
    default:
      return yield* cannot(`The app's installation has no access to the repository ${name}.${reason}`);
  }
});

/** Called within the entry's turn. */
const renew = Effect.fnUntraced(function* (entry: Entry, making: ReturnType<typeof mint>) {
  const { token, expires_at } = yield* making;
  const now = yield* Clock.currentTimeMillis;
  const expiresAt = Date.parse(expires_at);
  const soonest = now + AT_LEAST_MS;
  entry.token = token;
  entry.renewAt = Number.isFinite(expiresAt) ? Math.max(expiresAt - LEFT_MS, soonest) : soonest;
  return token;
});

export const makeAccesses = (api: Api, allowHosts: readonly string[]): Accesses => {
  const hosts = new Set(allowHosts);
  const entries = new BoundedMap<string, Entry>(TOKENS_KEPT);

  const tokenEntry = (key: string): Entry => {
    const entry = entries.get(key) ?? { turn: Semaphore.makeUnsafe(1), token: "", renewAt: 0 };
    entries.set(key, entry);
    return entry;
  };

  const mintedAccess = (app: App, source: GithubSource, host: CodeHost): Access => {
    const key = digest(host.api, app.appId, app.installationId, app.privateKey, source.owner, source.name);
    return {
      host,
      key,
      token: (stale) =>
        Effect.suspend(() => {
          const entry = tokenEntry(key);
          return entry.turn.withPermit(
            Effect.flatMap(Clock.currentTimeMillis, (now) =>
              now < entry.renewAt && entry.token !== stale
                ? Effect.succeed(entry.token)
                : renew(entry, mint(api, { app, name: source.name, host })),
            ),
          );
        }),
    };
  };

  return (source, credential) => {
    const host = readCodeHost(source, hosts);
    if (Result.isFailure(host)) {
      return Effect.fail(cannot(`The code host is not allowed: ${host.failure}`));
    }
    switch (credential?.kind) {
      case "token": {
        const { token } = credential;
        const key = digest(host.success.api, token);
        return Effect.succeed({ host: host.success, key, token: () => Effect.succeed(token) });
      }
      case "app":
        return Effect.succeed(mintedAccess(credential, source, host.success));
      default:
        return Effect.fail(cannot("The repository has no token and no app."));
    }
  };
};

/**
 * Credentials of a project's repository at another server (api.md 2): their form in requests, and their stored form. A
 * credential is sealed like a project secret (domain/secret/secret.ts), under a name that no secret can have, and is sent only
 * to that server (threats.md G04, G05, S06).
 */
import { createPrivateKey } from "node:crypto";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { readCodeHost } from "./code-host.ts";
import {
  type CredentialRequest,
  parseRepositoryUrl,
  type RepositoryRequest,
  type RepositorySource,
} from "./repository.ts";
import type { SecretPlace } from "../secret/secret.ts";

/** A credential before it is sealed. */
export const RepositoryCredential = Schema.Union([
  Schema.Struct({ kind: Schema.tag("password"), username: Schema.String, password: Schema.String }),
  Schema.Struct({ kind: Schema.tag("ssh_key"), privateKey: Schema.String, knownHosts: Schema.String }),
  Schema.Struct({ kind: Schema.tag("token"), token: Schema.String }),
  Schema.Struct({
    kind: Schema.tag("app"),
    appId: Schema.String,
    installationId: Schema.String,
    privateKey: Schema.String,
  }),
]);
export type RepositoryCredential = typeof RepositoryCredential.Type;

const asText = Schema.fromJsonString(RepositoryCredential);
export const encodeCredential = Schema.encodeSync(asText);
/** Throws on text that `encodeCredential` did not write. */
export const decodeCredential = Schema.decodeSync(asText);

/**
 * The place under which a project's credential is sealed. A project has one at a time, and nothing refers to a former
 * one.
 */
export const credentialPlace = (projectId: string): SecretPlace => ({
  projectId,
  name: "repository credential",
  version: 1,
});

/** An error in a request, with the field of its repository. It contains no part of a credential. */
export interface RepositoryIssue {
  readonly path: string;
  readonly message: string;
}

type GitRequest = Extract<RepositoryRequest, { kind: "git" }>;
type GithubRequest = Extract<RepositoryRequest, { kind: "github" }>;
type Credential = Result.Result<RepositoryCredential | null, RepositoryIssue>;

const issue = (path: string, message: string): Result.Result<never, RepositoryIssue> =>
  Result.fail({ path, message });

/** Most servers ignore the user name if the password is a token. */
const DEFAULT_USERNAME = "git";

// oxlint-disable-next-line no-control-regex -- git's credential protocol has a line for each: no line end may be in one
const oneLine = /^[^\u0000-\u001f\u007f]*$/;

const toPassword = ({ username, password }: GitRequest): Credential => {
  if (password === undefined) {
    return username === undefined ? Result.succeed(null) : issue("password", "must be given with a username");
  }
  for (const [path, value] of Object.entries({ username: username ?? "", password })) {
    if (!oneLine.test(value)) return issue(path, "must be one line without control characters");
  }
  if (username?.includes(":") === true) return issue("username", "must not contain a colon");
  return Result.succeed({ kind: "password", username: username ?? DEFAULT_USERNAME, password });
};

const PRIVATE_KEY =
  /^-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----\r?\n[\s\S]*\r?\n-----END [A-Z0-9 ]*PRIVATE KEY-----\s*$/;

/** OpenSSH refuses a key with carriage returns, or without a newline at its end. */
const lines = (text: string): string => `${text.replaceAll("\r\n", "\n").trimEnd()}\n`;

const toSshKey = ({ ssh_private_key: key, known_hosts: hosts }: GitRequest): Credential => {
  if (key === undefined) return issue("ssh_private_key", "must be given for an ssh URL");
  if (hosts === undefined) return issue("known_hosts", "must be given for an ssh URL");
  if (!PRIVATE_KEY.test(key))
    return issue("ssh_private_key", "must be a private key in PEM or OpenSSH format");
  if (hosts.trim() === "" || hosts.includes("\0")) return issue("known_hosts", "must be known_hosts lines");
  return Result.succeed({ kind: "ssh_key", privateKey: lines(key), knownHosts: lines(hosts) });
};

const gitCredential = (request: GitRequest, allowHosts: ReadonlySet<string>): Credential => {
  const url = parseRepositoryUrl(request.url, allowHosts);
  if (Result.isFailure(url)) return issue("url", url.failure);
  const { username, password, ssh_private_key: key, known_hosts: hosts } = request;
  if (url.success.scheme === "ssh") {
    return username === undefined && password === undefined
      ? toSshKey(request)
      : issue(
          username === undefined ? "password" : "username",
          "must not be given for an ssh URL, which needs ssh_private_key",
        );
  }
  return key === undefined && hosts === undefined
    ? toPassword(request)
    : issue(
        key === undefined ? "known_hosts" : "ssh_private_key",
        "must not be given for an http URL, which needs a password",
      );
};

/** An app signs with RSA. A key with a passphrase is refused, since the service runs unattended. */
const isRsaKey = (pem: string): boolean => {
  try {
    return createPrivateKey(pem).asymmetricKeyType === "rsa";
  } catch {
    return false;
  }
};

const toApp = (app: NonNullable<GithubRequest["app"]>): Credential => {
  const { app_id: appId, installation_id: installationId, private_key: privateKey } = app;
  // The host takes an app's number and its client id alike.
  if (!/^[A-Za-z0-9._-]+$/.test(appId)) return issue("app.app_id", "must be the id of the app");
  if (!/^[0-9]{1,20}$/.test(installationId)) {
    return issue("app.installation_id", "must be the number of the app's installation");
  }
  return PRIVATE_KEY.test(privateKey) && isRsaKey(privateKey)
    ? Result.succeed({ kind: "app", appId, installationId, privateKey })
    : issue("app.private_key", "must be an RSA private key in PEM format, without a passphrase");
};

const githubCredential = (request: GithubRequest, allowHosts: ReadonlySet<string>): Credential => {
  const { token, app } = request;
  const host = readCodeHost(request, allowHosts);
  if (Result.isFailure(host)) return issue("api_url", host.failure);
  if (token !== undefined && app !== undefined)
    return issue("app", "must not be given together with `token`");
  if (app !== undefined) return toApp(app);
  if (token === undefined) return issue("token", "must be given, unless `app` is given");
  // It goes into a header: visible ASCII alone.
  return /^[!-~]+$/.test(token)
    ? Result.succeed({ kind: "token", token })
    : issue("token", "must be one word without spaces and control characters");
};

/**
 * The credential in a request. Null if it has none.
 *
 * @param allowHosts lower-case hosts of PLATFORM_GIT_ALLOW_HOSTS.
 */
export const requestedCredential = (
  request: RepositoryRequest,
  allowHosts: ReadonlySet<string>,
): Credential => {
  switch (request.kind) {
    case "hosted":
      return Result.succeed(null);
    case "git":
      return gitCredential(request, allowHosts);
    case "github":
      return githubCredential(request, allowHosts);
  }
};

/** A repository at another server, as it is stored. */
export type ExternalSource = Exclude<RepositorySource, { kind: "hosted" }>;

/** A repository at another server. */
export interface Upstream {
  readonly source: ExternalSource;
  /** The opened credential. It goes to that server and nowhere else (git/port.ts, G5). */
  readonly credential: RepositoryCredential | null;
}

const GIT_FIELDS = ["username", "password", "ssh_private_key", "known_hosts"] as const;
const GITHUB_FIELDS = ["token", "app"] as const;

/** The same request as `POST /v1/projects` takes it, for an existing project. A field of the other kind is an error. */
const asRequest = (
  source: ExternalSource,
  request: CredentialRequest,
): Result.Result<RepositoryRequest, RepositoryIssue> => {
  const strange = source.kind === "git" ? GITHUB_FIELDS : GIT_FIELDS;
  const stray = strange.find((name) => request[name] !== undefined);
  if (stray !== undefined)
    return issue(stray, `must not be given for a repository of the kind ${source.kind}`);
  const { token, app, ...git } = request;
  if (source.kind === "git") return Result.succeed({ ...source, ...git });
  return Result.succeed({
    ...source,
    ...(token === undefined ? {} : { token }),
    ...(app === undefined ? {} : { app }),
  });
};

/**
 * The credential that replaces a project's credential. It accepts the same requests as `requestedCredential`, but never
 * an empty one: removing a credential is a different request from sending none.
 */
export const replacingCredential = (
  source: ExternalSource,
  request: CredentialRequest,
  allowHosts: ReadonlySet<string>,
): Result.Result<RepositoryCredential, RepositoryIssue> =>
  Result.flatMap(asRequest(source, request), (whole) =>
    Result.flatMap(requestedCredential(whole, allowHosts), (credential) =>
      credential === null ? issue("password", "expected a credential") : Result.succeed(credential),
    ),
  );

/** Whether the repository may have no credential, as for `POST /v1/projects`. */
export const opensWithout = (source: ExternalSource): boolean =>
  source.kind === "git" && !source.url.startsWith("ssh:");

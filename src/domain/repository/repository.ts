/**
 * A project's repository (api.md 2): the request's form, and the stored and shown form (threats.md G03). Whether a name
 * leads to a private address shows when it is dialled.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { canonicalHost, isPrivateHost } from "../../ground/net/address.ts";

const text = (maximum: number) => Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(maximum));
const url = text(2048);
const hostedRepository = { kind: Schema.tag("hosted") };
const git = { kind: Schema.tag("git"), url };
const github = {
  kind: Schema.tag("github"),
  owner: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_-]{0,38}$/)),
  name: Schema.String.check(Schema.isPattern(/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/)),
  api_url: Schema.optionalKey(url),
  pull_requests: Schema.optionalKey(Schema.Boolean),
};
/** Keys are a few kilobytes of PEM. Longer text was pasted by mistake. */
const pem = text(16_384);

/** The `repository` of a project as it is stored and shown, without a credential and without its import source. */
export const RepositorySource = Schema.Union([
  Schema.Struct(hostedRepository),
  Schema.Struct(git),
  Schema.Struct(github),
]);
export type RepositorySource = typeof RepositorySource.Type;

const gitCredential = {
  username: Schema.optionalKey(text(256)),
  password: Schema.optionalKey(text(4096)),
  ssh_private_key: Schema.optionalKey(pem),
  known_hosts: Schema.optionalKey(pem),
};
const githubCredential = {
  token: Schema.optionalKey(text(4096)),
  app: Schema.optionalKey(Schema.Struct({ app_id: text(64), installation_id: text(64), private_key: pem })),
};

/** The `repository` that `POST /v1/projects` takes, including credentials. Its URLs are not checked yet. */
export const RepositoryRequest = Schema.Union([
  Schema.Struct({ ...hostedRepository, import_from: Schema.optionalKey(text(4096)) }),
  Schema.Struct({ ...git, ...gitCredential }),
  Schema.Struct({ ...github, ...githubCredential }),
]);
export type RepositoryRequest = typeof RepositoryRequest.Type;

/** The same credential fields for an existing project. Its kind decides which of them are valid. */
export const CredentialRequest = Schema.Struct({ ...gitCredential, ...githubCredential });
export type CredentialRequest = typeof CredentialRequest.Type;

/** The part of a request that is stored: every field that is not a credential. */
export const repositorySource = (request: RepositoryRequest): RepositorySource => {
  switch (request.kind) {
    case "hosted":
      return { kind: "hosted" };
    case "git":
      return { kind: "git", url: request.url };
    case "github": {
      const { token: _token, app: _app, ...source } = request;
      return source;
    }
  }
};

/** The parts of a repository URL that passed the checks. */
export interface RepositoryUrl {
  readonly scheme: "https" | "http" | "ssh";
  /** In lower case. An IPv6 address has no brackets. */
  readonly host: string;
  readonly href: string;
}

const URL_LIMIT = 2048;
const URL_FORM =
  /^(?<scheme>https?|ssh):\/\/(?:(?<user>[^@/?#]*)@)?(?<host>\[[0-9A-Fa-f:.]+\]|[^@:/?#%[\]]*)(?::(?<port>[0-9]{1,5}))?(?<path>\/[^?#]*)$/;
const SSH_USER = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

/**
 * Reads the URL of a repository. https and ssh may use every public host. http, and hosts that are private by their
 * spelling, are allowed only for hosts that the operator permits.
 *
 * @param allowHosts lower-case hosts of PLATFORM_GIT_ALLOW_HOSTS.
 * @returns the parts, or one sentence that says what is wrong. It contains no part of the URL, which may include a
 * password.
 */
export const parseRepositoryUrl = (
  value: string,
  allowHosts: ReadonlySet<string>,
): Result.Result<RepositoryUrl, string> => {
  // Programs disagree on how to read blanks, control characters, backslashes and anything beyond ASCII.
  if (value.length > URL_LIMIT || !/^[!-[\]-~]*$/.test(value)) {
    return Result.fail(
      `A repository URL must have at most ${URL_LIMIT} printable ASCII characters and no spaces.`,
    );
  }
  const parts = URL_FORM.exec(value)?.groups;
  if (parts === undefined) {
    return Result.fail(
      "A repository URL must have the form https://host/path or ssh://user@host/path, without ? and #.",
    );
  }
  const scheme = parts["scheme"] === "ssh" ? "ssh" : parts["scheme"] === "http" ? "http" : "https";
  const userFault = checkUser(scheme, parts["user"]);
  if (userFault !== null) return Result.fail(userFault);
  const host = canonicalHost(parts["host"] ?? "");
  if (host === null || Number(parts["port"] ?? 1) > 65_535 || Number(parts["port"] ?? 1) === 0) {
    return Result.fail("The host or port of the repository URL is not valid.");
  }
  if (parts["path"] === "/") return Result.fail("The repository URL has no path.");
  if (!allowHosts.has(host)) {
    if (scheme === "http")
      return Result.fail("http is only allowed for hosts in PLATFORM_GIT_ALLOW_HOSTS. Use https.");
    if (isPrivateHost(host)) {
      return Result.fail(
        "The repository's host is private. The operator can allow it in PLATFORM_GIT_ALLOW_HOSTS.",
      );
    }
  }
  return Result.succeed({ scheme, host, href: value });
};

const checkUser = (scheme: RepositoryUrl["scheme"], user: string | undefined): string | null => {
  if (user === undefined) return null;
  if (scheme !== "ssh") return "Put credentials into the fields username and password, not into the URL.";
  return SSH_USER.test(user) ? null : "The user of an ssh URL must be a plain name without a password.";
};

/** The source of a hosted repository's import. */
export type ImportSource =
  | { readonly kind: "url"; readonly url: RepositoryUrl }
  /** An absolute path as written. The caller checks its real path against PLATFORM_IMPORT_ROOTS. */
  | { readonly kind: "path"; readonly path: string };

/** Reads `import_from`: an https URL, or an absolute path on the service's machine. */
export const parseImportSource = (
  value: string,
  allowHosts: ReadonlySet<string>,
): Result.Result<ImportSource, string> => {
  if (value.startsWith("/")) {
    // oxlint-disable-next-line no-control-regex -- control characters are what is refused
    return value.length > 4096 || /[\u0000-\u001f\u007f]/.test(value)
      ? Result.fail("The path is too long or contains a control character.")
      : Result.succeed({ kind: "path", path: value });
  }
  if (!/^https?:/.test(value))
    return Result.fail("Use an address that begins with https://, or an absolute path.");
  return Result.map(parseRepositoryUrl(value, allowHosts), (address) => ({ kind: "url", url: address }));
};

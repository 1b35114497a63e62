/**
 * Where a code host's API and its repositories are (api.md 2, `github`): the API's base address is given or the public
 * host's own, and the repository's git address follows from it, so that one check of one host holds for both.
 */
import * as Result from "effect/Result";
import { parseRepositoryUrl, type RepositorySource } from "./repository.ts";

type GithubSource = Extract<RepositorySource, { kind: "github" }>;

/** The addresses of one repository at a code host. */
export interface CodeHost {
  /** The API's base without a slash at its end. */
  readonly api: string;
  /** Lower case; what PLATFORM_GIT_ALLOW_HOSTS names. */
  readonly host: string;
  /** The repository as git clones it. */
  readonly git: string;
}

const PUBLIC_API = "https://api.github.com";
/** Of a host that an enterprise runs itself the API lies below its web address. */
const ENTERPRISE_PATH = "/api/v3";

/** `api.github.com` serves `github.com`, `api.{name}.ghe.com` serves `{name}.ghe.com`. */
const gitOrigin = (api: URL): string => {
  const isOwnHost = api.pathname.replace(/\/$/, "") === "" && api.hostname.startsWith("api.");
  return isOwnHost ? `${api.protocol}//${api.host.slice("api.".length)}` : api.origin;
};

/**
 * @param allowHosts lower-case hosts of PLATFORM_GIT_ALLOW_HOSTS: http and private hosts are for those alone.
 * @returns the addresses, or one sentence that says what is wrong with `api_url`.
 */
export const codeHostOf = (
  source: Pick<GithubSource, "owner" | "name" | "api_url">,
  allowHosts: ReadonlySet<string>,
): Result.Result<CodeHost, string> => {
  const api = (source.api_url ?? PUBLIC_API).replace(/\/+$/, "");
  // Judged as a repository's URL is, which has a path.
  const parsed = parseRepositoryUrl(`${api}/repos`, allowHosts);
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure);
  const { scheme, host } = parsed.success;
  if (scheme === "ssh") return Result.fail("must be the https URL of the API");
  const url = new URL(api);
  const path = url.pathname.replace(/\/$/, "");
  if (path !== "" && path !== ENTERPRISE_PATH) {
    return Result.fail(`must be a URL without a path, or with the path ${ENTERPRISE_PATH}`);
  }
  return Result.succeed({ api, host, git: `${gitOrigin(url)}/${source.owner}/${source.name}.git` });
};

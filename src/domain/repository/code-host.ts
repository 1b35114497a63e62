/**
 * Addresses of a code host's API and of its repositories (api.md 2, `github`). The API's base address is configured, or
 * the public host's. The repository's git address follows from it, so that one check of one host covers both.
 */
import * as Result from "effect/Result";
import { parseRepositoryUrl, type RepositorySource } from "./repository.ts";

type GithubSource = Extract<RepositorySource, { kind: "github" }>;

/** The addresses of one repository at a code host. */
export interface CodeHost {
  /** The API's base, without a trailing slash. */
  readonly api: string;
  /** In lower case, as PLATFORM_GIT_ALLOW_HOSTS names it. */
  readonly host: string;
  /** The repository as git clones it. */
  readonly git: string;
}

const PUBLIC_API = "https://api.github.com";
/** A self-hosted enterprise server serves its API below its web address. */
const ENTERPRISE_PATH = "/api/v3";

/** `api.github.com` serves `github.com`, `api.{name}.ghe.com` serves `{name}.ghe.com`. */
const gitOrigin = (api: URL): string => {
  const isOwnHost = api.pathname.replace(/\/$/, "") === "" && api.hostname.startsWith("api.");
  return isOwnHost ? `${api.protocol}//${api.host.slice("api.".length)}` : api.origin;
};

/**
 * @param allowHosts lower-case hosts of PLATFORM_GIT_ALLOW_HOSTS. Only they may use http or private addresses.
 * @returns the addresses, or one sentence that says what is wrong with `api_url`.
 */
export const readCodeHost = (
  source: Pick<GithubSource, "owner" | "name" | "api_url">,
  allowHosts: ReadonlySet<string>,
): Result.Result<CodeHost, string> => {
  const api = (source.api_url ?? PUBLIC_API).replace(/\/+$/, "");
  // Checked in the form of a repository URL, which has a path.
  const apiUrl = parseRepositoryUrl(`${api}/repos`, allowHosts);
  if (Result.isFailure(apiUrl)) return Result.fail(apiUrl.failure);
  const { scheme, host } = apiUrl.success;
  if (scheme === "ssh") return Result.fail("must be the https URL of the API");
  const url = new URL(api);
  const path = url.pathname.replace(/\/$/, "");
  if (path !== "" && path !== ENTERPRISE_PATH) {
    return Result.fail(`must be a URL without a path, or with the path ${ENTERPRISE_PATH}`);
  }
  return Result.succeed({ api, host, git: `${gitOrigin(url)}/${source.owner}/${source.name}.git` });
};

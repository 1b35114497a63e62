/**
 * Where a repository may be imported from (api.md 2, "Repository sources"; threats.md G03): an absolute path the caller
 * has allowed, or https. The address a host name has is looked up once, checked, and is the one curl dials.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { isPrivateAddress, parseImportSource, type RepositoryUrl } from "../domain/repository.ts";
import { GitError } from "./port.ts";

export interface Source {
  readonly protocol: "file" | "http" | "https";
  /** What git is given: the path, or the URL written out anew. */
  readonly address: string;
  readonly config: Readonly<Record<string, string>>;
}

const refuse = (message: string): GitError => new GitError({ code: "import_failed", message });

const resolveUrl = Effect.fnUntraced(function* ({ host, href }: RepositoryUrl, isAllowed: boolean) {
  const found = yield* Effect.tryPromise({
    try: () => lookup(host),
    catch: () => refuse(`The host ${host} is not known.`),
  });
  if (!isAllowed && isPrivateAddress(found.address)) {
    return yield* refuse(`The host ${host} has a private address; the operator would have to allow it.`);
  }
  const url = new URL(href);
  // A name with a dot behind it is the same host to the resolver, and not the same to curl.
  if (isIP(host) === 0) url.hostname = host;
  const protocol: Source["protocol"] = url.protocol === "http:" ? "http" : "https";
  const port = url.port === "" ? (protocol === "http" ? "80" : "443") : url.port;
  const dialled = found.family === 6 ? `[${found.address}]` : found.address;
  const source: Source = {
    protocol,
    address: url.href,
    config: isIP(host) === 0 ? { "http.curloptResolve": `${host}:${port}:${dialled}` } : {},
  };
  return source;
});

/** Reads an import's source; refuses (`import_failed`) what is neither an absolute path nor a public https address. */
export const checkSource = (text: string, allowHosts: readonly string[]): Effect.Effect<Source, GitError> => {
  const allowed = new Set(allowHosts);
  const parsed = parseImportSource(text, allowed);
  if (Result.isFailure(parsed)) return Effect.fail(refuse(parsed.failure));
  const source = parsed.success;
  return source.kind === "path"
    ? Effect.succeed({ protocol: "file", address: source.path, config: {} })
    : resolveUrl(source.url, allowed.has(source.url.host));
};

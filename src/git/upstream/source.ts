/**
 * Which repositories the service may contact (api.md 2, "Repository sources"; threats.md G03). An import's source is an
 * absolute path that the caller has allowed, or https. A repository that stays at its server has an https or ssh URL. A
 * host name's address is resolved once and checked, and exactly that address is dialled.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import {
  isPrivateAddress,
  parseImportSource,
  parseRepositoryUrl,
  type RepositoryUrl,
} from "../../domain/repository.ts";
import { GitError } from "../port.ts";

export interface Source {
  readonly protocol: "file" | "http" | "https";
  /** The path, or the normalised URL, for git. */
  readonly address: string;
  readonly config: Readonly<Record<string, string>>;
}

const refuse = (message: string): GitError => new GitError({ code: "import_failed", message });

/** How long resolving a host name may take. */
const lookupFor = "10 seconds";

/** The one address that is dialled for a URL. */
interface Dialled {
  readonly port: string;
  /** In brackets if it is IPv6. */
  readonly address: string;
  /** The host is a name, so the client must be told its address. */
  readonly named: boolean;
}

const PORTS: Readonly<Record<RepositoryUrl["scheme"], string>> = { http: "80", https: "443", ssh: "22" };

/**
 * Resolves the host once and checks the address, which is then dialled. Null if it is private and not allowed,
 * `unknown` if the host does not exist.
 */
const dial = ({ host, href, scheme }: RepositoryUrl, isAllowed: boolean) =>
  Effect.tryPromise(() => lookup(host)).pipe(
    Effect.timeout(lookupFor),
    Effect.map(({ address, family }): Dialled | null =>
      !isAllowed && isPrivateAddress(address)
        ? null
        : {
            port: new URL(href).port || PORTS[scheme],
            address: family === 6 ? `[${address}]` : address,
            named: isIP(host) === 0,
          },
    ),
    Effect.orElseSucceed(() => "unknown" as const),
  );

const webSource = ({ host, href, scheme }: RepositoryUrl, { port, address, named }: Dialled): Source => {
  const url = new URL(href);
  // To the resolver, a name with a trailing dot is the same host; to curl it is not.
  if (named) url.hostname = host;
  return {
    protocol: scheme === "http" ? "http" : "https",
    address: url.href,
    config: named ? { "http.curloptResolve": `${host}:${port}:${address}` } : {},
  };
};

const resolveUrl = Effect.fnUntraced(function* (url: RepositoryUrl, isAllowed: boolean) {
  const dialled = yield* dial(url, isAllowed);
  if (dialled === "unknown") return yield* refuse(`The host ${url.host} cannot be resolved.`);
  if (dialled !== null) return webSource(url, dialled);
  return yield* refuse(privateHost(url.host));
});

const privateHost = (host: string): string =>
  `The host ${host} has a private address. The operator can allow it in PLATFORM_GIT_ALLOW_HOSTS.`;

/** A repository at another server: `web` for http(s), or ssh with the address to dial. */
export type Remote = { readonly web: Source; readonly origin: string } | { readonly ssh: SshAddress };

export interface SshAddress {
  readonly url: string;
  /** The host's name in known_hosts. */
  readonly host: string;
  readonly port: string;
  readonly address: string;
}

/**
 * Reads the URL of a repository at another server. Fails with `refused` if it is not allowed, otherwise with
 * `unavailable`.
 */
export const checkRemote = Effect.fnUntraced(function* (
  text: string,
  allowHosts: readonly string[],
): Effect.fn.Return<Remote, GitError> {
  const allowed = new Set(allowHosts);
  const parsed = parseRepositoryUrl(text, allowed);
  if (Result.isFailure(parsed)) return yield* new GitError({ code: "refused", message: parsed.failure });
  const url = parsed.success;
  const dialled = yield* dial(url, allowed.has(url.host));
  if (dialled === null) return yield* new GitError({ code: "refused", message: privateHost(url.host) });
  if (dialled === "unknown") {
    return yield* new GitError({ code: "unavailable", message: `The host ${url.host} cannot be resolved.` });
  }
  if (url.scheme !== "ssh") {
    const web = webSource(url, dialled);
    return { web, origin: new URL(web.address).origin };
  }
  const { port, address } = dialled;
  return { ssh: { url: url.href, host: url.host, port, address: address.replace(/^\[|\]$/g, "") } };
});

/** Reads an import's source. Refuses (`import_failed`) anything but an absolute path and a public https address. */
export const checkSource = (text: string, allowHosts: readonly string[]): Effect.Effect<Source, GitError> => {
  const allowed = new Set(allowHosts);
  const parsed = parseImportSource(text, allowed);
  if (Result.isFailure(parsed)) return Effect.fail(refuse(parsed.failure));
  const source = parsed.success;
  return source.kind === "path"
    ? Effect.succeed({ protocol: "file", address: source.path, config: {} })
    : resolveUrl(source.url, allowed.has(source.url.host));
};

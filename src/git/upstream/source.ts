/**
 * Which repositories the service may contact (api.md 2, "Repository sources"; threats.md G03). An import's source is an
 * absolute path that the caller has allowed, or https. A repository that stays at its server has an https or ssh URL. Git
 * dials itself, so it gets the one address that was checked, and of several the first that answered. It resolves no name.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { isIP } from "node:net";
import {
  parseImportSource,
  parseRepositoryUrl,
  type RepositoryUrl,
} from "../../domain/repository/repository.ts";
import { trustedHosts, withoutBrackets } from "../../ground/net/address.ts";
import { chooseAddress, type Network } from "../../ground/net/dial.ts";
import { NetFault } from "../../ground/net/fault.ts";
import { GitError } from "../port.ts";

export interface Source {
  readonly protocol: "file" | "http" | "https";
  /** The path, or the normalised URL, for git. */
  readonly address: string;
  readonly config: Readonly<Record<string, string>>;
}

interface SourceOptions extends Network {
  /** PLATFORM_GIT_ALLOW_HOSTS */
  readonly allowHosts: readonly string[];
}

const refuse = (message: string): GitError => new GitError({ code: "import_failed", message });

/** The one address that is dialled for a URL. */
interface Dialled {
  readonly port: string;
  /** In brackets if it is IPv6. */
  readonly address: string;
  /** The host is a name, so the client must be told its address. */
  readonly named: boolean;
}

const PORTS: Readonly<Record<RepositoryUrl["scheme"], string>> = { http: "80", https: "443", ssh: "22" };

const dial = ({ host, href, scheme }: RepositoryUrl, { allowHosts, ...net }: SourceOptions) => {
  const port = new URL(href).port || PORTS[scheme];
  const allowances = trustedHosts(allowHosts, "PLATFORM_GIT_ALLOW_HOSTS");
  return Effect.tryPromise({
    try: () => chooseAddress({ host, port: Number(port) }, { ...net, allowances, connectMs: 10_000 }),
    catch: (error) => (error instanceof NetFault ? error : new NetFault(host, { _tag: "NoSuchName" })),
  }).pipe(
    Effect.map((address): Dialled => ({
      port,
      address: isIP(address) === 6 ? `[${address}]` : address,
      named: isIP(host) === 0,
    })),
  );
};

const hostMessage = (fault: NetFault): string => `The host ${fault.message}.`;

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

/** A repository at another server: `web` for http(s), or ssh with the address to dial. */
export type Remote = { readonly address: string } & (
  | { readonly web: Source; readonly origin: string }
  | { readonly ssh: SshAddress }
);

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
  options: SourceOptions,
): Effect.fn.Return<Remote, GitError> {
  const repository = parseRepositoryUrl(text, new Set(options.allowHosts));
  if (Result.isFailure(repository))
    return yield* new GitError({ code: "refused", message: repository.failure });
  const url = repository.success;
  const connection = yield* dial(url, options).pipe(
    Effect.mapError(
      (fault) =>
        new GitError({
          code: fault.reason._tag === "ForbiddenAddress" ? "refused" : "unavailable",
          message: hostMessage(fault),
        }),
    ),
  );
  if (url.scheme !== "ssh") {
    const web = webSource(url, connection);
    return { address: connection.address, web, origin: new URL(web.address).origin };
  }
  const { port, address } = connection;
  return { address, ssh: { url: url.href, host: url.host, port, address: withoutBrackets(address) } };
});

/** Reads an import's source. Refuses (`import_failed`) anything but an absolute path and a public https address. */
export const checkSource = (text: string, options: SourceOptions): Effect.Effect<Source, GitError> => {
  const importSource = parseImportSource(text, new Set(options.allowHosts));
  if (Result.isFailure(importSource)) return Effect.fail(refuse(importSource.failure));
  const source = importSource.success;
  return source.kind === "path"
    ? Effect.succeed({ protocol: "file", address: source.path, config: {} })
    : dial(source.url, options).pipe(
        Effect.map((connection) => webSource(source.url, connection)),
        Effect.mapError((fault) => refuse(hostMessage(fault))),
      );
};

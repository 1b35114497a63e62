/**
 * Where a repository may be imported from (api.md 2, "Repository sources"; threats.md G03): an absolute path the caller
 * has allowed, or https. The address a host name has is looked up once, checked, and is the one curl dials.
 */
import * as Effect from "effect/Effect";
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { GitError } from "./port.ts";

export interface Source {
  readonly protocol: "file" | "http" | "https";
  /** What git is given: the path, or the URL written out anew. */
  readonly address: string;
  readonly config: Readonly<Record<string, string>>;
}

/** Addresses that are somebody's inside: this machine, its network, carrier NAT, link-local, multicast, reserved. */
const inside = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const) {
  inside.addSubnet(network, prefix, "ipv4");
}

/** IPv6 is taken where it is global unicast; the transition ranges carry IPv4 addresses and are not. */
const outside6 = new BlockList();
outside6.addSubnet("2000::", 3, "ipv6");
const transition6 = new BlockList();
transition6.addSubnet("2001::", 23, "ipv6");
transition6.addSubnet("2002::", 16, "ipv6");

/** True for an address of the public internet. */
export const isPublicAddress = (address: string): boolean => {
  if (isIP(address) === 4) return !inside.check(address, "ipv4");
  return isIP(address) === 6 && outside6.check(address, "ipv6") && !transition6.check(address, "ipv6");
};

const refuse = (message: string): GitError => new GitError({ code: "import_failed", message });

const controlPattern = /[\u0000-\u0020\u007f]/; // oxlint-disable-line no-control-regex -- what must not be in a URL

const checkUrl = Effect.fnUntraced(function* (text: string, allowHosts: readonly string[]) {
  const url = controlPattern.test(text) ? null : URL.parse(text);
  if (url === null || !/^https?:\/\/[^/]/i.test(text)) {
    return yield* refuse("A repository is imported from an https address, such as https://host/path.git.");
  }
  const allowed = allowHosts.includes(url.hostname) || allowHosts.includes(url.host);
  if (url.protocol === "http:" && !allowed) return yield* refuse("Plain http is not taken: use https.");
  if (url.username !== "" || url.password !== "") {
    return yield* refuse("The address may hold no user name or password.");
  }
  if (url.hash !== "" || url.search !== "")
    return yield* refuse("The address may hold no query and no fragment.");
  const host = url.hostname.replaceAll(/^\[|\]$/g, "");
  const found = yield* Effect.tryPromise({
    try: () => lookup(host),
    catch: () => refuse(`The host ${host} is not known.`),
  });
  if (!allowed && !isPublicAddress(found.address)) {
    return yield* refuse(
      `The host ${host} has an address of a private network; the operator would have to allow it.`,
    );
  }
  const protocol = url.protocol === "http:" ? "http" : "https";
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
export const checkSource = (text: string, allowHosts: readonly string[]): Effect.Effect<Source, GitError> =>
  text.startsWith("/") && !text.includes("\0")
    ? Effect.succeed({ protocol: "file", address: text, config: {} })
    : checkUrl(text, allowHosts);

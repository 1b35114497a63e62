/**
 * Which hosts and addresses may be dialled (threats.md G03, K08, O01, E21). A name that is public by its spelling may
 * still lead to a private address. So dial.ts resolves it, asks `dialRefusal` about each address, and dials these only.
 */
// Only the two pure parts of node:net, which compute with addresses and open nothing.
import { BlockList, isIP } from "node:net";

const HOST_NAME =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.?$/;

/** A host as the resolver gets it: an IPv6 address without the brackets of a URL. */
export const withoutBrackets = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

/** A host as programs compare it: `0x7f.1` is 127.0.0.1 (threats.md X03). Null if it is not a host. */
export const canonicalHost = (text: string): string | null => {
  if (!URL.canParse(`http://${text}/`)) return null;
  const host = withoutBrackets(new URL(`http://${text}/`).hostname).replace(/\.$/, "");
  return isIP(host) !== 0 || HOST_NAME.test(host) ? host : null;
};

/**
 * A host as the lists of operators have it, whatever its spelling. Names that only the operator's own resolver knows may
 * have characters that no other name has.
 */
export const comparableHost = (text: string): string => {
  const host = withoutBrackets(text);
  return canonicalHost(isIP(host) === 6 ? `[${host}]` : host) ?? host.toLowerCase().replace(/\.$/, "");
};

type Range = readonly [network: string, prefix: number];

/** Every range in IANA's registry of special-purpose IPv4 addresses that is not globally reachable. */
const PRIVATE_IPV4: readonly Range[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];
/** Ranges inside 2000::/3, the only range of global unicast: protocol assignments, documentation, and embedded IPv4. */
const PRIVATE_IPV6: readonly Range[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const blockList = (ranges: readonly Range[], family: "ipv4" | "ipv6"): BlockList => {
  const list = new BlockList();
  for (const [network, prefix] of ranges) list.addSubnet(network, prefix, family);
  return list;
};
const privateIpv4 = blockList(PRIVATE_IPV4, "ipv4");
const privateIpv6 = blockList(PRIVATE_IPV6, "ipv6");
const globalIpv6 = blockList([["2000::", 3]], "ipv6");

/**
 * Whether an address is not on the public network: loopback, link-local, private, shared, multicast, reserved. IPv6
 * forms that embed an IPv4 address (mapped, translated, tunnelled) always count as private, and so do addresses with a
 * zone, and text that is not an address.
 */
export const isPrivateAddress = (address: string): boolean => {
  switch (isIP(address)) {
    case 4:
      return privateIpv4.check(address, "ipv4");
    case 6:
      if (address.includes("%")) return true;
      return !globalIpv6.check(address, "ipv6") || privateIpv6.check(address, "ipv6");
    default:
      return true;
  }
};

/** Whether a canonical host is private by its spelling. A public name may still lead to a private address. */
export const isPrivateHost = (host: string): boolean =>
  isIP(host) === 0 ? /(?:^|\.)(?:localhost|local|internal)$/.test(host) : isPrivateAddress(host);

/** What a caller may dial beside public addresses over TLS. */
export interface Allowances {
  /**
   * Hosts as `comparableHost` writes them. The operator trusts each of their addresses, and plain HTTP to them. `every`:
   * the operator has named the one host that is dialled.
   */
  readonly hosts: ReadonlySet<string> | "every";
  /** The setting with these hosts, for messages. */
  readonly setting?: string;
  /** The addresses of this machine, if a caller may not dial them even where they are public. */
  readonly own?: (() => readonly string[]) | undefined;
}

/** The allowances of a list of hosts, and the setting that has it. */
export const trustedHosts = (hosts: readonly string[], setting?: string): Allowances => ({
  hosts: new Set(hosts.map(comparableHost)),
  ...(setting !== undefined && { setting }),
});

/** Whether the operator trusts a host, whatever its address is. */
export const isTrustedHost = (host: string, { hosts }: Allowances): boolean =>
  hosts === "every" || hosts.has(comparableHost(host));

/** Why an address of a host may not be dialled. Null if it may. */
export const dialRefusal = (
  address: string,
  host: string,
  allowances: Allowances,
): "private" | "own" | null => {
  if (isTrustedHost(host, allowances)) return null;
  if (isPrivateAddress(address)) return "private";
  return allowances.own?.().includes(address) === true ? "own" : null;
};

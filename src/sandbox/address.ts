/**
 * Which addresses the egress proxy may dial: those of the public internet. Everything that could lead back to this
 * machine, its network or a cloud's metadata service is refused, also where an IPv6 form carries an IPv4 address.
 */
import { BlockList, isIP } from "node:net";

/** IANA's special-purpose registries: loopback, link-local, private, shared, multicast, reserved, documentation. */
const NOT_PUBLIC_V4: readonly [string, number][] = [
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

/** The one range of IPv6 that is handed out for use on the public internet. */
const GLOBAL_V6: [string, number] = ["2000::", 3];

/** Within it: Teredo and other protocol assignments, documentation, 6to4 (which carries IPv4 addresses). */
const NOT_PUBLIC_V6: readonly [string, number][] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const refused = new BlockList();
for (const [network, prefix] of NOT_PUBLIC_V4) refused.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of NOT_PUBLIC_V6) refused.addSubnet(network, prefix, "ipv6");
const global = new BlockList();
global.addSubnet(...GLOBAL_V6, "ipv6");

/** @param address numeric, as a resolver returns it; anything else is not public */
export const isPublicAddress = (address: string): boolean => {
  switch (isIP(address)) {
    case 4:
      return !refused.check(address, "ipv4");
    case 6:
      return !address.includes("%") && global.check(address, "ipv6") && !refused.check(address, "ipv6");
    default:
      return false;
  }
};

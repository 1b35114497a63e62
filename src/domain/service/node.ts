/** A node's own addresses in an installation of several nodes (PLATFORM_NODE_HOST, PLATFORM_NODE_URL). */
import { BlockList, isIP } from "node:net";
import * as Result from "effect/Result";

/** Loopback and private networks: RFC 1918, RFC 6598 (overlay networks), RFC 4193. */
const PRIVATE = new BlockList();
for (const [network, bits] of [
  ["127.0.0.0", 8],
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["100.64.0.0", 10],
] as const) {
  PRIVATE.addSubnet(network, bits, "ipv4");
}
PRIVATE.addAddress("::1", "ipv6");
PRIVATE.addSubnet("fc00::", 7, "ipv6");

/** An IP address of loopback or of a private network. */
export const parseNodeHost = (text: string): Result.Result<string, string> =>
  isIP(text) !== 0 && PRIVATE.check(text, isIP(text) === 6 ? "ipv6" : "ipv4")
    ? Result.succeed(text)
    : Result.fail("an IP address of loopback or of a private network");

/** An origin for plain http, without a path. */
export const parseNodeUrl = (text: string): Result.Result<string, string> => {
  const url = URL.parse(text);
  return url !== null && url.protocol === "http:" && url.href === `${url.origin}/`
    ? Result.succeed(url.origin)
    : Result.fail("an http URL with only a host and a port");
};

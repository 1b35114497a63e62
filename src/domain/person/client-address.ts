/**
 * The address of a request's client behind reverse proxies. Each proxy appends the address that it was reached from to
 * X-Forwarded-For. A client can send the header too, so it counts from the right, and only as far as trusted proxies wrote it.
 */
// Only the two pure parts of node:net, which compute with addresses and open nothing.
import { BlockList, isIP } from "node:net";
import * as Result from "effect/Result";

/** Which addresses are the operator's own proxies. */
export interface TrustedProxies {
  /** @param address an IP address in its plain form */
  readonly trusts: (address: string) => boolean;
}

/** Without the setting, no proxy is trusted. */
export const NO_PROXIES: TrustedProxies = { trusts: () => false };

const BLOCKS_MAX = 100;
/** How many trusted proxies a request passes at most. */
const HOPS_MAX = 20;
const EXPECTED =
  `up to ${BLOCKS_MAX} IP addresses or CIDR blocks, separated by commas, with prefixes from 1: ` +
  "a block of all addresses would trust every client";

const MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;
/** How many bits of a mapped address come before its IPv4 address. */
const MAPPED_BITS = 96;

/** An address in one spelling: an IPv6 address that maps an IPv4 one is that. Null if it is no address. */
const plain = (text: string): string | null => {
  if (isIP(text) === 4) return text;
  if (isIP(text) === 0 || text.includes("%")) return null;
  const address = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const [, high = "", low = ""] = MAPPED.exec(address) ?? [];
  if (high === "") return address;
  const bytes = [high, low].flatMap((part) => {
    const value = Number.parseInt(part, 16);
    return [value >> 8, value & 255];
  });
  return bytes.join(".");
};

/** An address' network as one client may hold it: of an IPv6 address the /64, of any other the address itself. */
export const clientNetwork = (address: string | null): string | null => {
  const plainAddress = plain(address ?? "");
  if (plainAddress === null || isIP(plainAddress) === 4) return plainAddress;
  const [before = "", after] = plainAddress.split("::");
  const head = before === "" ? [] : before.split(":");
  const missing = after === undefined ? 0 : 8 - head.length - after.split(":").filter(Boolean).length;
  return [...head, ...Array.from({ length: missing }, () => "0"), ...(after ?? "").split(":")]
    .slice(0, 4)
    .join(":");
};

const addressFamily = (address: string): "ipv4" | "ipv6" => (isIP(address) === 4 ? "ipv4" : "ipv6");

/** Adds an address or a block. False: it is neither. */
const addBlock = (list: BlockList, text: string): boolean => {
  const [, written = "", prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const network = plain(written);
  if (network === null) return false;
  const family = addressFamily(network);
  const most = family === "ipv4" ? 32 : 128;
  const isMapped = family === "ipv4" && written.includes(":");
  const bits = prefix === undefined ? most : Number(prefix) - (isMapped ? MAPPED_BITS : 0);
  if (bits < 1 || bits > most) return false;
  list.addSubnet(network, bits, family);
  return true;
};

/** Reads PLATFORM_TRUSTED_PROXIES. */
export const parseTrustedProxies = (text: string): Result.Result<TrustedProxies, string> => {
  const blocks = text
    .split(",")
    .map((block) => block.trim())
    .filter((block) => block !== "");
  const list = new BlockList();
  if (blocks.length > BLOCKS_MAX || !blocks.every((block) => addBlock(list, block)))
    return Result.fail(EXPECTED);
  return Result.succeed({ trusts: (address) => list.check(address, addressFamily(address)) });
};

/** The address of one entry of X-Forwarded-For, without brackets and port. Null if it names no address. */
const parseHop = (entry: string): string | null => {
  const text = entry.trim();
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? plain(bracketed) : null;
  const [, before] = /^([\d.]+):\d{1,5}$/.exec(text) ?? [];
  return plain(before ?? text);
};

/**
 * The address that a request comes from: the first one from the right that is no trusted proxy. An entry that is no address
 * ends the search at the proxy that wrote it.
 *
 * @param connection the address of the connection, as the listener sees it. Null if unknown.
 * @param header X-Forwarded-For, with its values joined by commas.
 */
export const clientAddress = (
  connection: string | null,
  header: string | undefined,
  { trusts }: TrustedProxies,
): string | null => {
  let trustedHop = plain(connection ?? "");
  if (trustedHop === null || header === undefined || !trusts(trustedHop)) return connection;
  let end = header.length;
  for (let hop = 0; hop < HOPS_MAX && end >= 0; hop += 1) {
    const start = header.lastIndexOf(",", end - 1) + 1;
    const address = parseHop(header.slice(start, end));
    if (address === null) return trustedHop;
    trustedHop = address;
    if (!trusts(address)) return trustedHop;
    end = start - 1;
  }
  return trustedHop;
};

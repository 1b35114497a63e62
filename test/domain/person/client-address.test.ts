import { describe, expect, it } from "vitest";
import * as Result from "effect/Result";
import {
  clientAddress,
  clientNetwork,
  NO_PROXIES,
  parseTrustedProxies,
} from "../../../src/domain/person/client-address.ts";

const PROXIES = Result.getOrThrow(
  parseTrustedProxies("127.0.0.1, 10.0.0.0/8, ::1, 2001:db8:aa::/48, ::ffff:192.168.0.0/112"),
);
const CLIENT = "203.0.113.7";

describe("the client's address", () => {
  it.each([
    ["no header", "10.0.0.1", undefined, "10.0.0.1"],
    ["one proxy", "10.0.0.1", CLIENT, CLIENT],
    ["two proxies", "127.0.0.1", `${CLIENT}, 10.9.9.9`, CLIENT],
    ["a client that forges entries", "10.0.0.1", `1.1.1.1, 10.1.1.1, ${CLIENT}`, CLIENT],
    ["a client that is no proxy and forges the header", "198.51.100.1", CLIENT, "198.51.100.1"],
    ["nothing but proxies", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["a proxy that writes a port", "10.0.0.1", `${CLIENT}:4711`, CLIENT],
    ["an IPv6 client in brackets with a port", "::1", "[2001:DB8::0007]:443", "2001:db8::7"],
    ["an IPv6 client without brackets", "::1", "2001:db8::7", "2001:db8::7"],
    ["an IPv6 proxy of a block", "2001:db8:aa::1", `${CLIENT}, 2001:db8:aa:1::5`, CLIENT],
    ["a mapped connection", "::ffff:127.0.0.1", CLIENT, CLIENT],
    ["a mapped entry of a proxy", "127.0.0.1", `${CLIENT}, ::ffff:10.0.0.9`, CLIENT],
    ["a mapped client", "127.0.0.1", "::ffff:cb00:7107", CLIENT],
    ["a proxy of a mapped block", "192.168.255.1", CLIENT, CLIENT],
    ["a neighbour of a mapped block", "192.169.0.1", CLIENT, "192.169.0.1"],
    ["an unknown connection", null, CLIENT, null],
  ])("of %s is found", (_, connection, header, expected) => {
    expect(clientAddress(connection, header, PROXIES)).toBe(expected);
  });

  it.each([
    "",
    ",",
    " , ",
    "unknown",
    "_hidden",
    "999.1.1.1",
    "1.2.3",
    "0x7f.1",
    "[1.2.3.4]",
    "[::1",
    "::1]",
    "fe80::1%eth0",
    "1.2.3.4:99999999",
    '"1.2.3.4"',
    "for=1.2.3.4",
    `${CLIENT};`,
    "\u0000",
    "x".repeat(16_000),
  ])("of the garbage %j is that of the proxy that passed it on [T17]", (garbage) => {
    expect(clientAddress("10.0.0.1", garbage, PROXIES)).toBe("10.0.0.1");
    expect(clientAddress("10.0.0.1", `${CLIENT}, ${garbage}`, PROXIES)).toBe("10.0.0.1");
    expect(clientAddress("10.0.0.1", `${garbage}, ${CLIENT}`, PROXIES)).toBe(CLIENT);
  });

  it("of a header with 10,000 entries is read from the right alone [T17]", () => {
    const forged = Array.from({ length: 10_000 }, (_, place) => `1.1.${place >> 8}.${place & 255}`).join(",");
    expect(clientAddress("10.0.0.1", `${forged},${CLIENT}`, PROXIES)).toBe(CLIENT);
    const proxies = Array.from({ length: 10_000 }, () => "10.0.0.2").join(",");
    expect(clientAddress("10.0.0.1", `${CLIENT},${proxies}`, PROXIES)).toBe("10.0.0.2");
  });

  it("is the connection's if no proxy is trusted", () => {
    expect(clientAddress("::ffff:127.0.0.1", CLIENT, NO_PROXIES)).toBe("::ffff:127.0.0.1");
    const none = Result.getOrThrow(parseTrustedProxies(" , "));
    expect(clientAddress("127.0.0.1", CLIENT, none)).toBe("127.0.0.1");
  });
});

describe("the network of an address", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["2001:DB8::7", "2001:db8:0:0"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8:1:2:3::", "2001:db8:1:2"],
    ["::1", "0:0:0:0"],
    ["fe80::1%eth0", null],
    [null, null],
  ])("of %j is %j", (address, network) => {
    expect(clientNetwork(address)).toBe(network);
  });
});

describe("the list of trusted proxies", () => {
  it.each([
    "proxy.example.com",
    "10.0.0.0/33",
    "10.0.0.0/0",
    "::/0",
    "::1/129",
    "10.0.0.0/",
    "10.0.0.0/-1",
    "10.0.0/8",
    "::ffff:10.0.0.0/96",
    "::ffff:10.0.0.0/24",
    "10.0.0.1 10.0.0.2",
    Array.from({ length: 101 }, () => "10.0.0.1").join(","),
  ])("refuses %j", (text) => {
    expect(Result.isFailure(parseTrustedProxies(text))).toBe(true);
  });
});

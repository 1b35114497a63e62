/** Which addresses are public, and which hosts an operator's list means. */
import { expect, test } from "vitest";
import {
  comparableHost,
  dialRefusal,
  isPrivateAddress,
  trustedHosts,
} from "../../../src/ground/net/address.ts";

test.each([
  "1.1.1.1",
  "8.8.8.8",
  "172.15.255.255",
  "172.32.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "2606:4700::1111",
  "2a00:1450:4001:82a::200e",
])("%s is public", (address) => {
  expect(isPrivateAddress(address)).toBe(false);
});

test.each([
  "0.0.0.0",
  "10.255.255.255",
  "100.64.0.0",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.254",
  "169.254.169.254",
  "172.16.0.0",
  "172.31.255.255",
  "192.168.255.255",
  "198.19.255.255",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:10.0.0.1",
  "::ffff:0a00:0001",
  "::ffff:8.8.8.8",
  "::127.0.0.1",
  "64:ff9b::7f00:1",
  "2002:7f00:1::",
  "2001:0:7f00:1::",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "2606:4700::1111%eth0",
  "ff02::1",
  "2001:db8::1",
  "example.org",
  "localhost",
  "127.1",
  "",
])("%j is not public [G03]", (address) => {
  expect(isPrivateAddress(address)).toBe(true);
});

test.each([
  ["Git.Example.ORG.", "git.example.org"],
  ["0x7f.1", "127.0.0.1"],
  ["[FD00::1]", "fd00::1"],
  ["fd00:0::1", "fd00::1"],
  ["my~host", "my~host"],
])("the host %j is compared as %j", (written, host) => {
  expect(comparableHost(written)).toBe(host);
});

test("a host of the operator's list may have any address, and a host below it may not", () => {
  const allowances = trustedHosts(["Inside.Example.org"], "PLATFORM_LIST");
  expect(dialRefusal("10.0.0.1", "inside.example.ORG.", allowances)).toBeNull();
  expect(dialRefusal("10.0.0.1", "x.inside.example.org", allowances)).toBe("private");
});

const own = () => ["93.184.216.34"];

test("an address of this machine is refused to those who may not dial it, though it is public [O01]", () => {
  expect(dialRefusal("93.184.216.34", "me.example.org", { hosts: new Set(), own })).toBe("own");
  expect(dialRefusal("93.184.216.34", "me.example.org", { hosts: new Set() })).toBeNull();
  expect(
    dialRefusal("93.184.216.34", "me.example.org", { hosts: new Set(["me.example.org"]), own }),
  ).toBeNull();
});

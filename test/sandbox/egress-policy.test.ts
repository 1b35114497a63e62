import { describe, expect, it } from "vitest";
import { isPrivateAddress } from "../../src/domain/repository.ts";
import { type EgressPolicy, decideEgress } from "../../src/sandbox/egress-policy.ts";

const policy = (changes: Partial<EgressPolicy> = {}): EgressPolicy => ({
  allow: [],
  secretNames: [],
  serviceUrl: "http://127.0.0.1:8080",
  llmUpstream: null,
  ...changes,
});

const kind = (changes: Partial<EgressPolicy>, host: string, port = 443): string =>
  decideEgress(policy(changes), host, port).kind;

describe("the egress policy of a sandbox", () => {
  it("means the service by platform.internal, in any spelling, on port 80 alone", () => {
    for (const host of ["platform.internal", "PLATFORM.internal", "platform.internal."]) {
      expect(kind({}, host, 80)).toBe("origin");
    }
    expect(kind({ allow: ["*"] }, "platform.internal", 443)).toBe("refused");
  });

  it("never sends a name below platform.internal to another machine", () => {
    expect(kind({ allow: ["*", "x.platform.internal"] }, "x.platform.internal", 80)).toBe("refused");
  });

  it("matches listed hosts exactly, and patterns below their domain only", () => {
    const allow = ["example.org", "*.example.net"];
    expect(kind({ allow }, "Example.ORG")).toBe("public");
    expect(kind({ allow }, "sub.example.org")).toBe("refused");
    expect(kind({ allow }, "a.b.example.net")).toBe("public");
    expect(kind({ allow }, "example.net")).toBe("refused");
    expect(kind({ allow }, "evilexample.net")).toBe("refused");
  });

  it("allows only ports 80 and 443", () => {
    const open = [80, 443].map((port) => kind({ allow: ["*"] }, "example.org", port));
    const closed = [0, 22, 25, 8080, 65_536].map((port) => kind({ allow: ["*"] }, "example.org", port));
    expect([open, closed]).toEqual([Array(2).fill("public"), Array(5).fill("refused")]);
  });

  it("finds model hosts by the names of secrets, and ignores other secrets", () => {
    expect(kind({ secretNames: ["OPENAI_API_KEY"] }, "api.openai.com")).toBe("public");
    expect(kind({ secretNames: ["constructor", "__proto__", "DATABASE_URL"] }, "api.openai.com")).toBe(
      "refused",
    );
  });
});

describe("public addresses", () => {
  it("exclude addresses of this machine and its network, and reserved ones", () => {
    const refused = [
      "0.0.0.0",
      "10.1.2.3",
      "100.64.0.1",
      "100.127.255.255",
      "127.0.0.1",
      "169.254.169.254",
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "198.18.0.1",
      "224.0.0.1",
      "255.255.255.255",
      "::",
      "::1",
      "::ffff:127.0.0.1",
      "::ffff:8.8.8.8",
      "::7f00:1",
      "64:ff9b::7f00:1",
      "2002:7f00:1::",
      "2001:0:7f00:1::",
      "fc00::1",
      "fd00:ec2::254",
      "fe80::1",
      "fe80::1%eth0",
      "ff02::1",
      "2001:db8::1",
      "localhost",
      "127.1",
      "",
    ];
    expect(refused.filter((address) => !isPrivateAddress(address))).toEqual([]);
  });

  it("include all others", () => {
    const open = [
      "1.1.1.1",
      "8.8.8.8",
      "100.63.255.255",
      "100.128.0.1",
      "172.32.0.1",
      "2606:4700::1111",
      "2a00:1450::1",
    ];
    expect(open.filter(isPrivateAddress)).toEqual([]);
  });
});

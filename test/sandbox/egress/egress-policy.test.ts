import { describe, expect, it } from "vitest";
import { type EgressPolicy, decideEgress, serviceAddresses } from "../../../src/sandbox/egress-policy.ts";

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

  it("is closed for the service by its public URL, by its node's address and by the names of previews [X25]", () => {
    const node = {
      host: "0.0.0.0",
      publicUrl: "https://agents.example",
      nodeUrl: "http://node-1.example:8080",
      previewUrl: { scheme: "https", suffix: ".preview.example", port: "" } as const,
    };
    const own = serviceAddresses(node, 8080);
    expect(own).toEqual({
      serviceUrl: "http://127.0.0.1:8080",
      serviceHosts: ["agents.example", "node-1.example", "*.preview.example"],
    });
    for (const host of ["agents.example", "node-1.example", "x.preview.example"])
      expect(kind({ ...own, allow: ["*"] }, host)).toBe("refused");
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

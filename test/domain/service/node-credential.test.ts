import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  openNodeMessage,
  sealNodeMessage,
  signNodeRequest,
  verifyNodeRequest,
} from "../../../src/domain/service/node-credential.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const keys = { credential: new Uint8Array(32).fill(1), seal: new Uint8Array(32).fill(2) };
const request = { to: "receiver", method: "POST", target: "/v1/nodes/call?x=1" };
const sent = { from: "sender", at: NOW };
const header = signNodeRequest(request, sent, keys);
const verify = (headers: readonly string[], changed: Partial<typeof request & { now: number }> = {}) =>
  verifyNodeRequest(headers, { ...request, now: NOW, ...changed }, keys);

describe("a node's credential", () => {
  it("names its sender", () => {
    expect(verify([header])).toBe("sender");
  });

  it.each([
    ["another receiver", { to: "other" }],
    ["another method", { method: "GET" }],
    ["another target", { target: "/v1/nodes/call?x=2" }],
    ["a minute later", { now: NOW + 60_001 }],
    ["a minute before", { now: NOW - 60_001 }],
  ])("is invalid for %s", (_, changed) => {
    expect(verify([header], changed)).toBeNull();
  });

  it("is valid between clocks that differ by less than a minute", () => {
    expect([verify([header], { now: NOW + 60_000 }), verify([header], { now: NOW - 60_000 })]).toEqual([
      "sender",
      "sender",
    ]);
  });

  it("is refused if it is missing, sent twice, or made with another key", () => {
    const stranger = signNodeRequest(request, sent, { ...keys, credential: new Uint8Array(32).fill(3) });
    expect([verify([]), verify([header, header]), verify([stranger])]).toEqual([null, null, null]);
  });

  it("is refused with any character changed, left out, or appended", () => {
    for (let at = 0; at < header.length; at += 1) {
      const other = header[at] === "1" ? "2" : "1";
      expect(verify([header.slice(0, at) + other + header.slice(at + 1)]), `changed at ${at}`).toBeNull();
      expect(verify([header.slice(0, at) + header.slice(at + 1)]), `left out at ${at}`).toBeNull();
    }
    for (const tail of ["=", ".", "A", " ", "\n"]) expect(verify([header + tail])).toBeNull();
  });
});

describe("an encrypted message between nodes", () => {
  const envelope = { credential: header, way: "question" } as const;
  const seal = (text: string) => sealNodeMessage(text, { envelope, iv: randomBytes(12) }, keys);

  it("arrives as it was sent, and cannot be read on the way", () => {
    const sealed = seal("a secret: \u{1f511}");
    expect(openNodeMessage(sealed, envelope, keys)).toBe("a secret: \u{1f511}");
    expect(sealed.includes("secret")).toBe(false);
  });

  it("does not decrypt as the answer, with another credential or key, changed, or cut", () => {
    const sealed = seal("text");
    expect(openNodeMessage(sealed, { ...envelope, way: "answer" }, keys)).toBeNull();
    expect(openNodeMessage(sealed, { ...envelope, credential: `${header}x` }, keys)).toBeNull();
    expect(openNodeMessage(sealed, envelope, { ...keys, seal: new Uint8Array(32) })).toBeNull();
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(openNodeMessage(changed, envelope, keys)).toBeNull();
      expect(openNodeMessage(sealed.subarray(0, at), envelope, keys)).toBeNull();
    }
  });
});

import { Webhook } from "standardwebhooks";
import { expect, it } from "vitest";
import {
  makeOutboundSecret,
  outboundSecretFault,
  signatureHeaders,
} from "../../../src/features/notifications/rules/outbound-signature.ts";

it("is what the standard's library verifies, with either of two secrets", () => {
  const secrets = [1, 2].map((byte) => makeOutboundSecret(new Uint8Array(32).fill(byte)));
  const timestamp = Math.floor((performance.timeOrigin + performance.now()) / 1000);
  const headers = signatureHeaders(secrets, { id: "evt_1", timestamp, body: '{"a":1}' });
  for (const secret of secrets) expect(new Webhook(secret).verify('{"a":1}', headers)).toEqual({ a: 1 });
  expect(() => new Webhook(secrets[0] ?? "").verify('{"a":2}', headers)).toThrow(/signature/);
});

it("takes secrets of 24 to 64 bytes in exact base64", () => {
  for (const [bytes, isValid] of [
    [23, false],
    [24, true],
    [64, true],
    [65, false],
  ] as const)
    expect(outboundSecretFault(makeOutboundSecret(new Uint8Array(bytes))) === null).toBe(isValid);
  expect(outboundSecretFault("whsec_not base64 at all, but long enough to be one")).not.toBe(null);
});

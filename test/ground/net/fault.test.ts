/** The words for hosts that cannot be reached. */
import { expect, it } from "vitest";
import { type NetCause, NetFault } from "../../../src/ground/net/fault.ts";

const REFUSING = { address: "10.0.0.5", port: 443, why: "refuses connections" };
const setting = "PLATFORM_CONNECTOR_ALLOW_HOSTS";

it.each<readonly [NetCause, string]>([
  [{ _tag: "NoSuchName" }, "cannot be resolved"],
  [{ _tag: "Tls", code: "CERT_HAS_EXPIRED" }, "cannot be reached over TLS (CERT_HAS_EXPIRED)"],
  [{ _tag: "Late", ms: 10_000 }, "did not answer within 10 s"],
  [
    { _tag: "NotConnected", attempts: [REFUSING, { ...REFUSING, address: "10.0.0.6" }] },
    "cannot be reached (it refuses connections)",
  ],
  [{ _tag: "ForbiddenAddress", address: "10.0.0.5", kind: "private", setting }, "has a private address"],
  [{ _tag: "PlainHttp", setting }, "is not reached, because its URL is not https"],
  [{ _tag: "Redirect", to: "https://10.0.0.5", kind: "refused" }, "redirects to another place"],
])("tells a sandbox of %j without an address: %s", (cause, words) => {
  expect(new NetFault("gateway.example.org", cause).discreetWhy).toBe(words);
});

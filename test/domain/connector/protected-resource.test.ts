import { expect, test } from "vitest";
import {
  coversUrl,
  readChallenge,
  resourceMetadataUrls,
  defaultResource,
  serverMetadataUrls,
} from "../../../src/domain/connector/protected-resource.ts";

test.each([
  [null, { metadata: null, scope: null }],
  ["Bearer", { metadata: null, scope: null }],
  [
    'Basic realm="x", Bearer error="invalid_token", resource_metadata="https://a.example/m", scope="read write"',
    { metadata: "https://a.example/m", scope: "read write" },
  ],
  ["Bearer resource_metadata=https://a.example/m", { metadata: "https://a.example/m", scope: null }],
  [String.raw`Bearer scope="a\"b", scope="second"`, { metadata: null, scope: 'a"b' }],
])("reads the challenge %o", (header, expected) => {
  expect(readChallenge(header)).toEqual(expected);
});

test("looks for a server's metadata at the place of its path, then at its root", () => {
  const root = "https://a.example/.well-known/oauth-protected-resource";
  expect(resourceMetadataUrls("https://a.example/mcp")).toEqual([`${root}/mcp`, root]);
  expect(resourceMetadataUrls("https://a.example/")).toEqual([root]);
  expect(serverMetadataUrls("https://b.example/tenant")).toEqual([
    "https://b.example/.well-known/oauth-authorization-server/tenant",
    "https://b.example/.well-known/openid-configuration/tenant",
    "https://b.example/tenant/.well-known/openid-configuration",
  ]);
});

test.each([
  ["https://a.example/mcp", true],
  ["https://a.example", true],
  ["https://a.example/", true],
  ["https://a.example/mc", false],
  ["https://a.example/mcp/x", false],
  ["http://a.example/mcp", false],
  ["https://evil.example/mcp", false],
  ["no URL", false],
])("takes metadata about %s for the server's own: %o", (resource, expected) => {
  expect(coversUrl(resource, "https://a.example/mcp")).toBe(expected);
});

test("names a server without metadata by its URL", () => {
  expect(defaultResource("https://a.example/mcp?x=1")).toBe("https://a.example/mcp?x=1");
});

/** A connector's catalogue as it is stored, and as it is used. */
import { expect, test } from "vitest";
import { catalogueFor, catalogueKey, acceptedTools } from "../../../src/services/connectors/connectors.ts";
import type { Connector } from "../../../src/domain/connector/connector.ts";

const connector = { slug: "docs", kind: "mcp", url: "https://mcp.example.com/mcp" } as Connector;
const tool = (name: string, more: object = {}) => ({
  name,
  description: "",
  inputSchema: { type: "object", ...more },
});

test("a stored catalogue is used by the rules of today, and only at its connector's address", () => {
  const catalogue = { tools: [tool("bad", { anyOf: [] }), tool("good")], leftOut: [] };
  const stored = {
    ...catalogueKey("project", connector),
    latest: { catalogue, pin: "pin", protocol: "2025-11-25", at: 0 },
    accepted: { catalogue, pin: "pin", at: 0, by: "person" },
    failure: null,
    triedAt: 0,
  };
  const used = catalogueFor(connector, stored);
  expect(acceptedTools(used).map(({ name }) => name)).toEqual(["good"]);
  expect(used?.latest?.catalogue.leftOut.map(({ name }) => name)).toEqual(["bad"]);
  expect(catalogueFor({ ...connector, url: "https://other.example.com/mcp" }, stored)).toBe(null);
});

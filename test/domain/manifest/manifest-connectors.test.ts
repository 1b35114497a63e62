import { expect, test } from "vitest";
import { DIRECT_ALL_LIMIT } from "../../../src/domain/connector/connector.ts";
import { readExecutor } from "../../../src/domain/manifest/manifest-connectors.ts";

const direct = (slug: string) => Array.from({ length: 40 }, (_, number) => `${slug}_${number}`);

test("all connectors together show few tools by name, and those that are left out are named", () => {
  const connectors = ["one", "two"].map((slug) => ({
    slug,
    kind: "mcp",
    url: "https://example.com/mcp",
    direct: direct(slug),
  }));
  const { executor, errors } = readExecutor({ executor: undefined, connectors }, "");
  expect(executor.connectors.map((connector) => connector.direct.length)).toEqual([
    40,
    DIRECT_ALL_LIMIT - 40,
  ]);
  expect(errors).toMatchObject([
    { path: "connectors[1].direct", message: expect.stringMatching(/Agents search for two_24, .*two_39\.$/) },
  ]);
});

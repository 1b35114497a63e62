/** The rows of the commands about connectors (rows.ts). */
import { NOWHERE, notFound, type Row, type World } from "./row.ts";

export const connectorRowsOf = (world: World): Readonly<Record<string, Row>> => ({
  "connectors list": {
    args: () => [],
    human:
      /^SLUG +STATE +TOOLS +TO ACCEPT +FETCHED +SERVER OR FAILURE\nwiki +\w+ +\d+ +\d+ .*127\.0\.0\.1:\d+\/mcp\n$/,
    json: "/connectors",
    refused: [["--project", NOWHERE], 4, notFound("Project")],
  },
  "connectors set-credential": {
    args: () => ["wiki"],
    input: "canary-credential\n",
    human: /^wiki: (?:needs_acceptance|ready)\.\n$/,
    json: { slug: "wiki" },
    refused: [["none"], 4, notFound("Connector")],
  },
  "connectors tools": {
    args: async () => (await world.connectedPin(), ["wiki"]),
    human:
      /^TOOL +STATE +POLICY +DESCRIPTION\nread +(?:new|accepted) +ask +Reads a page\.\npin: [0-9a-f]{64}\n$/,
    json: "/connectors/wiki/catalogue",
    refused: [["none"], 4, notFound("Connector")],
  },
  "connectors refresh": {
    args: async () => (await world.connectedPin(), ["wiki"]),
    human: /^TOOL +STATE .*\nread +/,
    json: { slug: "wiki", failure: null },
    refused: [["none"], 4, notFound("Connector")],
  },
  "connectors accept": {
    args: async () => ["wiki", await world.connectedPin()],
    human: /^1 tools of wiki accepted\n$/,
    json: { slug: "wiki", removed: [] },
    refused: [["wiki", "0"], 5, /are not those that you looked at/],
  },
  "connectors delete-credential": {
    args: async () => (await world.connectedPin(), ["wiki"]),
    human: /^The credential of wiki is deleted\.\n$/,
    json: {},
    refused: [["none"], 4, notFound("Credential")],
  },
  calls: {
    args: () => ["--limit", "1"],
    human: /^No calls\.\n$/,
    json: "/executor/calls?limit=1",
    refused: [["--cursor", "x"], 1, /cursor/],
  },
});

/** The gateway beside servers that fail: one never answers, one answers 500, and one is well. All three are real ones. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startMcpServer, textResult, type McpServer } from "../../support/servers/mcp-server.ts";
import { expectStatus, fields } from "../../support/service/requests.ts";
import { connectorEntry, ExecutorWorld, textOf } from "./executor-world.ts";

const SLUGS = ["hangs", "breaks", "well"] as const;
const ALLOWED = `direct = ["read"]\n[[connectors.tools]]\nmatch = "*"\npolicy = "allow"\n`;

const start = () => startMcpServer([{ name: "read", description: "Reads a page." }]);

let world: ExecutorWorld;
let servers: Readonly<Record<(typeof SLUGS)[number], McpServer>>;
beforeAll(async () => {
  world = await ExecutorWorld.start();
  servers = { hangs: await start(), breaks: await start(), well: await start() };
});
afterAll(async () => {
  await world.close();
  for (const slug of SLUGS) await servers[slug].close();
});

it("lists all tools while one server hangs, and the server that is well works beside one that answers 500", async () => {
  const entries = SLUGS.map((slug) => `${connectorEntry(slug, servers[slug].url)}${ALLOWED}`);
  const project = await world.newProject(entries.join(""));
  for (const slug of SLUGS) {
    expectStatus(await world.change(project, { action: "refresh" }, slug), 200);
    const { pin } = await world.catalogueOf(project, slug);
    expectStatus(await world.change(project, { action: "accept", pin }, slug), 200);
  }
  const { by, rows } = await world.freshSession(project);
  const held: (() => void)[] = [];
  servers.hangs.guard = () => new Promise((answer) => held.push(() => answer(false)));
  servers.breaks.instead = (_, response) => void response.writeHead(500).end("boom");
  servers.hangs.answers.set("read", () => textResult("late"));
  for (const slug of SLUGS) servers[slug].requests.length = 0;

  let over = 0;
  const counted = <A>(work: Promise<A>) => work.finally(() => (over += 1));
  const call = counted(world.call("hangs_read", {}, { by, project }));
  const refresh = counted(world.change(project, { action: "refresh" }, "hangs"));
  await expect.poll(() => held.length).toBe(2);

  const names = await world.withClient(async (client) => (await client.listTools()).tools, { by, project });
  expect(names.map(({ name }) => name)).toEqual([
    "call_result",
    "call_tool",
    "find_tools",
    "breaks_read",
    "hangs_read",
    "well_read",
  ]);
  expect(SLUGS.flatMap((slug) => servers[slug].requests)).toEqual([]);
  expect(textOf(await world.call("well_read", {}, { by, project }))).toBe("read ran");
  expect(textOf(await world.call("breaks_read", {}, { by, project }))).toContain(
    "answered with status 500: boom.",
  );
  expect(textOf(await world.call("find_tools", { query: "read" }, { by, project }))).toContain("hangs_read");
  // Neither has ended meanwhile.
  expect(over).toBe(0);
  servers.hangs.guard = null;
  for (const answer of held) answer();
  expect(textOf(await call)).toBe("late");
  expect(fields(expectStatus(await refresh, 200))["failure"]).toBeNull();
  expect((await rows()).map(({ connector, outcome }) => [connector, outcome])).toEqual([
    ["breaks", "error"],
    ["well", "ok"],
    ["hangs", "ok"],
  ]);
});

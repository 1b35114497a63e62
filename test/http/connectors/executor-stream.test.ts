/** `GET executor/mcp`: a client of the older revision hears that its tools have changed. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Client } from "@modelcontextprotocol/client";
import { readEvents, type EventReader } from "../../support/service/event-stream.ts";
import { eventually, expectStatus, mergeFiles, stopSession } from "../../support/service/requests.ts";
import { connectorEntry, ExecutorWorld, manifest } from "./executor-world.ts";

let world: ExecutorWorld;
beforeAll(async () => {
  world = await ExecutorWorld.start();
});
afterAll(() => world.close());
beforeEach(() => world.reset());

const LIST_CHANGED = "notifications/tools/list_changed";
const target = (pid: string) => `/v1/projects/${pid}/executor/mcp`;
const open = (pid: string, token: string): Promise<EventReader> =>
  readEvents(`${world.service.url}${target(pid)}`, { token });
/** How many changes were told to a reader. */
const heard = ({ events }: EventReader): number =>
  events.filter(({ data }) => (data as { readonly method?: string }).method === LIST_CHANGED).length;

/** A project with the connector, whose tools are not accepted yet, and a session of it. */
const unaccepted = async (text = manifest(world.server.url)) => {
  const pid = await world.newProject(text);
  const stored = { body: { value: "upstream-credential-1" } };
  expectStatus(
    await world.service.request("PUT", `/v1/projects/${pid}/connectors/wiki/credential`, stored),
    200,
  );
  return { pid, ...(await world.freshSession(pid)) };
};

const accept = async (pid: string) => {
  const { pin } = await world.catalogueOf(pid);
  expectStatus(await world.change(pid, { action: "accept", pin }), 200);
};

const namesOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);

it("tells the protocol's own client of a tool that was accepted in mid-session, and lists it", async () => {
  const { pid, by } = await unaccepted();
  await world.withClient(
    async (client) => {
      let changes = 0;
      client.setNotificationHandler(LIST_CHANGED, () => {
        changes += 1;
      });
      expect(client.getServerCapabilities()?.tools).toEqual({ listChanged: true });
      expect(await namesOf(client)).not.toContain("wiki_read");
      await accept(pid);
      await eventually(() => expect(changes).toBe(1));
      expect(await namesOf(client)).toContain("wiki_read");
    },
    { by, project: pid },
  );
});

it("does not promise the stream to clients of the newer revision, which have none", async () => {
  await world.withClient(
    async (client) => {
      expect(client.getServerCapabilities()?.tools).toEqual({ listChanged: false });
    },
    { mode: "auto" },
  );
});

it("tells of a merged manifest and of a tool that the server changed, and of nothing that no agent sees", async () => {
  const { pid, by } = await unaccepted();
  await accept(pid);
  const reader = await open(pid, by);
  expect([reader.status, reader.headers["content-type"]]).toEqual([200, "text/event-stream"]);
  // Another connector without a tool, and tools that are found and not listed.
  await mergeFiles(world.service, pid, {
    "platform.toml": manifest(world.server.url, connectorEntry("more", world.server.url)),
  });
  world.server.tools = [...world.server.tools, { name: "new", description: "A new tool." }];
  await world.change(pid, { action: "refresh" });
  await mergeFiles(world.service, pid, {
    "platform.toml": manifest(world.server.url).replace('direct = ["read", "publish"]', 'direct = ["read"]'),
  });
  await eventually(() => expect(heard(reader)).toBe(1));
  world.server.tools = [{ name: "read", description: "Reads another thing." }];
  await world.change(pid, { action: "refresh" });
  await eventually(() => expect(heard(reader)).toBe(2));
  await accept(pid);
  await eventually(() => expect(heard(reader)).toBe(3));
  reader.close();
});

it("ends with the session, also for a reader that has heard nothing [K21]", async () => {
  const { pid, by, session } = await unaccepted();
  const reader = await open(pid, by);
  await stopSession(world.service, pid, session);
  await eventually(() => expect(reader.ended()).toBe(true));
  expectStatus(await world.service.request("GET", target(pid), { token: by }), 401);
});

it("is open four times for a session at most, and again when one of them is closed [K21]", async () => {
  const { pid, by } = await unaccepted();
  const readers = [];
  for (let count = 0; count < 4; count += 1) readers.push(await open(pid, by));
  expect((await open(pid, by)).status).toBe(429);
  readers[0]?.close();
  await eventually(async () => {
    const again = await open(pid, by);
    again.close();
    expect(again.status).toBe(200);
  });
  for (const reader of readers) reader.close();
});

it.each([
  ["another host", { host: "evil.example" }],
  ["a page of another origin", { origin: "https://evil.example" }],
])("is refused to %s [K09]", async (_, headers) => {
  const answer = await world.service.request("GET", target(world.pid), { token: world.token, headers });
  expectStatus(answer, 403);
});

/** A session whose tools write more than anyone can keep, through the whole service: what it holds and sends stays bounded. */
import { request } from "node:http";
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectBare } from "../../support/postgres/bare.ts";
import { CONVERSATION_KEPT_MAX, ITEM_KEPT_MAX } from "../../../src/store/ports/sessions/conversations.ts";
import { DaemonFarm } from "../../support/servers/daemon-farm.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

/** 10,000 items with 200 MB of output in the deep tests. Of the sample, each output is longer than an item holds. */
const FLOOD = { tools: 10_000, length: 20_000 };
/** Limits of the contract, in bytes. */
const FRAME_MAX = 96 * 1024;
/** More than one conversation that is full, read and written at once, and less than the flood. */
const HEAP_MAX = 96 * 1024 * 1024;

let installation: Installation;
let farm: DaemonFarm;
let life: Life;
let session: LiveSession;

/** Reads the events, and notes the longest. */
const watch = () => {
  const { url, headers } = session.address("conversation/events?after=0");
  const longest = { bytes: 0, frames: 0 };
  const call = request(url, { headers, agent: false }, (response) => {
    let rest = "";
    response.setEncoding("utf8").on("data", (chunk: string) => {
      const frames = (rest + chunk).split("\n\n");
      rest = frames.pop() ?? "";
      for (const frame of frames) {
        longest.frames += 1;
        longest.bytes = Math.max(longest.bytes, Buffer.byteLength(frame) + 2);
      }
    });
    response.on("error", () => undefined);
  });
  call.on("error", () => undefined);
  call.end();
  return { longest, close: () => call.destroy() };
};

const rows = async () => {
  const password = readFileSync(path.join(installation.dataDir, "postgres-password"), "utf8").trim();
  const directory = encodeURIComponent(path.join(installation.dataDir, "postgres"));
  const client = await connectBare(
    `postgres://platform:${encodeURIComponent(password)}@localhost/postgres?host=${directory}`,
  );
  try {
    const { rows: found } = await client.query<Record<"largest" | "all" | "counted", string>>(
      `SELECT max(pg_column_size(record)) AS largest, sum(octet_length(record::text)) AS all,
         (SELECT max(bytes) FROM conversations) AS counted FROM conversation_items`,
    );
    return {
      largest: Number(found[0]?.largest),
      all: Number(found[0]?.all),
      counted: Number(found[0]?.counted),
    };
  } finally {
    await client.end();
  }
};

describe("a flood of output", () => {
  beforeAll(async () => {
    installation = await Installation.open();
    farm = await DaemonFarm.start(installation.directory);
    life = await installation.start(farm.settings, "measured");
    session = await LiveSession.start(life, installation);
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await farm?.end();
    await installation?.close();
  }, TEST_MS);

  it("leaves rows, events and the service's heap bounded [D08]", async () => {
    const reader = watch();
    const before = (await life.memory()).heapUsed;
    const id = session.path.split("/").at(-1) ?? "";
    const flooding = farm.order({ kind: "run", session: id, ...FLOOD });
    let most = 0;
    const newest = async () => {
      most = Math.max(most, (await life.memory()).heapUsed);
      const { items } = (await session.call("GET", "conversation?limit=1")) as {
        items: readonly { readonly tool: { readonly output: string } | null }[];
      };
      return items[0]?.tool?.output.split(" ")[0];
    };
    await flooding;
    await expect.poll(newest, { ...POLL, interval: 500 }).toBe(String(FLOOD.tools - 1));
    reader.close();
    expect(most - before).toBeLessThan(HEAP_MAX);
    expect(reader.longest.frames).toBeGreaterThan(FLOOD.tools / 100);
    expect(reader.longest.bytes).toBeLessThanOrEqual(FRAME_MAX);
    const { largest, all, counted } = await rows();
    expect(largest).toBeLessThanOrEqual(ITEM_KEPT_MAX);
    expect(counted).toBeLessThanOrEqual(CONVERSATION_KEPT_MAX);
    // JSON as Postgres writes it has a blank after each colon and comma.
    expect(all).toBeLessThanOrEqual(CONVERSATION_KEPT_MAX * 1.05);
  });
});

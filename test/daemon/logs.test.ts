import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { RING_BYTES } from "../../daemon/logs/log-ring.ts";
import { Running, TOKEN, type RunOptions } from "./support/running.ts";
import { Served } from "./support/served.ts";
import { WAIT_MS } from "../support/patience.ts";

const MIB = 1024 * 1024;
/** A limit for what hangs, not a claim about speed. */
const POLL = { timeout: WAIT_MS, interval: 20 };

let running: Running | null = null;
const readers: { leave: () => void }[] = [];
const start = async (options: RunOptions = {}): Promise<Running> => {
  running = await Running.start(options);
  return running;
};
afterEach(async () => {
  for (const { leave } of readers.splice(0)) leave();
  await running?.dispose();
  running = null;
});

interface Entry {
  readonly seq: number;
  readonly event: string;
  readonly line?: string;
}

/** Follows the log; `pause` stops taking from the connection. */
const follow = async (daemon: Running, after: number | null = null) => {
  const call = request({
    socketPath: daemon.layout.socket,
    path: "/platform/logs",
    headers: {
      "x-platform-user-context": daemon.context(),
      ...(after === null ? {} : { "last-event-id": String(after) }),
    },
    agent: false,
  });
  call.on("error", () => undefined);
  call.end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  const entries: Entry[] = [];
  let rest = "";
  response.on("error", () => undefined);
  response.setEncoding("utf8").on("data", (chunk: string) => {
    const frames = (rest + chunk).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const [, id, data = ""] = /^id: (\d+)\ndata: (.*)$/.exec(frame) ?? [];
      if (id === undefined) continue;
      const entry = JSON.parse(data) as Entry;
      expect(entry.seq).toBe(Number(id));
      entries.push(entry);
    }
  });
  const reader = { response, entries, leave: () => call.destroy() };
  readers.push(reader);
  return reader;
};

const seqs = (entries: readonly Entry[]): number[] => entries.map(({ seq }) => seq);
const upTo = (last: number, from = 1): number[] =>
  Array.from({ length: last - from + 1 }, (_, index) => from + index);

const say = (daemon: Running, ...pieces: readonly string[]) =>
  daemon.ask("/say", {
    method: "POST",
    headers: { "x-platform-user-context": daemon.context() },
    body: JSON.stringify(pieces),
  });

describe("the daemon's log over HTTP", () => {
  test("requires a signed context, and is read with GET on exactly its path [X07]", async () => {
    const daemon = await start();
    await daemon.logged("ready");
    expect((await daemon.ask("/platform/logs", { headers: {} })).status).toBe(401);
    const forged = { "x-platform-user-context": daemon.context({ token: "another" }) };
    expect((await daemon.ask("/platform/logs", { headers: forged })).status).toBe(401);
    expect((await daemon.ask("/platform/logs", { method: "POST" })).status).toBe(405);
    expect((await daemon.ask("/platform/logs/")).status).toBe(404);
  });

  test("streams boot steps, the daemon's actions and the runtime's output from the first line, and stays open", async () => {
    const daemon = await start();
    await daemon.logged("ready");
    const reader = await follow(daemon);
    expect(reader.response.headers["content-type"]).toBe("text/event-stream");
    await say(daemon, "a live line\n");
    await vi.waitFor(() => expect(reader.entries.at(-1)?.line).toBe("a live line"), POLL);
    expect(seqs(reader.entries)).toEqual(upTo(reader.entries.length));
    const steps = daemon.log.filter(({ event }) => event === "boot").map(({ step }) => step);
    expect(steps).toEqual(expect.arrayContaining(["listening", "credential", "cloned", "ready"]));
    expect(reader.entries.filter(({ event }) => event === "boot")).toHaveLength(steps.length);
    expect(reader.entries).toContainEqual(
      expect.objectContaining({ event: "output", source: "runtime", line: "the runtime says hello" }),
    );
  });

  test("resumes after the last line seen, without duplicates or gaps", async () => {
    const daemon = await start();
    await daemon.logged("ready");
    const first = await follow(daemon);
    await say(daemon, "one\n", "two\n");
    await vi.waitFor(() => expect(first.entries.at(-1)?.line).toBe("two"), POLL);
    first.leave();
    const seen = first.entries.at(-2)?.seq ?? 0;
    await say(daemon, "three\n");
    const second = await follow(daemon, seen);
    await vi.waitFor(() => expect(second.entries.map(({ line }) => line)).toEqual(["two", "three"]), POLL);
    expect(seqs(second.entries)).toEqual([seen + 1, seen + 2]);
  });
});

test("skips lines for a reader that does not read, shows the gap in their numbers, and blocks nothing", async () => {
  const served = await Served.start((_, response) => response.end("runtime"));
  const call = served.open("/platform/logs");
  call.on("error", () => undefined);
  call.end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  response.on("error", () => undefined);
  const text = "x".repeat(1000);
  // Four times what the ring holds, and more than any connection buffers.
  const count = Math.ceil((4 * RING_BYTES) / 1000);
  for (let n = 0; n < count; n += 1) {
    served.ring.add(() => text);
    // Portions go out between lines, as far as the connection takes them.
    if (n % 50 === 0) await new Promise(setImmediate);
  }
  let last = 0;
  let lines = 0;
  const take = (id: number): void => {
    expect(id).toBeGreaterThan(last);
    last = id;
    lines += 1;
  };
  let rest = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    const whole = (rest + chunk).split("\n");
    rest = whole.pop() ?? "";
    for (const line of whole) if (line.startsWith("id: ")) take(Number(line.slice(4)));
  });
  await vi.waitFor(() => expect(last).toBe(count), POLL);
  expect(lines).toBeLessThan(last);
  await served.stop();
});

test("contains no secret, even if it is written in two parts [I16, G05]", async () => {
  const daemon = await start({ agentEnv: { PROJECT_SECRET: "canary-secret-value" } });
  await daemon.logged("ready");
  const { password } = daemon.service.state;
  const canaries = [TOKEN, "canary-secret-value", password, "platform_pat_canary-of-the-user"];
  for (const canary of canaries) {
    await say(daemon, `whole ${canary}\nin two ${canary.slice(0, 7)}`, `${canary.slice(7)}\n`);
    await say(daemon, `as a URL ${encodeURIComponent(canary)} and \u001b[1m${canary}\n`);
  }
  await say(daemon, "the end\n");
  await daemon.logged("output", { line: "the end" });
  const reader = await follow(daemon);
  await vi.waitFor(() => expect(reader.entries.at(-1)?.line).toBe("the end"), POLL);
  const text = daemon.output + JSON.stringify(reader.entries) + JSON.stringify(await daemon.health());
  for (const canary of canaries) expect([canary, text.includes(canary)]).toEqual([canary, false]);
  expect(reader.entries.filter(({ line }) => line?.includes("[redacted]"))).toHaveLength(canaries.length * 3);
});

test("a failing daemon's last message contains no secret [I16]", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "0.0.0.0", () => resolve()));
  const { port } = taken.address() as AddressInfo;
  const daemon = await start({
    agentEnv: { PROJECT_SECRET: "EADDRINUSE" },
    environment: { PLATFORM_SERVICE_PORT: String(port) },
  });
  const failed = await daemon.logged("daemon failed");
  expect(failed["message"]).toContain("[redacted]: address already in use");
  expect(daemon.output).not.toContain("EADDRINUSE");
  await new Promise((resolve) => taken.close(resolve));
});

test("a flood of output neither fills the daemon's memory nor keeps its health from answering", async () => {
  const daemon = await start();
  await daemon.logged("ready");
  const reader = await follow(daemon);
  const flooding = daemon.ask("/flood");
  const asked: Promise<unknown>[] = [];
  // Asked one after the other for as long as it floods: each answer shows that the daemon has time for it.
  const flooded = Symbol("flooded");
  while ((await Promise.race([flooding.then(() => flooded), daemon.health()])) !== flooded)
    asked.push(daemon.health());
  expect(asked.length).toBeGreaterThan(0);
  for (const health of await Promise.all(asked)) expect(health).toMatchObject({ status: "ready" });
  const status = readFileSync(`/proc/${daemon.child?.pid ?? 0}/status`, "utf8");
  const peakKiB = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]);
  // A Node with much garbage takes about 200 MiB; the flood is 500 MB.
  expect(peakKiB).toBeLessThan(350 * 1024);
  await daemon.logged("output is dropped because it is faster than 1 MiB/s");
  await vi.waitFor(async () => {
    await say(daemon, "after the flood\n");
    expect(daemon.output.includes("after the flood")).toBe(true);
  }, POLL);
  await daemon.logged("output was dropped");
  await vi.waitFor(() => expect(reader.entries.at(-1)?.line).toBe("after the flood"), POLL);
});

test("starts a new output file if the old one is not trimmed, with the newest lines in it", async () => {
  const directory = (await start()).directory;
  await running?.dispose();
  const file = join(process.env["TMPDIR"] ?? "/tmp", `${directory.split("/").at(-1) ?? ""}-output`);
  writeFileSync(file, "old\n".repeat(2 * MIB + 1));
  const fd = openSync(file, "a");
  const daemon = await start({ outputFile: fd });
  await vi.waitFor(async () => expect((await daemon.health()).status).toBe("ready"), POLL);
  for (let n = 0; n < 3; n += 1) await say(daemon, `${"x".repeat(4000)}\n`.repeat(100));
  // Output beyond 1 MiB/s is left out: the runtime writes the line until the log accepts it.
  await vi.waitFor(async () => {
    await say(daemon, "the last line\n");
    expect(readFileSync(file, "utf8").includes("the last line")).toBe(true);
  }, POLL);
  const text = readFileSync(file, "utf8");
  closeSync(fd);
  expect(text.length).toBeLessThan(2 * MIB);
  const first = JSON.parse(text.split("\n", 1)[0] ?? "") as Entry;
  expect(first.seq).toBeGreaterThan(0);
});

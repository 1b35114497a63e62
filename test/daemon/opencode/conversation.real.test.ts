/** The daemon's report of a conversation of the real opencode: what its readers have is what opencode lists. */
import { existsSync } from "node:fs";
import { request } from "node:http";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { messageItems, TOP, type Place } from "../../../daemon/adapters/opencode/items.ts";
import { readMessage, type Recorded } from "../../../daemon/adapters/opencode/records.ts";
import type { ItemDraft } from "../../../daemon/adapters/adapter.ts";
import { cleanItem } from "../../../daemon/conversation/clean-item.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import type { HealthReport } from "../../../daemon/report.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { promptOf, TalkingModel, type Step } from "../../support/servers/talking-model.ts";
import { Follower } from "../support/follower.ts";
import { Running } from "../support/running.ts";
import { deepTest, rounds } from "../../support/vitest/rings.ts";

const OPENCODE = fileURLToPath(
  new URL("../../../node_modules/opencode-linux-x64/bin/opencode", import.meta.url),
);
const SECRET = "canary-secret-of-the-project";
const POLL = { timeout: WAIT_MS, interval: 50 };

/** Follows the conversation and is cut again and again, after a number of chunks that `next` tells. */
class CutReader {
  readonly follower = new Follower();
  cuts = 0;
  readonly #daemon: Running;
  readonly #next: () => number;
  #call: ReturnType<typeof request> | null = null;
  #ended = false;

  constructor(daemon: Running, next: () => number) {
    this.#daemon = daemon;
    this.#next = next;
    this.#follow();
  }

  end(): void {
    this.#ended = true;
    this.#call?.destroy();
  }

  #follow(): void {
    if (this.#ended) return;
    let left = this.#next();
    let rest = "";
    const call = request({
      socketPath: this.#daemon.layout.socket,
      path: `/platform/conversation?after=${this.follower.rev}`,
      headers: { "x-platform-user-context": this.#daemon.context() },
      agent: false,
    });
    this.#call = call;
    call.on("error", () => undefined);
    call.on("response", (response) => {
      response.on("error", () => undefined);
      response.setEncoding("utf8").on("data", (chunk: string) => {
        const text = rest + chunk;
        const end = text.lastIndexOf("\n") + 1;
        this.follower.take(text.slice(0, end));
        rest = text.slice(end);
        left -= 1;
        if (left === 0) call.destroy();
      });
    });
    call.on("close", () => {
      this.cuts += 1;
      this.#follow();
    });
    call.end();
  }
}

/** Without the numbers of versions, and without requests and notes, which no listing has. */
const comparable = (items: Iterable<ItemDraft>) =>
  [...items]
    .filter(({ kind }) => kind !== "request" && kind !== "note")
    .map((item) => Object.assign({}, item, { rev: 0 }))
    .toSorted((a, b) => (a.native_id < b.native_id ? -1 : 1));

describe.skipIf(!existsSync(OPENCODE))("the conversation of the real opencode", () => {
  let model: TalkingModel;
  let daemon: Running;
  let session: string;
  let turns = 0;
  const readers: CutReader[] = [];
  // oxlint-disable-next-line no-restricted-properties -- printed below
  let seed = Date.now() % 2_147_483_647;
  const next = (): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return 1 + (seed % 9);
  };

  const post = async (path: string, body: object): Promise<string> => {
    const headers = { "x-platform-user-context": daemon.context(), "content-type": "application/json" };
    return (await daemon.ask(path, { method: "POST", headers, body: JSON.stringify(body) })).body;
  };
  const get = async (path: string): Promise<unknown> => JSON.parse((await daemon.ask(path)).body) as unknown;
  const send = (steps: readonly Step[]): Promise<string> =>
    post(`/session/${session}/prompt_async`, {
      agent: "build",
      model: { providerID: "stub", modelID: "talking" },
      parts: [{ type: "text", text: promptOf(steps) }],
    });
  /** Waits for the next turn's end. */
  const ended = async (): Promise<HealthReport["turn"]["last"]> => {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- each question stays open until a turn ends
      const { last } = (await get(`/platform/turn?after=${turns}`)) as HealthReport["turn"];
      if (last === null || last.number <= turns) continue;
      turns = last.number;
      return last;
    }
  };
  const listing = async (id: string): Promise<readonly Recorded[]> =>
    ((await get(`/session/${id}/message`)) as { info: unknown; parts: unknown[] }[]).flatMap(
      (record) => readMessage(record) ?? [],
    );
  /** What opencode lists, as items that may leave the sandbox. */
  const listed = async () => {
    const redactor = new Redactor([SECRET]);
    const clean = (messages: readonly Recorded[], place: Place) =>
      messages
        .flatMap((message) => messageItems(message, place))
        .map((item) => cleanItem(item, redactor).item);
    const own = clean(await listing(session), TOP);
    const task = own.find(({ tool }) => tool?.name === "task");
    const children = (await get(`/session/${session}/children`)) as { id: string }[];
    const place = { parentId: task?.native_id ?? "", turnId: task?.turn_id ?? null };
    const below = await Promise.all(children.map(async ({ id }) => clean(await listing(id), place)));
    return comparable([...own, ...below.flat()]);
  };

  beforeAll(async () => {
    process.stdout.write(`seed of the cuts: ${seed}\n`);
    model = new TalkingModel();
    const provider = {
      npm: "@ai-sdk/openai-compatible",
      options: { baseURL: await model.start(), apiKey: "none" },
      models: { talking: { name: "talking", reasoning: true, cost: { input: 1, output: 2 } } },
    };
    const port = await freePort();
    daemon = await Running.start({
      adapter: "opencode",
      agentCommand: [OPENCODE, "serve", "--hostname", "127.0.0.1", "--port", String(port)],
      runtimePort: port,
      environment: { PLATFORM_LLM_BASE_URL: "http://127.0.0.1:9/v1", PLATFORM_LLM_API_KEY: "unused" },
      files: {
        "opencode.json": JSON.stringify({
          permission: { webfetch: "ask" },
          model: "stub/talking",
          provider: { stub: provider },
        }),
      },
      agentEnv: { CANARY: SECRET },
    });
    await daemon.logged("ready");
    await daemon.logged("turns are followed");
    for (let count = 0; count < rounds(3, 10); count += 1) readers.push(new CutReader(daemon, next));
    session = (JSON.parse(await post("/session", { title: daemon.sessionId })) as { id: string }).id;
  });
  afterAll(async () => {
    for (const reader of readers) reader.end();
    await daemon.dispose();
    model.stop();
  });

  const agree = async (): Promise<void> => {
    const expected = await listed();
    for (const { follower } of readers) {
      // oxlint-disable-next-line no-await-in-loop -- one reader after the other
      await expect.poll(() => comparable(follower.items.values()), POLL).toEqual(expected);
      // oxlint-disable-next-line no-await-in-loop -- one reader after the other
      await expect.poll(() => follower.turn, POLL).toEqual({ state: "idle", waiting_for: null });
      expect(JSON.stringify([...follower.items.values()])).not.toContain(SECRET);
    }
  };

  test("is the same for readers that are cut at any moment: text, thoughts, tools, a plan, a subagent [D03]", async () => {
    const todos = [
      { content: "first", status: "completed", priority: "high" },
      { content: "second", status: "in_progress", priority: "low" },
    ];
    const below = promptOf([
      { tools: [["bash", { command: "echo below", description: "Say below" }]] },
      { say: "Seen." },
    ]);
    const task = { description: "Look around", prompt: below, subagent_type: "general" };
    await send([
      {
        think: `The secret is ${SECRET}, I think. `.repeat(4),
        say: "I begin.",
        tools: [["todowrite", { todos }]],
      },
      { tools: [["bash", { command: 'for n in 1 2 3; do echo "$n $CANARY"; done', description: "Count" }]] },
      { tools: [["write", { filePath: "new.txt", content: `${SECRET}\n` }]] },
      { tools: [["task", task]] },
      { say: `It says ${SECRET}. ${"This is a long text that grows. ".repeat(30)}` },
    ]);
    expect(await ended()).toMatchObject({ state: "completed" });
    await agree();
    const [{ follower }] = readers as [CutReader];
    const kinds = new Set([...follower.items.values()].map(({ kind }) => kind));
    expect(kinds).toEqual(new Set(["message", "thought", "tool", "plan"]));
    expect([...follower.items.values()].some(({ parent_id: parent }) => parent !== null)).toBe(true);
    expect(JSON.stringify([...follower.items.values()])).toContain("[redacted]");
    expect(readers.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(readers.length);
  });

  deepTest("says once for each call that its provider failed and is asked again", async () => {
    await send([{ fails: 2, say: "At last." }]);
    expect(await ended()).toMatchObject({ state: "completed" });
    await agree();
    const text =
      "The model's provider failed 2 times, and is asked again. It said: refused as the prompt says";
    for (const { follower } of readers)
      expect([...follower.items.values()].filter(({ kind }) => kind === "note")).toMatchObject([
        { status: "completed", content: [{ type: "text", text }] },
      ]);
  });
});

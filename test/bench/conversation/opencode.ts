/** Turns of the real opencode: in sandboxes behind the service, and bare, with a reader of its own events. */
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { opencodeSettings } from "../../../daemon/adapters/opencode/opencode.ts";
import { GATEWAY_PROVIDER } from "../../../src/domain/sandbox/model.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { latenciesOf, type Latencies } from "./figures.ts";
import { allSeen, openConversations, openReader, opencodeText, type Reader } from "./readers.ts";
import type { Rounds, Talk } from "./streaming.ts";
import { MODEL, TimedModel } from "./timed-model.ts";
import { Writes, type Written } from "./writes.ts";

const OPENCODE = path.join(
  path.dirname(createRequire(import.meta.url).resolve("opencode-linux-x64/package.json")),
  "bin/opencode",
);

const bodyOf = async (answer: Response): Promise<Record<string, unknown>> => {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`opencode answered ${answer.status}: ${text}`);
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
};

/** One bare opencode with a session and a reader of its events. */
class Bare {
  readonly #child: ChildProcess;
  readonly #url: string;
  reader: Reader | null = null;
  #session = "";

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.#url = url;
  }

  static async start(below: string, modelUrl: string): Promise<Bare> {
    const directory = path.join(below, randomUUID());
    mkdirSync(directory);
    const defaults = path.join(directory, "defaults.json");
    writeFileSync(
      defaults,
      opencodeSettings.defaults?.({
        model: `${GATEWAY_PROVIDER}/${MODEL}`,
        gateway: [MODEL],
        providers: [],
        hosted: false,
        plugin: null,
        defined: null,
        instructions: null,
      }) ?? "{}",
    );
    const port = await freePort();
    const child = spawn(OPENCODE, ["serve", "--hostname", "127.0.0.1", "--port", String(port)], {
      cwd: directory,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: directory,
        PLATFORM_LLM_BASE_URL: modelUrl,
        PLATFORM_LLM_API_KEY: "timed",
        ...opencodeSettings.environment({
          configDir: directory,
          defaults,
          hasConnectors: false,
          permissions: null,
        }),
      },
      stdio: "ignore",
    });
    const bare = new Bare(child, `http://127.0.0.1:${port}`);
    const isReady = () =>
      fetch(`${bare.#url}/global/health`, { signal: AbortSignal.timeout(1000) }).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await isReady())) await delay(50);
    bare.#session = String((await bare.#post("/session", { title: "bench" }))["id"]);
    bare.reader = await openReader({ host: "127.0.0.1", port, path: "/event" }, opencodeText());
    return bare;
  }

  async #post(where: string, body: object): Promise<Record<string, unknown>> {
    const answer = await fetch(`${this.#url}${where}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return bodyOf(answer);
  }

  say(): Promise<unknown> {
    return this.#post(`/session/${this.#session}/prompt_async`, { parts: [{ type: "text", text: "Talk." }] });
  }

  end(): void {
    this.reader?.close();
    this.#child.kill("SIGKILL");
  }
}

/** A session behind the service, which runs. */
const startSession = async (life: Life, projectId: string): Promise<string> => {
  const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
  const session = await life.session(projectId, String(id), ["running", "failed"]);
  if (session["status"] !== "running")
    throw new Error(`a boot failed: ${JSON.stringify(session["failure"])}`);
  return String(id);
};

const atRest = async (life: Life, projectId: string, ids: readonly string[]): Promise<void> => {
  for (const id of ids)
    for (;;) {
      const { state, queue } = await life.call(
        "GET",
        `/v1/projects/${projectId}/sessions/${id}/conversation`,
      );
      const isIdle = (state as { readonly state: string }).state === "idle";
      if (isIdle && (queue as readonly unknown[]).length === 0) break;
      await delay(50);
    }
};

export interface RealTurns extends Rounds {
  readonly sessions: number;
  /** The last round's turns: what they wrote, and what bare rows of the same items write. */
  readonly written: {
    readonly turns: number;
    readonly ours: Written;
    readonly items: number;
    readonly bare: Written;
  };
}

/** Turns of so many sessions at once, by turns with as many of bare opencodes. */
export const realTurns = async (
  sessions: number,
  { rounds, ...talk }: Talk & { readonly rounds: number },
): Promise<RealTurns> => {
  const model = new TimedModel(talk);
  const installation = await Installation.open();
  const { directory, remove } = guardedDirectory("platform-bench-");
  const bares: Bare[] = [];
  let life: Life | null = null;
  let readers: readonly Reader[] = [];
  const ids: string[] = [];
  try {
    const url = await model.start();
    life = await installation.start({ PLATFORM_LLM_BASE_URL: url, PLATFORM_LLM_MODEL: MODEL });
    const running = life;
    const projectId = await running.project(installation.sample);
    for (let count = 0; count < sessions; count += 1) {
      ids.push(await startSession(running, projectId));
      bares.push(await Bare.start(directory, url));
    }
    readers = await openConversations(running, projectId, ids);
    const written = talk.tokens * sessions;
    const ours = async (): Promise<Latencies> => {
      for (const id of ids)
        await running.call("POST", `/v1/projects/${projectId}/sessions/${id}/messages`, {
          id: randomUUID(),
          text: "Talk.",
        });
      const seen = await allSeen(readers, talk.tokens);
      await atRest(running, projectId, ids);
      return latenciesOf(seen, written);
    };
    const bare = async (): Promise<Latencies> => {
      for (const one of bares) await one.say();
      return latenciesOf(
        await allSeen(
          bares.flatMap(({ reader }) => reader ?? []),
          talk.tokens,
        ),
        written,
      );
    };
    const result = { ours: [] as Latencies[], bare: [] as Latencies[] };
    for (let number = 0; number <= rounds; number += 1) {
      const [one, other] = [await ours(), await bare()];
      if (number === 0) continue;
      result.ours.push(one);
      result.bare.push(other);
    }
    const writes = await Writes.of(installation.dataDir);
    const first = ids[0] ?? "";
    const before = await writes.items(first);
    const byOurs = await writes.during(ours);
    const items = (await writes.items(first)) - before;
    const byBare = await writes.bare(first, items);
    await writes.end();
    return { sessions, ...result, written: { turns: sessions, ours: byOurs, items, bare: byBare } };
  } finally {
    for (const { close } of readers) close();
    for (const one of bares) one.end();
    await life?.end("SIGTERM");
    model.stop();
    await installation.close();
    remove();
  }
};

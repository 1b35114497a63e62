/** A daemon with a real agent runtime and a held model, steered and followed as the service does it. */
import { existsSync } from "node:fs";
import { request } from "node:http";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { NativeItem } from "../../../src/domain/conversation/conversation.ts";
import type { OutgoingMessage } from "../../../src/domain/conversation/steering.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { Follower } from "./follower.ts";
import { HeldModel } from "./held-model.ts";
import { Running, type RunOptions } from "./running.ts";

const OPENCODE = fileURLToPath(
  new URL("../../../node_modules/opencode-linux-x64/bin/opencode", import.meta.url),
);
export const hasOpencode = existsSync(OPENCODE);
export const POLL = { timeout: WAIT_MS, interval: 20 };

/** How a real agent runtime is started. */
export interface RealAgent {
  readonly adapter: NonNullable<RunOptions["adapter"]>;
  /** @param port where it listens, if it does */
  readonly command: (port: number) => readonly string[];
}

/** opencode's own HTTP API. */
export const OPENCODE_SERVE: RealAgent = {
  adapter: "opencode",
  command: (port) => [OPENCODE, "serve", "--hostname", "127.0.0.1", "--port", String(port)],
};

/** opencode over the Agent Client Protocol. */
export const OPENCODE_ACP: RealAgent = { adapter: "acp", command: () => [OPENCODE, "acp"] };

type Answer = readonly [status: number, body: Readonly<Record<string, unknown>>];

export class Steered {
  readonly daemon: Running;
  readonly model: HeldModel;
  readonly follower = new Follower();
  #isOver = false;

  private constructor(daemon: Running, model: HeldModel) {
    this.daemon = daemon;
    this.model = model;
  }

  static async start(options: RunOptions = {}, agent: RealAgent = OPENCODE_SERVE): Promise<Steered> {
    const model = new HeldModel();
    const port = await freePort();
    const held = {
      npm: "@ai-sdk/openai-compatible",
      options: { baseURL: await model.start(), apiKey: "none" },
      models: {
        one: { name: "One" },
        two: { name: "Two", attachment: true, modalities: { input: ["text", "image"], output: ["text"] } },
      },
    };
    const config = {
      model: "held/one",
      permission: { bash: "ask" },
      agent: { second: { mode: "primary", prompt: "You are the second.", description: "The other one" } },
      provider: { held },
    };
    const daemon = await Running.start({
      adapter: agent.adapter,
      agentCommand: agent.command(port),
      runtimePort: port,
      files: { "opencode.json": JSON.stringify(config) },
      ...options,
    });
    const steered = new Steered(daemon, model);
    await daemon.logged("listening");
    steered.#follow();
    return steered;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.daemon.dispose();
    this.model.stop();
  }

  /** The conversation's items. */
  get items(): readonly NativeItem[] {
    return [...this.follower.items.values()];
  }

  /** Items of the turn that our message began, without the message itself. */
  answersTo(id: string): readonly NativeItem[] {
    const own = this.items.filter(({ message_id: messageId }) => messageId === id);
    expect(own, `the message ${id}`).toHaveLength(1);
    return this.items.filter(({ turn_id: turn, role }) => turn === own[0]?.native_id && role === "agent");
  }

  async call(name: string, body?: object): Promise<Answer> {
    const { status, body: text } = await this.daemon.ask(
      `/platform/${name}`,
      body === undefined ? {} : { method: "POST", body: JSON.stringify(body) },
    );
    return [status, JSON.parse(text) as Readonly<Record<string, unknown>>];
  }

  /** Gives the daemon an attachment's bytes. */
  async attach(id: string, content: Uint8Array): Promise<Answer> {
    const { status, body: text } = await this.daemon.ask(`/platform/attachments/${id}`, {
      method: "PUT",
      body: content,
    });
    return [status, JSON.parse(text) as Readonly<Record<string, unknown>>];
  }

  /** One attempt. */
  send(id: string, text: string, choice: Partial<OutgoingMessage> = {}): Promise<Answer> {
    // oxlint-disable-next-line no-restricted-properties -- the daemon under test reads the machine's clock
    return this.call("messages", { id, sent_at: Date.now(), text, model: null, agent: null, ...choice });
  }

  /** Sends as the service does: again while the runtime is not ready, and after the turn for which it waits. */
  async deliver(id: string, text: string, choice: Partial<OutgoingMessage> = {}): Promise<number> {
    // oxlint-disable-next-line no-restricted-properties -- the daemon under test reads the machine's clock
    const message = { sent_at: Date.now(), ...choice };
    /* oxlint-disable no-await-in-loop -- one attempt after the other */
    for (;;) {
      const [status, body] = await this.send(id, text, message);
      if (status === 200 && body["outcome"] === "accepted") return Number(body["turn"]);
      if (status === 200 && body["outcome"] === "busy") await this.ended(Number(body["turn"]));
      else if (status === 502 || status === 503) await this.daemon.health();
      else throw new Error(`${status} ${JSON.stringify(body)}`);
    }
    /* oxlint-enable no-await-in-loop */
  }

  /** Waits until that turn has ended. */
  async ended(turn: number): Promise<void> {
    await expect.poll(() => this.follower.ended, POLL).toBeGreaterThanOrEqual(turn);
  }

  /** Waits until a turn has ended in that way. The health report has it from events, which may come later. */
  async endedAs(end: object): Promise<void> {
    await expect.poll(async () => (await this.daemon.health()).turn.last, POLL).toMatchObject(end);
  }

  /** Waits until the model is asked to answer this text. */
  async asked(text: string): Promise<void> {
    await expect.poll(() => this.model.asked(text), POLL).toBe(1);
  }

  #follow(): void {
    if (this.#isOver) return;
    let rest = "";
    const call = request({
      socketPath: this.daemon.layout.socket,
      path: `/platform/conversation?after=${this.follower.rev}`,
      headers: { "x-platform-user-context": this.daemon.context() },
      agent: false,
    });
    call.on("error", () => undefined);
    call.on("response", (response) => {
      response.on("error", () => undefined);
      response.setEncoding("utf8").on("data", (chunk: string) => {
        const text = rest + chunk;
        const end = text.lastIndexOf("\n") + 1;
        this.follower.take(text.slice(0, end));
        rest = text.slice(end);
      });
    });
    call.on("close", () => this.#follow());
    call.end();
  }
}

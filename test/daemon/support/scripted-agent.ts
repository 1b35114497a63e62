/** An agent that speaks the Agent Client Protocol in the test's own process, and the adapter that drives it. */
import type { TurnEnd } from "../../../daemon/report.ts";
import { PassThrough, Readable, Writable } from "node:stream";
import {
  agent,
  ndJsonStream,
  type AgentContext,
  type ContentBlock,
  type InitializeResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { expect, onTestFinished } from "vitest";
import type { AcpAgentOptions } from "../../../daemon/adapters/acp/agent.ts";
import { acpAdapter } from "../../../daemon/adapters/acp/acp.ts";
import { TURN_LIMITS, type AgentSession, type TurnLimits } from "../../../daemon/adapters/adapter.ts";
import { startFeed } from "./feed.ts";
import { POLL } from "./steered.ts";

export const WORKSPACE = "/workspace";
const SESSION = { sessionId: "s", agentName: "default", model: null };

/** The means of an agent in its turn. */
export interface Stage {
  readonly prompt: readonly ContentBlock[];
  /** Tells an update. */
  readonly tell: (update: SessionUpdate) => Promise<void>;
  readonly client: AgentContext;
  /** Completes when the turn is cancelled. */
  readonly cancelled: Promise<void>;
}

export interface Script {
  readonly capabilities?: InitializeResponse["agentCapabilities"];
  /** Its answer to `session/new` beside the id. */
  readonly offers?: object;
  /** What the daemon knows of the session, if it differs. */
  readonly session?: Partial<AgentSession>;
  /** Whether permissions are given without a question. */
  readonly allowsAll?: boolean;
  /** PlanMode.asks. */
  readonly planMode?: string;
  readonly planTitle?: string;
  /** The server of tools that it gets. */
  readonly tools?: AcpAgentOptions["tools"];
  /** Whether it is known where it keeps its record of a conversation. */
  readonly keepsRecord?: boolean;
  /** Why it opens no session. */
  readonly refusal?: string;
  readonly turn: (stage: Stage) => Promise<object>;
  readonly onCall?: (method: string, params: unknown, client: AgentContext) => Promise<object>;
}

export class ScriptedAgent {
  readonly #script: Script;
  readonly adapter;
  readonly feed = startFeed();
  readonly ends: TurnEnd[] = [];
  /** The calls that it got, by name. */
  readonly calls: string[] = [];
  /** The servers of tools of its last new session. */
  servers: readonly unknown[] = [];
  #following: Fiber.Fiber<unknown, unknown> | null = null;
  #stdin = new PassThrough();
  #stdout = new PassThrough();
  #isActive = false;

  constructor(script: Script, limits: Partial<TurnLimits> = {}, gateway?: AcpAgentOptions["gateway"]) {
    this.#script = script;
    this.adapter = acpAdapter({
      workspace: WORKSPACE,
      limits: { ...TURN_LIMITS, ...limits },
      ...(gateway !== undefined && { gateway }),
      ...(script.allowsAll !== undefined && { allowsAll: script.allowsAll }),
      ...(script.planMode !== undefined && { planMode: script.planMode }),
      ...(script.planTitle !== undefined && { planTitle: script.planTitle }),
      ...(script.tools !== undefined && { tools: script.tools }),
      ...(script.keepsRecord !== undefined && { keepsRecord: script.keepsRecord }),
    });
  }

  get session(): AgentSession {
    return { ...SESSION, ...this.#script.session };
  }

  /** Starts a process, and brings it to where it takes messages. */
  async start(firstOutput = ""): Promise<void> {
    this.#stdin = new PassThrough();
    this.#stdout = new PassThrough();
    this.#stdout.write(firstOutput);
    this.#serve(this.#stdin, this.#stdout);
    this.adapter.talk?.({ stdin: this.#stdin, stdout: this.#stdout });
    const { adapter } = this;
    await Effect.runPromise(
      Effect.andThen(Effect.retry(adapter.probe, { times: 1000 }), adapter.open ?? Effect.void).pipe(
        Effect.retry({ times: 3 }),
      ),
    );
    const followed = Promise.withResolvers<void>();
    // Its timers would go on in later files of the worker.
    onTestFinished(() => this.#leave());
    this.#following = Effect.runFork(
      adapter.follow(SESSION.sessionId, {
        conversation: this.feed.feed,
        turns: {
          turn: (active) => (this.#isActive = active),
          activity: () => undefined,
          ended: (end) => this.ends.push(end),
          followed: followed.resolve,
          isActive: () => this.#isActive,
        },
      }),
    );
    await followed.promise;
  }

  /** The process closes its input: what is written there fails. */
  closeInput(): void {
    this.#stdin.on("error", () => undefined);
    // oxlint-disable-next-line no-underscore-dangle -- Node's own name
    this.#stdin._transform = (_chunk, _encoding, done) => done(new Error("EPIPE"));
  }

  /** The process ends. */
  async end(): Promise<void> {
    this.#stdout.destroy();
    if (this.#following !== null) await Effect.runPromise(Fiber.await(this.#following));
    this.feed.feed.runtimeEnded();
  }

  async #leave(): Promise<void> {
    if (this.#following !== null) await Effect.runPromise(Fiber.interrupt(this.#following));
  }

  get steering() {
    const { steering } = this.adapter;
    if (steering === null) throw new Error("the adapter steers");
    return steering;
  }

  send(
    id: string,
    text: string,
    choice: { readonly model?: string; readonly agent?: string; readonly effort?: string } = {},
  ) {
    const message = { id, sent_at: 1, text, model: null, agent: null, ...choice };
    return Effect.runPromise(this.steering.hand(this.session, message, []));
  }

  offers() {
    return Effect.runPromise(this.steering.offers(this.session));
  }

  get items() {
    return this.feed.versions();
  }

  #serve(stdin: PassThrough, stdout: PassThrough): void {
    let cancelled = Promise.withResolvers<void>();
    const { capabilities = {}, offers = {}, refusal, turn, onCall } = this.#script;
    const took = (method: string) => void this.calls.push(method);
    const other =
      (method: string) =>
      async ({ params, client }: { readonly params: unknown; readonly client: AgentContext }) => {
        took(method);
        return (await onCall?.(method, params, client)) ?? {};
      };
    const app = agent({ name: "scripted" })
      .onRequest("initialize", () => ({ protocolVersion: 1, agentCapabilities: capabilities }))
      .onRequest("session/new", ({ params }) => {
        took("session/new");
        this.servers = params.mcpServers;
        if (refusal !== undefined) throw new Error(refusal);
        return { sessionId: `session-${this.calls.length}`, ...offers };
      })
      .onRequest("session/prompt", async ({ params, client }) => {
        took("session/prompt");
        cancelled = Promise.withResolvers<void>();
        const { sessionId, prompt } = params;
        const tell = (update: SessionUpdate) => client.notify("session/update", { sessionId, update });
        const answer = await turn({ prompt, client, tell, cancelled: cancelled.promise });
        return { stopReason: "end_turn", ...answer };
      })
      .onNotification("session/cancel", () => cancelled.resolve());
    for (const method of ["session/load", "session/resume", "session/set_mode"] as const)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the script answers what it tests
      app.onRequest(method, other(method) as never);
    app.onRequest("session/set_config_option", (params) => params, other("session/set_config_option"));
    app.onRequest("session/set_model", (params) => params, other("session/set_model"));
    app.connect(
      ndJsonStream(
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node's own streams of bytes
        Writable.toWeb(stdout) as WritableStream<Uint8Array>,
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
        Readable.toWeb(stdin) as ReadableStream<Uint8Array>,
      ),
    );
  }
}

export const chunk = (text: string, messageId?: string): SessionUpdate => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
  ...(messageId !== undefined && { messageId }),
});

export const started = async (
  script: Script | Script["turn"],
  limits: Partial<TurnLimits> = {},
  gateway?: AcpAgentOptions["gateway"],
): Promise<ScriptedAgent> => {
  const scripted = new ScriptedAgent(
    typeof script === "function" ? { turn: script } : script,
    limits,
    gateway,
  );
  await scripted.start();
  return scripted;
};

/** Sends a message and waits for its turn's end. */
export const turnOf = async (scripted: ScriptedAgent, id: string): Promise<void> => {
  const before = scripted.ends.length;
  expect(await scripted.send(id, `text of ${id}`)).toEqual({ outcome: "accepted" });
  await expect.poll(() => scripted.ends.length, POLL).toBe(before + 1);
};

export const agentItems = ({ items }: ScriptedAgent) => items.filter(({ role }) => role === "agent");

/**
 * One process that speaks the Agent Client Protocol (version 1): JSON-RPC over its standard input and output, by the
 * protocol's own package.
 *
 *  W1 A wire belongs to one process. When the process ends or breaks the protocol, the wire is closed, and each call in
 *     progress fails.
 *  W2 Updates are told in the order in which they came.
 */
import { Readable, type Writable } from "node:stream";
import type {
  AnyMessage,
  ClientConnection,
  RequestPermissionRequest,
  SessionUpdate,
  Stream,
} from "@agentclientprotocol/sdk";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { thrownText } from "../../../src/ground/thrown.ts";
import { HttpFailure } from "../../http/client.ts";
import type { Pipes } from "../../agent/process.ts";

/** The longest message of an agent. A longer one breaks the connection. */
const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;
const PROTOCOL_VERSION = 1;

const optional = Schema.optionalKey;
const Flag = optional(Schema.NullOr(Schema.Boolean));

/** The agent's introduction. */
const Initialized = Schema.Struct({
  protocolVersion: Schema.Finite,
  agentCapabilities: optional(
    Schema.Struct({
      loadSession: Flag,
      mcpCapabilities: optional(Schema.NullOr(Schema.Struct({ http: Flag }))),
      promptCapabilities: optional(Schema.Struct({ image: Flag, embeddedContext: Flag })),
      sessionCapabilities: optional(Schema.Struct({ resume: optional(Schema.Unknown) })),
    }),
  ),
});
export type Capabilities = NonNullable<(typeof Initialized.Type)["agentCapabilities"]>;
const decodeInitialized = Schema.decodeUnknownSync(Initialized);

/** Receives what the agent sends. */
export interface WireEvents {
  readonly update: (sessionId: string, update: SessionUpdate) => void;
  /** @returns the id of the chosen option. Null if cancelled */
  readonly permission: (
    request: RequestPermissionRequest,
    cancellation: AbortSignal,
  ) => Promise<string | null>;
  /** The wire is closed. */
  readonly closed: () => void;
}

/** The agent answered a call with an error. Its words are not redacted. */
export class AgentRefusal extends Schema.TaggedError<AgentRefusal>()("AgentRefusal", {
  code: Schema.Finite,
  message: Schema.String,
  /** The agent's own name of the error. Null if it tells none. */
  name: Schema.NullOr(Schema.String),
}) {}

const Refusal = Schema.Struct({
  code: Schema.Finite,
  message: Schema.String,
  data: optional(
    Schema.Struct({
      /** Agents made with the protocol's own package put their error's words here. */
      details: optional(Schema.String),
      /** opencode's. */
      errorName: optional(Schema.String),
      /** claude-agent-acp's. */
      errorKind: optional(Schema.String),
    }),
  ),
});
const RefusalWithoutDetails = Schema.Struct({ code: Schema.Finite, message: Schema.String });
const decodeRefusal = Schema.decodeUnknownOption(Schema.Union([Refusal, RefusalWithoutDetails]));

/** The agent's answer, if an error is one. */
const refusalIn = (error: unknown): AgentRefusal | null => {
  const refusal = decodeRefusal(error);
  if (!(error instanceof Error) || refusal._tag === "None") return null;
  const { code, message } = refusal.value;
  const data = "data" in refusal.value ? refusal.value.data : undefined;
  return new AgentRefusal({
    code,
    message: data?.details ?? message,
    name: data?.errorName ?? data?.errorKind ?? null,
  });
};

/** A call without an answer, in the words of the port. */
export const silent = (message: string): HttpFailure => new HttpFailure({ status: null, message });

export class AcpWire {
  readonly #stdin: Writable;
  readonly #events: WireEvents;
  readonly #ready: Promise<{ readonly connection: ClientConnection }>;
  #capabilities: Capabilities | null = null;
  #isClosed = false;
  readonly #closed = Promise.withResolvers<void>();

  constructor({ stdin, stdout }: Pipes, events: WireEvents) {
    this.#stdin = stdin;
    this.#events = events;
    stdout.once("close", () => this.close());
    this.#ready = this.#open(stdout, events);
    // Each call reports it. A process without any call must end, too.
    this.#ready.catch(() => this.close());
  }

  /** The agent's capabilities. Null until it has introduced itself. */
  get capabilities(): Capabilities | null {
    return this.#isClosed ? null : this.#capabilities;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Completes when the wire is closed. */
  get whenClosed(): Effect.Effect<void> {
    return Effect.promise(() => this.#closed.promise);
  }

  /** Ends the agent's input: an agent that still runs ends then. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stdin.end();
    this.#events.closed();
    this.#closed.resolve();
  }

  /** Calls the agent and waits for its answer, however long it takes. */
  call(method: string, params: object): Effect.Effect<unknown, HttpFailure | AgentRefusal> {
    return Effect.tryPromise({
      try: () => this.request(method, params),
      catch: (error) => this.failure(method, error),
    });
  }

  /** The same for callers outside any fiber. `failure` reads its rejection. */
  async request(method: string, params: object): Promise<unknown> {
    const { connection } = await this.#ready;
    return await connection.agent.request<unknown, object>(method, params);
  }

  /** Why a request failed. */
  failure(method: string, error: unknown): HttpFailure | AgentRefusal {
    const refusal = this.#isClosed ? null : refusalIn(error);
    const message = thrownText(error);
    return refusal ?? silent(`the agent did not answer ${method}: ${message}`);
  }

  /** Tells the agent something that it does not answer. */
  tell(method: string, params: object): Effect.Effect<void, HttpFailure> {
    return Effect.tryPromise({
      try: async () => {
        const { connection } = await this.#ready;
        await connection.agent.notify<object>(method, params);
      },
      catch: (error) => silent(`the agent did not take ${method}: ${String(error)}`),
    });
  }

  async #open(stdout: Readable, { update, permission }: WireEvents) {
    // Loaded only here: the daemon of another runtime does not need it, and its start counts in milliseconds.
    const { client, ndJsonStream } = await import("@agentclientprotocol/sdk");
    const app = client({ name: "platform" })
      .onNotification("session/update", ({ params }) => update(params.sessionId, params.update))
      .onRequest("session/request_permission", async ({ params, signal }) => {
        const optionId = await permission(params, signal);
        return {
          outcome: optionId === null ? { outcome: "cancelled" } : { outcome: "selected", optionId },
        };
      });
    const stream = ndJsonStream(
      writableTo(this.#stdin),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node's own stream of bytes
      Readable.toWeb(stdout) as ReadableStream<Uint8Array>,
      { maxMessageBytes: MESSAGE_BYTES_MAX },
    );
    const connection = app.connect(withoutStrayAnswers(stream));
    void connection.closed.then(() => this.close());
    const { protocolVersion, agentCapabilities = {} } = decodeInitialized(
      await connection.agent.request<unknown, object>("initialize", {
        protocolVersion: PROTOCOL_VERSION,
        // The agent uses the sandbox's own files and shell.
        clientCapabilities: {
          fs: { readTextFile: false, writeTextFile: false },
          terminal: false,
          // Some agents tell a command's output and exit code only so (items.ts).
          _meta: { terminal_output: true, terminal_output_delta: true },
        },
        clientInfo: { name: "platform", version: "1" },
      }),
    );
    if (protocolVersion !== PROTOCOL_VERSION)
      throw new Error(`the agent speaks version ${protocolVersion} of the protocol, not ${PROTOCOL_VERSION}`);
    this.#capabilities = agentCapabilities;
    return { connection };
  }
}

/** Removes answers to calls that were not made. The package would print their ids, which come from the agent. */
const withoutStrayAnswers = ({ readable, writable }: Stream): Stream => {
  const calledIds = new Set<unknown>();
  const answerFilter = new TransformStream<AnyMessage, AnyMessage>({
    transform: (message, controller) => {
      if ("method" in message || calledIds.delete(message.id)) controller.enqueue(message);
    },
  });
  const calling = new WritableStream<AnyMessage>({
    write: async (message) => {
      if ("method" in message && "id" in message) calledIds.add(message.id);
      const writer = writable.getWriter();
      try {
        await writer.write(message);
      } finally {
        writer.releaseLock();
      }
    },
  });
  return { readable: readable.pipeThrough(answerFilter), writable: calling };
};

/** The stream's writes complete when the process's input has taken them. */
const writableTo = (stdin: Writable): WritableStream<Uint8Array> =>
  new WritableStream({
    write: (chunk) =>
      new Promise<void>((resolve, reject) => {
        stdin.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
  });

/**
 * The four formats of model APIs, each as a model on loopback reads and writes it: chat completions, responses, messages, and Gemini's
 * generateContent.
 */
import type { ServerResponse } from "node:http";

/** A tool that the model may call. */
export interface OfferedTool {
  readonly name: string;
  /** Codex puts the tools of a server into one. */
  readonly namespace?: string;
}

/** One part of what was said, in any format. */
export interface Said {
  readonly by: "model" | "other";
  readonly text: string;
}

/** What a call asks, in any format. */
export interface Asked {
  readonly model: string;
  readonly said: readonly Said[];
  readonly tools: readonly OfferedTool[];
  readonly isStreamed: boolean;
}

/** What the model answers. */
export interface Answer {
  readonly think: string;
  readonly say: string;
  readonly calls: readonly {
    readonly tool: OfferedTool;
    readonly input: object | string;
    readonly id: string;
  }[];
}

/** The tokens that each answer names. */
export const TOKENS = { input: 100, cached: 0, output: 20 } as const;

export interface ModelWire {
  readonly read: (body: Body, path: string) => Asked;
  /** Writes a whole answer. @param pause after the first piece of its text */
  readonly write: (to: Sending, answer: Answer, pause: () => Promise<void>) => Promise<void>;
  /** A refusal's body. */
  readonly refusal: (status: number, words: string) => object;
}

/** Where an answer goes. */
export interface Sending {
  readonly response: ServerResponse;
  readonly model: string;
  readonly isStreamed: boolean;
  /** Differs for each answer: runtimes take answers with one id for one. */
  readonly id: string;
}

type Body = Readonly<Record<string, unknown>>;
type Part = Readonly<Record<string, unknown>>;

const PIECE = /.{1,5}/gs;
const pieces = (text: string): readonly string[] => text.match(PIECE) ?? [];

const list = (value: unknown): readonly Part[] => (Array.isArray(value) ? (value as readonly Part[]) : []);

const textIn = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map(({ text }) => (typeof text === "string" ? text : ""))
        .join("\n");

/** Each piece is sent before the next one is written. */
const sse = ({ response }: Sending) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  return (data: object, event?: string): Promise<void> =>
    new Promise((resolve) => {
      const head = event === undefined ? "" : `event: ${event}\n`;
      response.write(`${head}data: ${JSON.stringify(data)}\n\n`, () => setImmediate(resolve));
    });
};

const json = ({ response }: Sending, body: object): void => {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
};

/* oxlint-disable no-await-in-loop -- an answer is written piece by piece */

const chat: ModelWire = {
  read: ({ model, messages, tools, stream }) => ({
    model: String(model),
    said: list(messages).map(({ role, content }) => ({
      by: role === "assistant" ? "model" : "other",
      text: textIn(content),
    })),
    tools: list(tools).map((tool) => ({ name: String((tool["function"] as Part)["name"]) })),
    isStreamed: stream === true,
  }),
  write: async (to, { think, say, calls }, pause) => {
    const frame = { id: to.id, created: 1, model: to.model };
    const usage = {
      prompt_tokens: TOKENS.input,
      completion_tokens: TOKENS.output,
      total_tokens: TOKENS.input + TOKENS.output,
    };
    const finish = calls.length > 0 ? "tool_calls" : "stop";
    const toolCalls = calls.map(({ tool: { name }, input, id }, index) => ({
      index,
      id,
      type: "function",
      function: { name, arguments: JSON.stringify(input) },
    }));
    if (!to.isStreamed) {
      const message = { role: "assistant", content: say, tool_calls: toolCalls };
      return json(to, {
        ...frame,
        object: "chat.completion",
        choices: [{ index: 0, message, finish_reason: finish }],
        usage,
      });
    }
    const write = sse(to);
    const delta = (part: object, reason: string | null = null) =>
      write({
        ...frame,
        object: "chat.completion.chunk",
        choices: [{ index: 0, delta: part, finish_reason: reason }],
      });
    for (const piece of pieces(think)) await delta({ reasoning_content: piece });
    for (const [index, piece] of pieces(say).entries()) {
      await delta({ content: piece });
      if (index === 0) await pause();
    }
    for (const call of toolCalls) await delta({ tool_calls: [call] });
    await delta({}, finish);
    await write({ ...frame, object: "chat.completion.chunk", choices: [], usage });
    to.response.end("data: [DONE]\n\n");
  },
  refusal: (status, message) => ({ error: { message, type: "refused", code: String(status) } }),
};

const messages: ModelWire = {
  read: ({ model, messages: said, tools, stream }) => ({
    model: String(model),
    said: list(said).map(({ role, content }) => ({
      by: role === "assistant" ? "model" : "other",
      text: textIn(content),
    })),
    tools: list(tools).map(({ name }) => ({ name: String(name) })),
    isStreamed: stream === true,
  }),
  write: async (to, { think, say, calls }, pause) => {
    const usage = { input_tokens: TOKENS.input, output_tokens: TOKENS.output };
    const reason = calls.length > 0 ? "tool_use" : "end_turn";
    const message = { id: `msg_${to.id}`, type: "message", role: "assistant", model: to.model };
    if (!to.isStreamed) {
      const content = [
        ...(say === "" ? [] : [{ type: "text", text: say }]),
        ...calls.map(({ tool: { name }, input, id }) => ({ type: "tool_use", id, name, input })),
      ];
      return json(to, { ...message, content, stop_reason: reason, usage });
    }
    const write = sse(to);
    const event = (type: string, data: object) => write({ type, ...data }, type);
    await event("message_start", {
      message: { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
    });
    let index = -1;
    const block = async (content_block: object, deltas: readonly object[], between = async () => {}) => {
      index += 1;
      await event("content_block_start", { index, content_block });
      for (const [place, delta] of deltas.entries()) {
        await event("content_block_delta", { index, delta });
        if (place === 0) await between();
      }
      await event("content_block_stop", { index });
    };
    if (think !== "") {
      const deltas = pieces(think).map((thinking) => ({ type: "thinking_delta", thinking }));
      await block({ type: "thinking", thinking: "", signature: "" }, [
        ...deltas,
        { type: "signature_delta", signature: "signed" },
      ]);
    }
    if (say !== "") {
      const deltas = pieces(say).map((text) => ({ type: "text_delta", text }));
      await block({ type: "text", text: "" }, deltas, pause);
    }
    for (const { tool, input, id } of calls)
      await block({ type: "tool_use", id, name: tool.name, input: {} }, [
        { type: "input_json_delta", partial_json: JSON.stringify(input) },
      ]);
    await event("message_delta", { delta: { stop_reason: reason, stop_sequence: null }, usage });
    await event("message_stop", {});
    to.response.end();
  },
  refusal: (status, message) => {
    const types: Readonly<Record<number, string>> = {
      401: "authentication_error",
      402: "billing_error",
      429: "rate_limit_error",
    };
    return { type: "error", error: { type: types[status] ?? "api_error", message } };
  },
};

const BY_MODEL = new Set(["function_call", "custom_tool_call", "reasoning"]);

const responses: ModelWire = {
  read: ({ model, input, tools, stream }) => ({
    model: String(model),
    said:
      typeof input === "string"
        ? [{ by: "other", text: input }]
        : list(input).map(({ type, role, content }) => ({
            by: role === "assistant" || BY_MODEL.has(String(type)) ? "model" : "other",
            text: textIn(content),
          })),
    tools: list(tools).flatMap(({ type, name, tools: inner }) =>
      type === "namespace"
        ? list(inner).map((tool) => ({ name: String(tool["name"]), namespace: String(name) }))
        : [{ name: String(name) }],
    ),
    isStreamed: stream === true,
  }),
  write: async (to, { think, say, calls }, pause) => {
    const usage = {
      input_tokens: TOKENS.input,
      input_tokens_details: { cached_tokens: TOKENS.cached },
      output_tokens: TOKENS.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: TOKENS.input + TOKENS.output,
    };
    const reasoning = {
      type: "reasoning",
      id: `rs_${to.id}`,
      summary: [{ type: "summary_text", text: think }],
    };
    const text = { type: "output_text", text: say, annotations: [] };
    const message = {
      type: "message",
      id: `msg_${to.id}`,
      role: "assistant",
      status: "completed",
      content: [text],
    };
    const items = calls.map(({ tool: { name, namespace }, input, id }) => ({
      type: typeof input === "string" ? "custom_tool_call" : "function_call",
      id: `fc_${id}`,
      call_id: id,
      name,
      ...(namespace !== undefined && { namespace }),
      ...(typeof input === "string" ? { input } : { arguments: JSON.stringify(input) }),
      status: "completed",
    }));
    const output = [...(think === "" ? [] : [reasoning]), ...(say === "" ? [] : [message]), ...items];
    const response = { id: `resp_${to.id}`, object: "response", created_at: 1, model: to.model };
    if (!to.isStreamed) return json(to, { ...response, status: "completed", output, usage });
    const write = sse(to);
    let number = -1;
    const event = (type: string, data: object) => {
      number += 1;
      return write({ type, sequence_number: number, ...data }, type);
    };
    await event("response.created", { response: { ...response, status: "in_progress", output: [] } });
    for (const [place, item] of output.entries()) {
      const at = { output_index: place, item_id: item.id };
      const begun = item.type === "message" ? { ...item, status: "in_progress", content: [] } : item;
      await event("response.output_item.added", { output_index: place, item: begun });
      if (item.type === "reasoning") {
        for (const delta of pieces(think))
          await event("response.reasoning_summary_text.delta", { ...at, summary_index: 0, delta });
      } else if (item.type === "message") {
        await event("response.content_part.added", { ...at, content_index: 0, part: { ...text, text: "" } });
        for (const [index, delta] of pieces(say).entries()) {
          await event("response.output_text.delta", { ...at, content_index: 0, delta });
          if (index === 0) await pause();
        }
        await event("response.output_text.done", { ...at, content_index: 0, text: say });
        await event("response.content_part.done", { ...at, content_index: 0, part: text });
      }
      await event("response.output_item.done", { output_index: place, item });
    }
    await event("response.completed", { response: { ...response, status: "completed", output, usage } });
    to.response.end();
  },
  refusal: (status, message) => ({ error: { message, type: "refused", code: String(status) } }),
};

const gemini: ModelWire = {
  read: ({ contents, tools }, path) => ({
    model: /\/models\/([^:]+):/.exec(path)?.[1] ?? "",
    said: list(contents).map(({ role, parts }) => ({
      by: role === "model" ? "model" : "other",
      text: textIn(parts),
    })),
    tools: list(tools).flatMap(({ functionDeclarations }) =>
      list(functionDeclarations).map(({ name }) => ({ name: String(name) })),
    ),
    isStreamed: path.includes(":streamGenerateContent"),
  }),
  write: async (to, { think, say, calls }, pause) => {
    const usageMetadata = {
      promptTokenCount: TOKENS.input,
      candidatesTokenCount: TOKENS.output,
      totalTokenCount: TOKENS.input + TOKENS.output,
    };
    const chunk = (parts: readonly object[], rest: object = {}) => ({
      candidates: [{ index: 0, content: { role: "model", parts }, ...rest }],
      modelVersion: to.model,
    });
    const functions = calls.map(({ tool: { name }, input, id }) => ({
      functionCall: { id, name, args: input },
    }));
    const end = { finishReason: "STOP" };
    if (!to.isStreamed) {
      const parts = [...(say === "" ? [] : [{ text: say }]), ...functions];
      return json(to, { ...chunk(parts, end), usageMetadata });
    }
    const write = sse(to);
    // A thought has a head and comes whole.
    if (think !== "") await write(chunk([{ text: `**Thinking** ${think}`, thought: true }]));
    for (const [index, text] of pieces(say).entries()) {
      await write(chunk([{ text }]));
      if (index === 0) await pause();
    }
    await write({ ...chunk(functions.length > 0 ? functions : [{ text: "" }], end), usageMetadata });
    to.response.end();
  },
  refusal: (code, message) => ({ error: { code, message, status: "REFUSED" } }),
};

/* oxlint-enable no-await-in-loop */

/** The format of a call. Null: its path is that of no call of a model. */
export const wireOf = (path: string): ModelWire | null => {
  const [place = ""] = path.split("?");
  if (place.endsWith("/chat/completions")) return chat;
  if (place.endsWith("/responses")) return responses;
  if (place.endsWith("/messages")) return messages;
  return /:(stream)?[gG]enerateContent$/.test(place) ? gemini : null;
};

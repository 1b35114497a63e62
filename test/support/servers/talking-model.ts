/**
 * An OpenAI-compatible model on loopback that does what its prompt says. The prompt's last line is a JSON list of steps,
 * one for each call of the model. It streams its texts in small pieces.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

export interface Step {
  readonly think?: string;
  readonly say?: string;
  /** Names and arguments of tools. */
  readonly tools?: readonly (readonly [string, object])[];
  /** The status of a refusal. */
  readonly refuse?: number;
  /** How often the call fails with 500 before it is answered. */
  readonly fails?: number;
}

interface Message {
  readonly role: string;
  readonly content?: unknown;
}

/** The prompt for these steps. */
export const promptOf = (steps: readonly Step[]): string => `Do this:\n${JSON.stringify(steps)}`;

const PIECE = /.{1,5}/gs;

export class TalkingModel {
  /** How often a step was asked for. */
  readonly #asked = new Map<string, number>();
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));

  /** @returns its base URL, which ends in /v1. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { messages } = (await json(request)) as { messages: readonly Message[] };
    const step = stepOf(messages);
    const key = JSON.stringify(step);
    const before = this.#asked.get(key) ?? 0;
    this.#asked.set(key, before + 1);
    const { refuse = before < (step.fails ?? 0) ? 500 : undefined } = step;
    if (refuse === undefined) return answer(response, messages, step);
    response.writeHead(refuse, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: "refused as the prompt says", type: "refused" } }));
  }
}

const answer = async (
  response: ServerResponse,
  messages: readonly Message[],
  { think = "", say = "", tools = [] }: Step,
): Promise<void> => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const write = (rest: object): Promise<void> =>
    new Promise((resolve) => {
      const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "talking", ...rest };
      // Each piece is sent before the next one is written.
      response.write(`data: ${JSON.stringify(chunk)}\n\n`, () => setImmediate(resolve));
    });
  const delta = (part: object, finish: string | null = null): Promise<void> =>
    write({ choices: [{ index: 0, delta: part, finish_reason: finish }] });
  /* oxlint-disable no-await-in-loop -- one piece after the other */
  for (const piece of think.match(PIECE) ?? []) await delta({ reasoning_content: piece });
  for (const piece of say.match(PIECE) ?? []) await delta({ content: piece });
  for (const [index, [name, input]] of tools.entries()) {
    const call = { name, arguments: JSON.stringify(input) };
    await delta({
      tool_calls: [{ index, id: `call_${messages.length}_${index}`, type: "function", function: call }],
    });
  }
  /* oxlint-enable no-await-in-loop */
  await delta({}, tools.length > 0 ? "tool_calls" : "stop");
  await write({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } });
  response.end("data: [DONE]\n\n");
};

/** The step of this call: as many were done as the model has answered since the prompt. */
const stepOf = (messages: readonly Message[]): Step => {
  const at = messages.findLastIndex(({ role, content }) => role === "user" && stepsIn(content) !== null);
  const steps = stepsIn(messages[at]?.content) ?? [];
  const done = messages.slice(at + 1).filter(({ role }) => role === "assistant").length;
  return steps[done] ?? { say: "Done." };
};

const stepsIn = (content: unknown): readonly Step[] | null => {
  const text =
    typeof content === "string"
      ? content
      : (content as readonly { readonly text?: string }[]).map((part) => part.text ?? "").join("\n");
  const line = text.split("\n").find((one) => one.startsWith('[{"'));
  return line === undefined ? null : (JSON.parse(line) as readonly Step[]);
};

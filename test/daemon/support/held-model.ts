/**
 * An OpenAI-compatible model on loopback that repeats the last message of a person. It begins at once. A message that
 * contains "hold" goes on when the test says so. A message that names a tool makes it call the tool first. An answer to
 * a message that contains "unfinished" ends without a `finish_reason`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { signal } from "./served.ts";

export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly {
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
}

export interface HeldCall {
  readonly model: string;
  /** The last message of a person. */
  readonly text: string;
  /** The last result of a tool, if it came after that. */
  readonly result: string | null;
  /** What people said before. */
  readonly before: string;
  /** The agent's own instructions. */
  readonly system: string;
  /** The images beside the text, as URLs. */
  readonly images: readonly string[];
  /** All that it was sent, as it was sent. */
  readonly messages: readonly Message[];
}

const HANGING = "/hanging";

/** A message that makes the model call the tool. */
export const callOf = (tool: string, input: object): string => `Call ${tool}:\n${JSON.stringify(input)}`;

export class HeldModel {
  /** Its calls that belong to a turn. */
  readonly calls: HeldCall[] = [];
  #gate = signal();
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

  /** The URL of a page that never comes. */
  get hanging(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${HANGING}`;
  }

  /** Lets the answers go on that are held now. */
  release(): void {
    this.#gate.give();
    this.#gate = signal();
  }

  /** How often it was asked to answer a message with this text. */
  asked(text: string): number {
    return this.calls.filter((call) => call.text.includes(text) && call.result === null).length;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === HANGING) return;
    const body = (await json(request)) as { model: string; messages: readonly Message[]; tools?: unknown };
    const at = body.messages.findLastIndex(({ role }) => role === "user");
    const text = textOf(body.messages[at]);
    const results = body.messages.slice(at).filter(({ role }) => role === "tool");
    const result = results.length === 0 ? null : textOf(results.at(-1));
    const gate = this.#gate;
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (body.tools !== undefined) {
      const said = body.messages.slice(0, at).filter(({ role }) => role === "user");
      const before = said.map(textOf).join("\n");
      const system = textOf(body.messages.find(({ role }) => role === "system"));
      const images = imagesOf(body.messages[at]);
      this.calls.push({ model: body.model, text, result, before, system, images, messages: body.messages });
      const [, name, input] = /^Call (\w+):\n(.*)$/m.exec(text) ?? [];
      if (name !== undefined && result === null) return callTool(response, { name, input });
      write(response, { role: "assistant", content: "I begin. " });
      if (text.includes("hold")) await gate.given;
    }
    write(response, { content: `You said ${text}` });
    if (body.tools === undefined || !text.includes("unfinished")) write(response, {}, "stop");
    response.end("data: [DONE]\n\n");
  }
}

interface Part {
  readonly text?: string;
  readonly image_url?: { readonly url: string };
}

const imagesOf = (message: Message | undefined): readonly string[] => {
  const { content = "" } = message ?? {};
  if (typeof content === "string") return [];
  return (content as readonly Part[]).flatMap(({ image_url: image }) =>
    image === undefined ? [] : [image.url],
  );
};

export const textOf = (message: Message | undefined): string => {
  const { content = "" } = message ?? {};
  return typeof content === "string"
    ? content
    : (content as readonly Part[]).map(({ text = "" }) => text).join("\n");
};

const write = (response: ServerResponse, delta: object, finish: string | null = null): void => {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "held", choices };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
};

const callTool = (
  response: ServerResponse,
  { name, input }: { readonly name: string; readonly input: string | undefined },
): void => {
  const call = { name, arguments: input ?? "{}" };
  write(response, {
    role: "assistant",
    tool_calls: [{ index: 0, id: `call_${name}`, type: "function", function: call }],
  });
  write(response, {}, "tool_calls");
  response.end("data: [DONE]\n\n");
};

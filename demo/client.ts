/** The demo's calls to the service: JSON, text, server-sent events, and branch tips as a git client sees them. */
import { request } from "undici";
import type { Dispatcher } from "undici";

/** Longer than any single answer takes. To wait for an outcome, the demo follows events. */
const ANSWER_MS = 30_000;

/** A refusal by the service, in its own words. */
export class Refused extends Error {
  readonly status: number;
  constructor(call: string, status: number, body: string) {
    super(`${call} answered ${String(status)}: ${body.slice(0, 2000)}`);
    this.status = status;
  }
}

export interface ServerEvent {
  readonly type: string;
  /** When it happened, ISO 8601. */
  readonly at: string;
  readonly session_id?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export class Client {
  readonly #baseUrl: string;
  readonly #token: string;
  readonly #signal: AbortSignal;

  /** @param options.signal ends every call that is under way */
  constructor(options: { readonly baseUrl: string; readonly token: string; readonly signal: AbortSignal }) {
    this.#baseUrl = options.baseUrl;
    this.#token = options.token;
    this.#signal = options.signal;
  }

  /** @throws Refused on any status outside 2xx. */
  async get<Answer>(path: string): Promise<Answer> {
    return JSON.parse(await this.text("GET", path)) as Answer;
  }

  async send<Answer>(method: "POST" | "PUT", path: string, body: object = {}): Promise<Answer> {
    return JSON.parse(await this.text(method, path, { body: JSON.stringify(body) })) as Answer;
  }

  /** Posts bytes with the caller's own headers and without a token, as a code host does. */
  async deliver<Answer>(
    path: string,
    payload: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
  ): Promise<Answer> {
    return JSON.parse(await this.text("POST", path, { ...payload, anonymous: true })) as Answer;
  }

  async text(
    method: Dispatcher.HttpMethod,
    path: string,
    options: {
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly anonymous?: boolean;
    } = {},
  ): Promise<string> {
    const answer = await request(`${this.#baseUrl}${path}`, {
      method,
      headers: {
        ...(options.anonymous === true ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(options.body === undefined ? {} : { "content-type": "application/json" }),
        ...options.headers,
      },
      body: options.body ?? null,
      signal: AbortSignal.any([this.#signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Refused(`${method} ${path}`, answer.statusCode, text);
    return text;
  }

  /** The tip of a branch. Null if it does not exist yet. */
  async branchTip(projectId: string, branch: string): Promise<string | null> {
    const credential = Buffer.from(`demo:${this.#token}`).toString("base64");
    const refs = await this.text("GET", `/v1/git/${projectId}.git/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Basic ${credential}` },
      anonymous: true,
    });
    return tipOf(refs, branch);
  }

  /** A project's events from now on. The first one comes as soon as the stream is open. */
  async *events(projectId: string): AsyncGenerator<ServerEvent> {
    const answer = await request(`${this.#baseUrl}/v1/projects/${projectId}/events`, {
      headers: { authorization: `Bearer ${this.#token}`, accept: "text/event-stream" },
      bodyTimeout: 0,
      signal: this.#signal,
    });
    if (answer.statusCode !== 200) {
      throw new Refused("GET events", answer.statusCode, await answer.body.text());
    }
    let rest = "";
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      const blocks = `${rest}${chunk.toString("utf8")}`.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = eventOf(block);
        if (event !== null) yield event;
      }
    }
    throw new Error("the service ended the stream of events");
  }
}

/** Reads git's advertisement of refs: packet lines of `<commit> <ref>`. */
export const tipOf = (advertisement: string, branch: string): string | null => {
  for (const line of advertisement.split("\n")) {
    const match = /(?<commit>[0-9a-f]{40}) (?<ref>refs\/heads\/[^\0]+)/.exec(line)?.groups;
    if (match?.["ref"] === `refs/heads/${branch}`) return match["commit"] ?? null;
  }
  return null;
};

/** One block of a stream of server-sent events. Null for a comment. */
export const eventOf = (block: string): ServerEvent | null => {
  const field = (name: string): string | undefined =>
    block
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const data = field("data");
  if (data === undefined) return null;
  return { type: field("event") ?? "message", at: "", data: {}, ...(JSON.parse(data) as object) };
};

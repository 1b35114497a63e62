/** Readers of server-sent events, which note when each token of a text came (daemon-farm.ts, `stamp`). */
import { request, type RequestOptions } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { TOKEN, type Life } from "../../support/service/process-service.ts";

const STAMP = /(\d+\.\d{3}) /g;
const nowMs = (): number => Number(process.hrtime.bigint() / 1000n) / 1000;

/** A reader, and the stamps that it has seen. */
export interface Reader {
  /** From each token's instant to its event, ms. */
  readonly latencies: number[];
  readonly close: () => void;
}

/** Takes one event's data. @returns the text that is new by it. */
type Take = (event: string, data: string) => string;

/** Each event has the token's text. */
export const plainText = (): Take => (_, data) => (JSON.parse(data) as { readonly text: string }).text;

interface ItemData {
  readonly id: string;
  readonly role: string;
  readonly content: readonly { readonly type: string; readonly text?: string }[];
}
interface DeltaData {
  readonly item_id: string;
  readonly offset: number;
  readonly text: string;
}

/**
 * The conversation's events, as the page applies them: a delta that does not fit changes nothing. A version may take the
 * text back to an earlier one, and the rest comes again: only what is seen for the first time counts.
 */
export const conversationText = (): Take => {
  const texts = new Map<string, string>();
  const seen = new Map<string, number>();
  const known = (id: string, text: string): string => {
    const before = seen.get(id) ?? 0;
    texts.set(id, text);
    seen.set(id, Math.max(before, text.length));
    return text.slice(before);
  };
  return (event, data) => {
    if (event === "delta") {
      const { item_id: id, offset, text } = JSON.parse(data) as DeltaData;
      const former = texts.get(id);
      return former?.length === offset ? known(id, former + text) : "";
    }
    if (event !== "item") return "";
    const { id, role, content } = JSON.parse(data) as ItemData;
    return role === "agent" ? known(id, content.map((part) => part.text ?? "").join("")) : "";
  };
};

/** Resolves when the stream is open. */
export const openReader = (options: RequestOptions, take: Take): Promise<Reader> =>
  new Promise((resolve, reject) => {
    const call = request({ ...options, agent: false }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`the stream answered ${response.statusCode}`));
      const latencies: number[] = [];
      let rest = "";
      let text = "";
      const frame = (lines: string): void => {
        const event = /^event: (\w+)$/m.exec(lines)?.[1] ?? "message";
        const data = /^data: (.*)$/m.exec(lines)?.[1];
        if (data === undefined) return;
        text += take(event, data);
        const at = nowMs();
        let end = 0;
        for (const found of text.matchAll(STAMP)) {
          latencies.push(at - Number(found[1]));
          end = found.index + found[0].length;
        }
        text = text.slice(end);
      };
      response.setEncoding("utf8").on("data", (chunk: string) => {
        const frames = (rest + chunk).split("\n\n");
        rest = frames.pop() ?? "";
        for (const one of frames) frame(one);
      });
      response.on("error", () => undefined);
      resolve({ latencies, close: () => call.destroy() });
    });
    call.on("error", reject);
    call.end();
  });

const SEEN_WITHIN_MS = 20_000;

/** Waits until every reader has seen so many tokens, or for 20 s. @returns the latencies of all. */
export const allSeen = async (readers: readonly Reader[], tokens: number): Promise<readonly number[]> => {
  const until = performance.now() + SEEN_WITHIN_MS;
  while (performance.now() < until && readers.some(({ latencies }) => latencies.length < tokens))
    await pause(20);
  return readers.flatMap(({ latencies }) => latencies.splice(0));
};

/** One token of the API may have 100 streams open. */
const STREAMS_PER_TOKEN = 100;

/** So many tokens of the API that each has at most its streams. */
const tokensFor = async (life: Life, readers: number): Promise<readonly string[]> => {
  const tokens = [TOKEN];
  while (tokens.length * STREAMS_PER_TOKEN < readers)
    tokens.push(String((await life.call("POST", "/v1/tokens", { name: "bench" }))["token"]));
  return tokens;
};

/** A reader of the events of each of these sessions' conversations, from now on. */
export const openConversations = async (
  life: Life,
  projectId: string,
  sessions: readonly string[],
): Promise<readonly Reader[]> => {
  const tokens = await tokensFor(life, sessions.length);
  const { hostname: host, port } = new URL(life.url);
  const readers: Reader[] = [];
  for (const [index, id] of sessions.entries()) {
    const path = `/v1/projects/${projectId}/sessions/${id}/conversation/events`;
    const headers = { authorization: `Bearer ${tokens[Math.floor(index / STREAMS_PER_TOKEN)]}` };
    readers.push(await openReader({ host, port, path, headers }, conversationText()));
  }
  return readers;
};

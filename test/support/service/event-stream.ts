/** A reader of server-sent events: the received events in order, and a wait for further ones. */
import { request, type IncomingMessage } from "node:http";
import { vi } from "vitest";
import { WAIT_MS } from "../patience.ts";

export interface SentEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: unknown;
}

export interface EventReader {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** Everything received so far. */
  readonly events: readonly SentEvent[];
  /** Whether the other side has ended the stream. */
  readonly ended: () => boolean;
  /** Waits for a matching event. Events that were received before count too. */
  readonly until: (fits: (event: SentEvent) => boolean) => Promise<SentEvent>;
  readonly close: () => void;
}

const parse = (frame: string): SentEvent | null => {
  const field = (name: string) =>
    frame
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const event = field("event");
  return event === undefined
    ? null
    : { id: field("id") ?? null, event, data: JSON.parse(field("data") ?? "null") };
};

/** Opens a stream. @param lastEventId the last event of a former reader. */
export const readEvents = (
  url: string,
  { token, lastEventId }: { readonly token: string; readonly lastEventId?: string },
): Promise<EventReader> =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    };
    const asked = request(url, { headers, agent: false }, (response) => {
      const events: SentEvent[] = [];
      let rest = "";
      let ended = false;
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        const frames = (rest + chunk).split("\n\n");
        rest = frames.pop() ?? "";
        events.push(...frames.map(parse).filter((event) => event !== null));
      });
      response.on("close", () => {
        ended = true;
      });
      response.on("error", () => undefined);
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        events,
        ended: () => ended,
        until: (fits) =>
          vi.waitFor(
            () => {
              const found = events.find(fits);
              if (found === undefined) throw new Error(`not there among ${JSON.stringify(events)}`);
              return found;
            },
            { timeout: WAIT_MS, interval: 10 },
          ),
        close: () => asked.destroy(),
      });
    });
    asked.on("error", reject);
    asked.end();
  });

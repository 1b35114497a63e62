/**
 * Many readers of server-sent events, a process of its own: what they cost is not the server's. Each notes when it gets
 * the event with a number that is asked for.
 */
import { Agent, request, type RequestOptions } from "node:http";
import { obey } from "../programs.ts";

/** The crowd opens streams, or says when each of them got an event. */
export type Order =
  | {
      readonly kind: "open";
      readonly port: number;
      readonly path: string;
      readonly tokens: readonly string[];
      readonly count: number;
    }
  | { readonly kind: "heard"; readonly number: number; readonly patienceMs: number };

/** When each reader got the event, in ms of the machine's monotonic clock. Readers that did not get it are missing. */
export type Heard = readonly number[];

const nowMs = (): number => Number(process.hrtime.bigint() / 1000n) / 1000;

const agent = new Agent({ keepAlive: false, maxSockets: Infinity });
let opened = 0;
/** By the event's number: when each reader got it, and what waits until all have. */
const instants = new Map<number, number[]>();
let changed = (): void => undefined;

const hear = (data: string): void => {
  const { number } = (JSON.parse(data) as { readonly data?: { readonly number?: number } }).data ?? {};
  if (number === undefined) return;
  const known = instants.get(number) ?? [];
  known.push(nowMs());
  instants.set(number, known);
  changed();
};

const open = (options: RequestOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    const call = request({ ...options, agent }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`a stream answered ${response.statusCode}`));
      let rest = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        const frames = (rest + chunk).split("\n\n");
        rest = frames.pop() ?? "";
        for (const frame of frames) {
          if (frame.includes("event: open")) resolve();
          const data = /^data: (.*)$/m.exec(frame)?.[1];
          if (data !== undefined) hear(data);
        }
      });
      response.on("error", () => undefined);
    });
    call.on("error", reject);
    call.end();
  });

const perform = async (order: Order): Promise<Heard> => {
  if (order.kind === "open") {
    const { port, path, tokens, count } = order;
    for (let index = 0; index < count; index += 1) {
      const token = tokens[Math.floor((index * tokens.length) / count)] ?? "";
      await open({ host: "127.0.0.1", port, path, headers: { authorization: `Bearer ${token}` } });
    }
    opened += count;
    return [];
  }
  const got = (): number => instants.get(order.number)?.length ?? 0;
  await new Promise<void>((resolve) => {
    const patience = setTimeout(resolve, order.patienceMs);
    changed = () => {
      if (got() < opened) return;
      clearTimeout(patience);
      resolve();
    };
    changed();
  });
  const heard = instants.get(order.number) ?? [];
  instants.delete(order.number);
  return heard;
};

obey(async (order: Order) => ({ heard: await perform(order) }));
process.on("disconnect", () => process.exit());

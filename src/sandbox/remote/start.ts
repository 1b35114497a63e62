/**
 * Starts a sandbox over its link: hands it the keys and the launch file that the cluster must not know (daemon/programs/link.cjs, L1).
 */
import { request } from "node:http";
import * as Schema from "effect/Schema";
import { type ChannelPlace, dialChannel } from "./channel.ts";
import type { SandboxKeys } from "./keys.ts";

/** For one attempt, in milliseconds. The sandbox dials the egress listener meanwhile, for up to 5 s. */
const START_MS = 15_000;
/** A refusal is a short sentence. */
const ANSWER_BYTES_MAX = 16 * 1024;

export interface Start {
  /** Where the sandbox's link listens. */
  readonly link: ChannelPlace;
  /** Where sandboxes reach the egress listener. */
  readonly egress: ChannelPlace;
  readonly keys: SandboxKeys;
  /** The launch file's content (domain/sandbox/launch.ts). */
  readonly launch: string;
}

/**
 * The result of an attempt. `refused` is final: the sandbox cannot work. After `away` the caller tries again: the link does not
 * listen yet, or the answer was lost.
 */
export type Started =
  | { readonly kind: "started" }
  | { readonly kind: "refused" | "away"; readonly why: string };

const decodeRefusal = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ code: Schema.String, error: Schema.String })),
);

const base64 = (key: Uint8Array): string => Buffer.from(key).toString("base64");

const startBody = ({ keys, launch, egress }: Start): string =>
  JSON.stringify({
    launch,
    link: base64(keys.link.key),
    egress: { ...egress, identity: keys.egress.identity, key: base64(keys.egress.key) },
  });

/** Never rejects, and no result has a key. A sandbox that has started already refuses the connection. */
export const startOverLink = (start: Start): Promise<Started> => {
  const { promise, resolve } = Promise.withResolvers<Started>();
  const body = startBody(start);
  const call = request({
    createConnection: () => dialChannel(start.link, start.keys.start),
    method: "POST",
    path: "/start",
    headers: { host: "link", "content-type": "application/json", "content-length": Buffer.byteLength(body) },
    signal: AbortSignal.timeout(START_MS),
  });
  call.on("error", (error) => resolve({ kind: "away", why: errorReason(error) }));
  call.on("response", (answer) => {
    let text = "";
    answer.setEncoding("utf8");
    answer.on("data", (chunk: string) => (text = (text + chunk).slice(0, ANSWER_BYTES_MAX)));
    answer.on("error", (error) => resolve({ kind: "away", why: errorReason(error) }));
    answer.on("end", () => resolve(toOutcome(start, answer.statusCode ?? 0, text)));
  });
  call.end(body);
  return promise;
};

const errorReason = (error: Error): string =>
  "code" in error && typeof error.code === "string" ? error.code : error.message;

const toOutcome = ({ egress }: Start, status: number, text: string): Started => {
  if (status === 200) return { kind: "started" };
  const refusal = decodeRefusal(text);
  if (refusal._tag === "None") return { kind: "away", why: `its link answered ${status}` };
  const { code, error } = refusal.value;
  return code === "egress_unreachable"
    ? {
        kind: "refused",
        why: `the sandbox cannot reach the service at ${egress.host}:${egress.port} (${error.slice(0, 200)})`,
      }
    : { kind: "refused", why: `its link refused the start (${code.slice(0, 40)})` };
};

/** Whether the link takes the service's key: the sandbox has started. */
export const hasStarted = ({ link, keys }: Pick<Start, "link" | "keys">): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = dialChannel(link, keys.link);
  const answerWith = (answer: boolean) => () => {
    socket.destroy();
    resolve(answer);
  };
  socket.setTimeout(START_MS, answerWith(false));
  socket.once("secureConnect", answerWith(true)).on("error", answerWith(false));
  return promise;
};

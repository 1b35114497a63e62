/**
 * Hands messages of people to opencode.
 *
 *  S1 A message and its parts have ids that follow from our id and from the time at which it was sent first. So opencode
 *     has a message once, however often it was handed over. opencode orders messages by their ids.
 *  S2 A message is handed over only while the agent rests: opencode may never answer one that it gets during a turn.
 *  S3 A message is accepted once opencode works on it, or has begun an answer. Until then it is handed over again.
 */
import { createHash } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import type { HttpFailure } from "../http-client.ts";

/** A message as the service hands it over. */
export interface OutgoingMessage {
  /** Our id. */
  readonly id: string;
  /** When it was sent for the first time, ms since the epoch. */
  readonly sentAt: number;
  readonly text: string;
  readonly files: readonly { readonly name: string; readonly mediaType: string; readonly base64: string }[];
  /** `provider/model`. Null: the session's. */
  readonly model: string | null;
  /** Null: the session's. */
  readonly agent: string | null;
}

export type Handover =
  | { readonly outcome: "accepted" }
  /** The agent is at work. */
  | { readonly outcome: "busy" }
  | { readonly outcome: "refused"; readonly error: { readonly code: string; readonly message: string } };

/** The calls to opencode that are needed here. */
export interface MessageCalls {
  readonly get: <A>(path: string, schema: Schema.Decoder<A>) => Effect.Effect<A, HttpFailure>;
  readonly post: (path: string, body?: unknown) => Effect.Effect<string, HttpFailure>;
  readonly busySessions: Effect.Effect<readonly string[], HttpFailure>;
}

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 14;
/** opencode's ids begin with the time: ms times this, plus a count of the ids within the ms. */
const COUNTS_A_MS = 0x1000n;
const TIME_BITS = 48;

type Dated = Pick<OutgoingMessage, "id" | "sentAt">;

/** An id in opencode's own form, the same for the same message (S1). `count`: its place within the message. */
const nativeId = (prefix: "msg" | "prt", { id, sentAt }: Dated, count: number): string => {
  const time = BigInt.asUintN(TIME_BITS, BigInt(sentAt) * COUNTS_A_MS + BigInt(count));
  const digest = createHash("sha256").update(`${prefix}/${id}/${count}`).digest();
  const letters = [...digest.subarray(0, RANDOM_LENGTH)].map((byte) => BASE62[byte % BASE62.length] ?? "0");
  return `${prefix}_${time.toString(16).padStart(TIME_BITS / 4, "0")}${letters.join("")}`;
};

/** The id of the message in opencode. */
export const nativeMessageId = (message: Dated): string => nativeId("msg", message, 0);

const Listed = Schema.Array(
  Schema.Struct({
    info: Schema.Struct({
      id: Schema.String,
      role: Schema.String,
      parentID: Schema.optionalKey(Schema.String),
    }),
  }),
);

/** How often opencode is asked whether it works on the message. It answers a prompt before it has stored it. */
const LOOK_AGAIN = { schedule: Schedule.spaced("50 millis"), times: 60 };
/** How often a message is handed over that opencode does not begin to answer. */
const TRIES = 3;

const NOT_TAKEN = {
  code: "message_not_taken",
  message: "The agent runtime did not begin to answer the message. Check its agent and its model.",
};

const provider = (model: string): { readonly providerID: string; readonly modelID: string } => {
  const slash = model.indexOf("/");
  return { providerID: model.slice(0, slash), modelID: model.slice(slash + 1) };
};

const promptOf = (message: OutgoingMessage) => ({
  messageID: nativeMessageId(message),
  parts: [
    // Without ids, parts of a message that is handed over twice would double.
    { id: nativeId("prt", message, 1), type: "text", text: message.text },
    ...message.files.map(({ name, mediaType, base64 }, index) => ({
      id: nativeId("prt", message, index + 2),
      type: "file",
      filename: name,
      mime: mediaType,
      url: `data:${mediaType};base64,${base64}`,
    })),
  ],
  ...(message.agent !== null && { agent: message.agent }),
  ...(message.model !== null && { model: provider(message.model) }),
});

/** Whether opencode works on the message or has begun to answer it, and whether it works on another one. */
const stateOf = Effect.fnUntraced(function* (calls: MessageCalls, session: string, native: string) {
  // Asked first: a turn that ends in between has left its answer in the list.
  const isBusy = (yield* calls.busySessions).includes(session);
  const messages = yield* calls.get(`/session/${session}/message`, Listed);
  const isThere = messages.some(({ info }) => info.id === native);
  const isAnswered = messages.some(({ info }) => info.role === "assistant" && info.parentID === native);
  return { isTaken: isAnswered || (isThere && isBusy), isBusy };
});

/** Hands the message to the agent session. May be repeated after any failure, and at any time after success. */
export const handOver = Effect.fnUntraced(function* (
  calls: MessageCalls,
  session: string,
  message: OutgoingMessage,
): Effect.fn.Return<Handover, HttpFailure> {
  const look = stateOf(calls, session, nativeMessageId(message));
  for (let tries = 0; tries < TRIES; tries += 1) {
    const before = yield* look;
    if (before.isTaken) return { outcome: "accepted" };
    if (before.isBusy) return { outcome: "busy" };
    yield* calls.post(`/session/${session}/prompt_async`, promptOf(message));
    const after = yield* Effect.repeat(look, { until: ({ isTaken }) => isTaken, ...LOOK_AGAIN });
    if (after.isTaken) return { outcome: "accepted" };
  }
  return { outcome: "refused", error: NOT_TAKEN };
});

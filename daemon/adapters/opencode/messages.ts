/**
 * Hands messages of people to opencode.
 *
 *  S1 A message and its parts have ids that follow from our id and from the time at which it was sent first. So opencode
 *     has a message once, however often it was handed over.
 *  S2 A message is handed over only while the agent rests: opencode may never answer one that it gets during a turn.
 *  S3 A message is accepted once opencode works on it, or has begun an answer. Until then it is handed over again.
 */
import { createHash } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import type { ItemError } from "../../../src/domain/conversation/conversation.ts";
import type { HttpFailure } from "../../http/client.ts";
import type { Handover } from "../adapter.ts";
import { splitModel, UNKNOWN_MODEL } from "./api.ts";
import type { PromptPart } from "./files.ts";
import { timedId } from "./ids.ts";

/** A message for opencode, with everything that it does not choose by itself. */
export interface Prompt {
  /** Our id. */
  readonly id: string;
  /** When it was sent first, ms since the epoch. */
  readonly sentMs: number;
  readonly text: string;
  /** Parts that follow the text. */
  readonly more: readonly PromptPart[];
  /** Null means opencode's default. */
  readonly agent: string | null;
  /** `provider/model`. Null means opencode's choice. */
  readonly model: string | null;
  /** opencode calls it a variant of the model. Null means the model's own. */
  readonly effort: string | null;
  /** opencode's command that the text begins with, and the rest of the text. Absent: none. */
  readonly command?: { readonly name: string; readonly rest: string };
}

/** The calls to opencode that are needed here. */
export interface MessageCalls {
  readonly get: <A>(path: string, schema: Schema.Decoder<A>) => Effect.Effect<A, HttpFailure>;
  readonly post: (path: string, body?: unknown) => Effect.Effect<string, HttpFailure>;
  readonly busySessions: Effect.Effect<readonly string[], HttpFailure>;
}

export interface Handing {
  readonly calls: MessageCalls;
  /** opencode's id of the agent session. */
  readonly session: string;
  /** Why the session's newest turn could not begin. Null if no such thing is known. */
  readonly fault: () => ItemError | null;
}

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 14;

type Dated = Pick<Prompt, "id" | "sentMs">;

/** An id in opencode's own form, the same for the same message (S1). `count`: its place within the message. */
const nativeId = (prefix: "msg" | "prt", { id, sentMs }: Dated, count: number): string => {
  const digest = createHash("sha256").update(`${prefix}/${id}/${count}`).digest();
  const letters = [...digest.subarray(0, RANDOM_LENGTH)].map((byte) => BASE62[byte % BASE62.length] ?? "0");
  return timedId(prefix, { ms: sentMs, count, rest: letters.join("") });
};

/** The id of the message in opencode. */
export const nativeMessageId = (message: Dated): string => nativeId("msg", message, 0);

/** The body of the call that hands a text over. */
export const promptBody = ({ agent, model, effort, text, more, ...message }: Prompt) => ({
  messageID: nativeMessageId(message),
  parts: (text === "" ? more : [{ type: "text" as const, text }, ...more]).map((part, at) =>
    // Without an id, the parts of a message that is handed over twice would double.
    Object.assign({ id: nativeId("prt", message, at + 1) }, part),
  ),
  ...(agent !== null && { agent }),
  ...(model !== null && { model: splitModel(model) }),
  ...(effort !== null && { variant: effort }),
});

/** The body of the call that carries a command out. It takes files, and no text beside the arguments. */
const commandBody = (
  { name, rest }: NonNullable<Prompt["command"]>,
  { agent, model, effort, more, ...message }: Prompt,
) => ({
  messageID: nativeMessageId(message),
  command: name,
  arguments: [rest, ...more.flatMap((part) => (part.type === "text" ? [part.text] : []))].join("\n\n").trim(),
  parts: more.filter(({ type }) => type === "file"),
  ...(agent !== null && { agent }),
  ...(model !== null && { model }),
  ...(effort !== null && { variant: effort }),
});

/** Gives opencode a message. It answers a command once the turn is over, and the turn goes on without a reader of the answer. */
const send = ({ calls, session }: Handing, message: Prompt) =>
  message.command === undefined
    ? calls.post(`/session/${session}/prompt_async`, promptBody(message))
    : Effect.forkChild(calls.post(`/session/${session}/command`, commandBody(message.command, message)));

const Listed = Schema.Array(
  Schema.Struct({
    info: Schema.Struct({
      id: Schema.String,
      role: Schema.String,
      parentID: Schema.optionalKey(Schema.String),
      // Of a person's message: what it asked for.
      agent: Schema.optionalKey(Schema.String),
      model: Schema.optionalKey(
        Schema.Struct({
          providerID: Schema.String,
          modelID: Schema.String,
          variant: Schema.optionalKey(Schema.NullOr(Schema.String)),
        }),
      ),
    }),
  }),
);

/** How many of the session's newest messages are read. A step of a turn is a message. */
const NEWEST = 20;
/** How often opencode is asked whether it works on the message. It answers a prompt before it has stored it. */
const LOOK_EVERY = Schedule.spaced("50 millis");
/**
 * After this time the message is handed over again: opencode never begins one that it gets in a turn's last moment. One
 * that it begins late is still answered once (S1).
 */
const TAKEN_WITHIN = "5 seconds";
/** A fault may belong to the turn before, because opencode tells some twice. It counts after that many looks. */
const LOOKS_AFTER_FAULT = 20;
/** How often a message is handed over that opencode does not begin to answer: for a minute, because a busy machine is slow. */
const TRIES = 12;

const NOT_TAKEN: ItemError = {
  code: "message_not_taken",
  message: "The agent runtime did not begin to answer the message. Check its agent and its model.",
};

const readNewest = ({ calls, session }: Handing) =>
  calls.get(`/session/${session}/message?limit=${NEWEST}`, Listed);

/** Agent, model and effort of the newest message of a person. Null before the first. The model is null if it is not known. */
export const lastChoice = Effect.fnUntraced(function* (handing: Handing) {
  const messages = yield* readNewest(handing);
  const info = messages.findLast(({ info: { role } }) => role === "user")?.info;
  if (info === undefined) return null;
  const { agent = null, model } = info;
  const name = model === undefined ? null : `${model.providerID}/${model.modelID}`;
  return { agent, model: name === UNKNOWN_MODEL ? null : name, effort: model?.variant ?? null };
});

const Id = Schema.Struct({ info: Schema.Struct({ id: Schema.String }) });

/** Whether the session has a message that is older than its newest ones. */
const hasOlder = ({ calls, session }: Handing, native: string): Effect.Effect<boolean, HttpFailure> =>
  Effect.catch(Effect.as(calls.get(`/session/${session}/message/${native}`, Id), true), (failure) =>
    failure.status === 404 ? Effect.succeed(false) : Effect.fail(failure),
  );

/** Ids of the answers to a message, among the session's newest ones. */
const answersTo = (
  messages: readonly {
    readonly info: { readonly id: string; readonly role: string; readonly parentID?: string };
  }[],
  native: string,
): readonly string[] =>
  messages.flatMap(({ info }) => (info.role === "assistant" && info.parentID === native ? [info.id] : []));

/**
 * Whether opencode works on the message or has begun to answer it, and whether it works on another one.
 *
 * @param former ids of answers that do not count
 */
const readState = Effect.fnUntraced(function* (
  handing: Handing,
  { native, former }: { readonly native: string; readonly former: ReadonlySet<string> },
) {
  // Asked first: a turn that ends in between has left its answer in the list.
  const isBusy = (yield* handing.calls.busySessions).includes(handing.session);
  const messages = yield* readNewest(handing);
  const isThere = messages.some(({ info }) => info.id === native);
  const isAnswered = answersTo(messages, native).some((id) => !former.has(id));
  if (isAnswered || (isThere && isBusy)) return { isTaken: true, isBusy };
  return { isTaken: !isThere && messages.length >= NEWEST && (yield* hasOlder(handing, native)), isBusy };
});

/** Hands a message over again whose turn failed. opencode answers it as if it had not been answered. */
export const handAgain = Effect.fnUntraced(function* (handing: Handing, message: Prompt) {
  const former = new Set(answersTo(yield* readNewest(handing), nativeMessageId(message)));
  return yield* handOver(handing, message, former);
});

/**
 * Hands the message to the agent session. May be repeated after any failure, and at any time after success.
 *
 * @param former ids of answers that do not count
 */
export const handOver = Effect.fnUntraced(function* (
  handing: Handing,
  message: Prompt,
  former: ReadonlySet<string> = new Set(),
): Effect.fn.Return<Handover, HttpFailure> {
  const look = readState(handing, { native: nativeMessageId(message), former });
  for (let tries = 0; tries < TRIES; tries += 1) {
    const before = yield* look;
    if (before.isTaken) return { outcome: "accepted" };
    if (before.isBusy) return { outcome: "busy" };
    yield* send(handing, message);
    let looksAfterFault = 0;
    const acceptance = Effect.repeat(look, {
      schedule: LOOK_EVERY,
      until: ({ isTaken }) => {
        if (handing.fault() !== null) looksAfterFault += 1;
        return isTaken || looksAfterFault > LOOKS_AFTER_FAULT;
      },
    });
    const after = yield* Effect.timeoutOption(acceptance, TAKEN_WITHIN);
    if (Option.isSome(after) && after.value.isTaken) return { outcome: "accepted" };
    const error = handing.fault();
    if (error !== null) return { outcome: "refused", error };
  }
  return { outcome: "refused", error: NOT_TAKEN };
});

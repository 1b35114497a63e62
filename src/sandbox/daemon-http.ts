/** The daemon's control surface over HTTP, on the link that its provider gives. */
import { request, type IncomingMessage } from "node:http";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import * as Stream from "effect/Stream";
import { ConversationReport } from "../domain/conversation/conversation.ts";
import { daemonProtocol, isOutdated } from "../domain/sandbox/daemon-protocol.ts";
import { NumberedTurn } from "../domain/session/last-turn.ts";
import { readLine } from "../domain/session/log-line.ts";
import { MessageHandedOver, RuntimeOffers } from "../domain/conversation/steering.ts";
import { storableText } from "../domain/text.ts";
import { USER_CONTEXT_HEADER } from "../domain/sandbox/user-context.ts";
import {
  DaemonClient,
  DaemonHealth,
  DaemonOutdated,
  type DaemonUnreachable,
  EnvironmentChanged,
  NoConversation,
  PushedSave,
} from "./daemon.ts";
import { ask, askFor, type ContextCall, dialOptions, nameHeaders, unreachable } from "./daemon-ask.ts";
import { savingHttp, storableRestored } from "./daemon-saving.ts";
import { workspaceHttp } from "./daemon-workspace.ts";
import { linkRequest, type DaemonLink } from "./port.ts";

const HEALTH_TIMEOUT_MS = 1000;
const PREPARE_TIMEOUT_MS = 180_000;
/** A claim brings a whole conversation, at most. */
const CLAIM_TIMEOUT_MS = 10_000;
const ENV_TIMEOUT_MS = 180_000;
/** Longer than the daemon keeps the request open. */
const TURN_TIMEOUT_MS = 40_000;
const ClaimedBy = Schema.Struct({ session_id: Schema.String });
const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown));
const decodeHealth = Schema.decodeUnknownEffect(DaemonHealth);

/** A report of the protocols that this version knows. An older report may lack what this version reads in it. */
const readHealth = Effect.fnUntraced(function* (text: string) {
  const report = yield* Effect.mapError(decodeJson(text), unreachable);
  const protocol = daemonProtocol(report);
  if (protocol !== null && isOutdated(protocol)) return yield* new DaemonOutdated({ protocol });
  const health = yield* Effect.mapError(decodeHealth(report), unreachable);
  return storableHealth({ ...health, ...(protocol !== null && { protocol }) });
});

/** The daemon sends something every 15 s, so a stream that is silent for this long is dead. */
const SILENCE_MS = 60_000;

interface OpenedStream {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The error of an answer without a stream. */
  readonly refused: (status: number) => DaemonUnreachable | NoConversation;
}

/** Opens a stream of lines. It closes with the scope. */
const openStream = (link: DaemonLink, { path, headers, refused: refusal }: OpenedStream) =>
  Effect.callback<IncomingMessage, DaemonUnreachable | NoConversation>((resume) => {
    const over = linkRequest(link, { method: "GET", path, by: "service" });
    const call = request({
      ...dialOptions(link),
      path: over.path,
      headers: { ...headers, ...nameHeaders(over.headers) },
      timeout: SILENCE_MS,
    });
    call.on("timeout", () => call.destroy(new Error(`no data within ${SILENCE_MS} ms`)));
    call.on("error", (error) => resume(Effect.fail(unreachable(error))));
    call.on("response", (answer) => {
      // The stream's reader reports an error after the answer has begun.
      answer.on("error", () => undefined);
      if (answer.statusCode === 200) return resume(Effect.succeed(answer));
      call.destroy();
      resume(Effect.fail(refusal(answer.statusCode ?? 0)));
    });
    call.end();
    return Effect.sync(() => call.destroy());
  });

const nobody = (): void => undefined;

/**
 * Reads an answer's bytes on demand.
 *
 * @returns the next bytes as soon as they arrive, or the end of the answer. Interrupting it loses no bytes.
 */
const taker = (answer: IncomingMessage): Effect.Effect<Buffer, DaemonUnreachable | Cause.Done> => {
  let look = nobody;
  for (const sign of ["readable", "end", "close"]) answer.on(sign, () => look());
  return Effect.callback((resume) => {
    const tell = (outcome: Effect.Effect<Buffer, DaemonUnreachable | Cause.Done>): void => {
      // Reset before the caller resumes, since it may call again at once.
      look = nobody;
      resume(outcome);
    };
    look = () => {
      const chunk = answer.read() as Buffer | null;
      if (chunk !== null) tell(Effect.succeed(chunk));
      else if (answer.readableEnded) tell(Cause.done());
      else if (answer.destroyed)
        tell(Effect.fail(unreachable(new Error("the daemon closed the connection"))));
    };
    look();
    return Effect.sync(() => {
      look = nobody;
    });
  });
};

/** The stream's lines, no faster than they are read. */
const readLines = (link: DaemonLink, stream: OpenedStream) =>
  Stream.unwrap(
    Effect.map(
      Effect.acquireRelease(openStream(link, stream), (answer) => Effect.sync(() => answer.destroy()), {
        interruptible: true,
      }),
      (answer) => Stream.fromEffectRepeat(taker(answer)),
    ),
  ).pipe(Stream.decodeText, Stream.splitLines);

interface Following {
  readonly context: string;
  readonly after: number;
}

const DATA = "data: ";

const logs = (link: DaemonLink, { context, after }: Following) =>
  readLines(link, {
    path: "/platform/logs",
    headers: { [USER_CONTEXT_HEADER]: context, "last-event-id": String(after) },
    refused: (status) => unreachable(new Error(`the log was refused with ${status}`)),
  }).pipe(
    Stream.filter((line) => line.startsWith(DATA)),
    Stream.map((line) => readLine(line.slice(DATA.length))),
    Stream.filter((line) => line !== null),
    // Every daemon has a log.
    Stream.catchTag("NoConversation", (error) => Stream.fail(unreachable(error))),
  );

const decodeReport = Schema.decodeUnknownOption(Schema.fromJsonString(ConversationReport));

const conversation = (link: DaemonLink, { context, after }: Following) =>
  readLines(link, {
    path: `/platform/conversation?after=${after}`,
    headers: { [USER_CONTEXT_HEADER]: context },
    refused: (status) =>
      status === 409
        ? new NoConversation()
        : unreachable(new Error(`the conversation was refused with ${status}`)),
  }).pipe(
    // A blank line is a heartbeat. A line in another form does not come from our daemon.
    Stream.map((line) => decodeReport(line)),
    Stream.filter((option) => option._tag === "Some"),
    Stream.map(({ value }) => value),
  );

const Aborted = Schema.Struct({ aborted: Schema.Boolean });

/** Longer than the daemon hands a message over, several times. */
const HAND_TIMEOUT_MS = 60_000;
const STEER_TIMEOUT_MS = 20_000;
/** An attachment has at most 10 MiB. */
const ATTACH_TIMEOUT_MS = 60_000;

/** A call that steers the agent. A runtime without a conversation answers 409. */
const steer = <A>(link: DaemonLink, call: ContextCall, schema: Schema.Decoder<A>) =>
  askFor(
    link,
    { ...call, others: ({ status }) => (status === 409 ? Effect.fail(new NoConversation()) : undefined) },
    schema,
  );

const Attached = Schema.Struct({ stored: Schema.Literal(true) });
const Interrupted = Schema.Struct({ interrupted: Schema.Boolean });
const Answered = Schema.Struct({ answered: Schema.Boolean });

const Ports = Schema.Struct({
  ports: Schema.Array(
    Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 65_535 })),
  ).check(Schema.isMaxLength(100)),
});
/** The runtime's processes have five seconds to end, and the daemon gives up after thirty. */
const WITHDRAW_TIMEOUT_MS = 40_000;
/** It reads two files of the kernel. */
const PORTS_TIMEOUT_MS = 5_000;

const ports = (link: DaemonLink, context: string) =>
  Effect.map(
    askFor(link, { path: "/platform/ports", timeoutMs: PORTS_TIMEOUT_MS, context }, Ports),
    (answer) => answer.ports,
  );

const storableOrNull = (text: string | null): string | null => (text === null ? null : storableText(text));

/** The result in a form that a row can store, since its text comes from the sandbox. */
const storable = ({ wip, skipped, error }: PushedSave): PushedSave => ({
  wip: storableOrNull(wip),
  skipped: skipped.map(({ path, reason }) => ({ path: storableText(path), reason: storableText(reason) })),
  error: storableOrNull(error),
});

const storableHealth = ({ restored = null, ...health }: DaemonHealth): DaemonHealth => ({
  ...health,
  restored: restored && storableRestored(restored),
});

const Output = Schema.Struct({ output: Schema.String });
const OUTPUT_TIMEOUT_MS = 20_000;
/** An output has at most 1 MiB, and each byte of it up to six in JSON. */
const OUTPUT_LIMIT_BYTES = 8 * 1024 * 1024;

const output = (link: DaemonLink, context: string, item: string) =>
  Effect.map(
    askFor(
      link,
      {
        path: `/platform/output?${new URLSearchParams({ item }).toString()}`,
        timeoutMs: OUTPUT_TIMEOUT_MS,
        limitBytes: OUTPUT_LIMIT_BYTES,
        context,
        others: ({ status }) => (status === 404 ? Effect.succeed(null) : undefined),
      },
      Output,
    ),
    (reply) => reply && reply.output,
  );

const TurnTold = Schema.Struct({ last: Schema.NullOr(NumberedTurn) });

const turn = (link: DaemonLink, context: string, after: number) =>
  Effect.map(
    askFor(link, { path: `/platform/turn?after=${after}`, timeoutMs: TURN_TIMEOUT_MS, context }, TurnTold),
    ({ last }) => last,
  );

export const daemonHttp = Layer.succeed(DaemonClient, {
  health: (link, until) =>
    ask(link, {
      path: until === undefined ? "/platform/health" : `/platform/health?until=${until}`,
      timeoutMs: HEALTH_TIMEOUT_MS,
    }).pipe(Effect.flatMap(({ text }) => readHealth(text))),
  abort: (link, context, timeoutMs) =>
    Effect.map(
      askFor(link, { path: "/platform/abort", context, timeoutMs, body: {} }, Aborted),
      ({ aborted }) => aborted,
    ),
  goOn: (link, context) =>
    Effect.asVoid(
      askFor(
        link,
        { path: "/platform/continue", context, timeoutMs: HEALTH_TIMEOUT_MS, body: {} },
        Schema.Struct({}),
      ),
    ),
  saving: savingHttp,
  saveByPush: (link, context, timeoutMs) =>
    Effect.map(askFor(link, { path: "/platform/save", context, timeoutMs, body: {} }, PushedSave), storable),
  prepare: (link, context, { commit, pack: body }) =>
    Effect.asVoid(
      askFor(
        link,
        { path: `/platform/checkout?commit=${commit}`, context, timeoutMs: PREPARE_TIMEOUT_MS, body },
        Schema.Struct({ commit: Schema.String }),
      ),
    ),
  claim: (link, context, body) =>
    Effect.asVoid(
      askFor(link, { path: "/platform/claim", context, timeoutMs: CLAIM_TIMEOUT_MS, body }, ClaimedBy),
    ),
  env: (link, context, change) =>
    askFor(
      link,
      { path: "/platform/env", context, timeoutMs: ENV_TIMEOUT_MS, body: { ...change, after_turn: true } },
      EnvironmentChanged,
    ),
  withdraw: (link, context, reason) =>
    Effect.asVoid(
      askFor(
        link,
        { path: "/platform/withdraw", context, timeoutMs: WITHDRAW_TIMEOUT_MS, body: { reason } },
        Schema.Struct({ withdrawn: Schema.Boolean }),
      ),
    ),
  turn,
  logs,
  conversation,
  output,
  hand: (link, context, body) =>
    steer(link, { path: "/platform/messages", context, timeoutMs: HAND_TIMEOUT_MS, body }, MessageHandedOver),
  attach: (link, context, { id, content: body }) =>
    Effect.asVoid(
      steer(
        link,
        { path: `/platform/attachments/${id}`, context, timeoutMs: ATTACH_TIMEOUT_MS, body },
        Attached,
      ),
    ),
  interrupt: (link, context, body) =>
    Effect.map(
      steer(link, { path: "/platform/interrupt", context, timeoutMs: STEER_TIMEOUT_MS, body }, Interrupted),
      ({ interrupted }) => interrupted,
    ),
  answer: (link, context, body) =>
    Effect.map(
      steer(link, { path: "/platform/answer", context, timeoutMs: STEER_TIMEOUT_MS, body }, Answered),
      ({ answered }) => answered,
    ),
  ports,
  workspace: workspaceHttp,
  models: (link, context) =>
    steer(link, { path: "/platform/models", context, timeoutMs: STEER_TIMEOUT_MS }, RuntimeOffers),
});

/** opencode as a runtime, through its own HTTP API (`opencode serve`, version 1.18). */
import { request } from "node:http";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Option from "effect/Option";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import { GATEWAY_PROVIDER, HOSTED_PROVIDER } from "../../src/domain/model.ts";
import { callForAnswer, callHttp, callJson, HttpFailure, type HttpAnswer } from "../http-client.ts";
import {
  CALL_TIMEOUT_MS,
  PROBE_TIMEOUT_MS,
  TURN_LIMITS,
  type InitialPrompt,
  type Observers,
  type RuntimeAdapter,
  type RuntimeModels,
  type TurnEnd,
  type TurnLimits,
} from "./adapter.ts";
import { OpencodeConversation } from "./opencode-conversation.ts";
import { isAbort, RuntimeError, turnError } from "./opencode-errors.ts";
import { readConversation, readRequests, settleConversation } from "./opencode-listing.ts";
import { nativeMessageId } from "./opencode-messages.ts";
import { decodeEvent, OpencodeTurns, type AgentRequest, type RuntimeEvent } from "./opencode-turns.ts";

const AgentSession = Schema.Struct({ id: Schema.String, title: Schema.String });
const AgentSessions = Schema.Array(AgentSession);
const Agents = Schema.Array(Schema.Struct({ name: Schema.String }));
const Messages = Schema.Array(Schema.Unknown);
const Statuses = Schema.Record(Schema.String, Schema.Struct({ type: Schema.String }));

/** A longer event is ignored. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;
/** spec.md 2.4: the agent that needs no file of its own. */
const DEFAULT_AGENT = "default";

/**
 * Overrides the project's configuration. File snapshots cost seconds on a large repository. Questions are
 * off, because no person can answer them, and a turn would wait for hours.
 */
const FIXED = JSON.stringify({
  autoupdate: false,
  share: "disabled",
  snapshot: false,
  permission: { question: "deny" },
});

/** How long a prompt waits for the listener. After that it is sent anyway. */
const FOLLOWED_WITHIN = "10 seconds";

/** The answer to an agent that asks a question anyway. */
const DECIDE = "No person can answer. Decide yourself, continue, and state your assumptions in your answer.";
const NOT_ALLOWED =
  "No person can grant this permission. Find a way without it, or skip this step and say so in your answer.";

/** The managed gateway as a provider. Its key is named, never written. */
const gatewayProvider = (models: readonly string[]) => ({
  name: "Managed model gateway",
  npm: "@ai-sdk/openai-compatible",
  options: { baseURL: "{env:PLATFORM_LLM_BASE_URL}", apiKey: "{env:PLATFORM_LLM_API_KEY}" },
  models: Object.fromEntries(models.map((id) => [id, { name: id }])),
});

/** All permissions, because the sandbox is the boundary. The project can restrict them. */
const defaultsOf = ({ model, gateway, hosted }: RuntimeModels): string =>
  JSON.stringify({
    // See OWN_EDIT.
    $schema: "https://opencode.ai/config.json",
    permission: { "*": "allow" },
    ...(model !== null && { model }),
    provider: {
      ...(gateway.length > 0 && { [GATEWAY_PROVIDER]: gatewayProvider(gateway) }),
      // Without this, opencode falls back to its own hosted models, which no sandbox can reach.
      ...(!hosted && { [HOSTED_PROVIDER]: { whitelist: [] } }),
    },
  });

/** opencode adds the schema to a configuration file without one, including the project's own. */
const OWN_EDIT = String.raw`\n  "$schema": "https://opencode\.ai/config\.json",`;

export const opencodeAdapter = (port: number, limits: TurnLimits = TURN_LIMITS): RuntimeAdapter => {
  const api = new OpencodeApi(`http://127.0.0.1:${port}`);
  const followed = Latch.makeUnsafe(false);
  const conversation = new OpencodeConversation();
  return {
    hasConversation: true,
    defaults: defaultsOf,
    ownEdit: OWN_EDIT,
    environment: ({ configDir, defaults }) => ({
      OPENCODE_CONFIG: defaults,
      OPENCODE_CONFIG_DIR: configDir,
      OPENCODE_CONFIG_CONTENT: FIXED,
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
    }),
    probe: Effect.asVoid(callHttp({ url: api.url("/global/health"), timeoutMs: PROBE_TIMEOUT_MS })),
    deliverPrompt: (prompt) => deliver({ api, followed, conversation }, prompt),
    tell: Effect.fnUntraced(function* (sessionId, text) {
      const session = yield* untouchedSession(api, sessionId);
      if (session === null) return;
      yield* api.post(`/session/${session.id}/message`, { noReply: true, parts: [{ type: "text", text }] });
    }),
    follow: (sessionId, observers) => follow({ api, limits, sessionId, observers, conversation, followed }),
    isBusy: Effect.map(api.busySessions, (busy) => busy.length > 0),
    abort: Effect.gen(function* () {
      const busy = yield* api.busySessions;
      yield* Effect.forEach(busy, (id) => api.post(`/session/${id}/abort`), { discard: true });
      return busy.length > 0;
    }),
  };
};

class OpencodeApi {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  url(path: string): string {
    return `${this.#base}${path}`;
  }

  get<A>(path: string, schema: Schema.Decoder<A>): Effect.Effect<A, HttpFailure> {
    return callJson({ url: this.url(path), timeoutMs: CALL_TIMEOUT_MS }, schema);
  }

  /** An answer that may be long, with its headers. */
  page(path: string, maxBytes: number): Effect.Effect<HttpAnswer, HttpFailure> {
    return callForAnswer({ url: this.url(path), timeoutMs: CALL_TIMEOUT_MS, maxBytes });
  }

  post(path: string, body: unknown = {}): Effect.Effect<string, HttpFailure> {
    return callHttp({ url: this.url(path), method: "POST", body, timeoutMs: CALL_TIMEOUT_MS });
  }

  /** Sessions with a turn in progress. Idle ones are missing in the answer, or marked as idle. */
  get busySessions(): Effect.Effect<readonly string[], HttpFailure> {
    return Effect.map(this.get("/session/status", Statuses), (statuses) =>
      Object.entries(statuses).flatMap(([id, { type }]) => (type === "idle" ? [] : [id])),
    );
  }
}

interface Delivery {
  readonly api: OpencodeApi;
  readonly followed: Latch.Latch;
  readonly conversation: OpencodeConversation;
}

/**
 * Sends the prompt once, to the agent session whose title is the session's id. If that session already has a message,
 * it got the prompt in a former life of the daemon (api.md 7).
 */
const deliver = Effect.fnUntraced(function* (
  { api, followed, conversation }: Delivery,
  prompt: InitialPrompt,
) {
  const agents = yield* api.get("/agent", Agents);
  const agent = agents.find(({ name }) => name === prompt.agentName)?.name;
  if (agent === undefined && prompt.agentName !== DEFAULT_AGENT) {
    return { refused: `the agent runtime has no agent "${prompt.agentName}"` };
  }
  const session = yield* untouchedSession(api, prompt.sessionId);
  if (session === null) return "accepted" as const;
  // A turn may fail within a millisecond, so listening for its events starts first.
  yield* Effect.timeoutOption(followed.await, FOLLOWED_WITHIN);
  const messageID = nativeMessageId({ id: prompt.sessionId, sentAt: yield* Clock.currentTimeMillis });
  conversation.handedOver(messageID, prompt.sessionId);
  yield* api.post(`/session/${session.id}/prompt_async`, {
    messageID,
    parts: [{ type: "text", text: prompt.text }],
    ...(agent === undefined ? {} : { agent }),
    ...(prompt.model === null ? {} : { model: splitModel(prompt.model) }),
  });
  return "accepted" as const;
});

/** The agent session with that title. Null if it already has a message. */
const untouchedSession = Effect.fnUntraced(function* (api: OpencodeApi, title: string) {
  const session = yield* openSession(api, title);
  const messages = yield* api.get(`/session/${session.id}/message`, Messages);
  return messages.length > 0 ? null : session;
});

const openSession = Effect.fnUntraced(function* (api: OpencodeApi, title: string) {
  const sessions = yield* api.get("/session", AgentSessions);
  const found = sessions.find((session) => session.title === title);
  if (found !== undefined) return found;
  return yield* callJson(
    { url: api.url("/session"), method: "POST", body: { title }, timeoutMs: CALL_TIMEOUT_MS },
    AgentSession,
  );
});

/** `provider/model`. The model's own name may contain further slashes. */
const splitModel = (model: string): { readonly providerID: string; readonly modelID: string } => {
  const slash = model.indexOf("/");
  return { providerID: model.slice(0, slash), modelID: model.slice(slash + 1) };
};

/** Retries for calls that must reach the runtime. */
const POST_AGAIN = { schedule: Schedule.spaced("500 millis"), times: 5 };

/** The answer to a request, by its kind. */
const replyTo = ({ kind, id, count }: AgentRequest): readonly [string, object] =>
  kind === "question"
    ? [`/question/${id}/reply`, { answers: Array.from({ length: count }, () => [DECIDE]) }]
    : // A refusal without a message would end the turn.
      [`/permission/${id}/reply`, { reply: "reject", message: NOT_ALLOWED }];

const Request = Schema.Struct({
  id: Schema.String,
  questions: Schema.optionalKey(Schema.Array(Schema.Unknown)),
});
const decodeRequest = Schema.decodeUnknownOption(Request);

const Updated = Schema.Array(
  Schema.Struct({
    id: Schema.String,
    parentID: Schema.optionalKey(Schema.String),
    time: Schema.Struct({ updated: Schema.Finite }),
  }),
);
const Ends = Schema.Array(
  Schema.Struct({ info: Schema.Struct({ error: Schema.optionalKey(RuntimeError) }) }),
);

/** How the newest turn ended, according to the conversation's last message. */
const lastEnd = Effect.fnUntraced(function* (api: OpencodeApi) {
  const sessions = yield* api.get("/session", Updated);
  const [newest] = sessions
    .filter(({ parentID }) => parentID === undefined)
    .toSorted((a, b) => b.time.updated - a.time.updated);
  if (newest === undefined) return null;
  const error = (yield* api.get(`/session/${newest.id}/message?limit=1`, Ends)).at(-1)?.info.error;
  if (error === undefined) return { state: "completed", error: null } satisfies TurnEnd;
  return (
    isAbort(error) ? { state: "interrupted", error: null } : { state: "failed", error: turnError(error) }
  ) satisfies TurnEnd;
});

interface Following {
  readonly api: OpencodeApi;
  readonly limits: TurnLimits;
  /** The title of the agent session whose conversation is followed. */
  readonly sessionId: string;
  readonly observers: Observers;
  /** It outlives a stream: a part that was followed before the stream broke off may never be told again. */
  readonly conversation: OpencodeConversation;
  /** Open while events are received. */
  readonly followed: Latch.Latch;
}

const follow = ({ api, limits, sessionId, observers, conversation, followed }: Following) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const now = () => clock.currentTimeMillisUnsafe();
    const run = Effect.runForkWith(yield* Effect.context());
    const scope = yield* Effect.scope;
    const inScope = (work: Effect.Effect<unknown, HttpFailure>) =>
      run(Effect.forkIn(Effect.ignore(Effect.retry(work, POST_AGAIN)), scope));
    const post = ([path, body]: readonly [string, object]) => inScope(api.post(path, body));
    const answer = (asked: AgentRequest) => void post(replyTo(asked));
    const abort = (id: string) => void post([`/session/${id}/abort`, {}]);
    const turns = new OpencodeTurns(limits, observers.turns, { abort, answer });
    conversation.connected({
      title: sessionId,
      observer: observers.conversation,
      now,
      onUnsettled: () => void inScope(settleConversation(api, conversation)),
    });
    // The stream opens before anything is read, so no event is missed in between.
    const stream = followEvents(api.url("/event"), (event, whole) => {
      if (event.type === "server.connected") {
        followed.openUnsafe();
        observers.turns.followed();
      }
      conversation.take(whole);
      turns.take(event, now());
    });
    const already = Effect.gen(function* () {
      const busy = yield* api.busySessions;
      // An earlier stream broke off during a turn, which has ended meanwhile.
      const missed = observers.turns.isActive() && busy.length === 0 ? yield* lastEnd(api) : null;
      if (missed !== null && observers.turns.isActive()) observers.turns.ended(missed);
      turns.already(busy, now());
      yield* readConversation(api, conversation);
      for (const kind of ["question", "permission"] as const) {
        for (const open of (yield* readRequests(api, kind)) ?? []) {
          const asked = decodeRequest(open);
          if (asked._tag === "None") continue;
          answer({ kind, id: asked.value.id, count: asked.value.questions?.length ?? 0 });
        }
      }
      return yield* Effect.never;
    });
    return yield* Effect.raceFirst(stream, already);
  }).pipe(Effect.scoped, Effect.ensuring(followed.close));

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown));

/** Reads a stream of server-sent events until it breaks. */
const followEvents = (
  url: string,
  take: (event: RuntimeEvent, whole: unknown) => void,
): Effect.Effect<never, HttpFailure> =>
  Effect.callback<never, HttpFailure>((resume) => {
    const fail = (message: string) => resume(Effect.fail(new HttpFailure({ status: null, message })));
    const call = request(url, { agent: false, headers: { accept: "text/event-stream" } });
    call.on("error", (error) => fail(error.message));
    call.on("response", (answer) => {
      let rest = "";
      answer.setEncoding("utf8");
      answer.on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        if (rest.length > MAX_EVENT_LENGTH) call.destroy(new Error("an event is too long"));
        for (const line of lines) {
          if (!line.startsWith("data:")) continue;
          const whole = decodeJson(line.slice(5));
          const event = Option.flatMap(whole, decodeEvent);
          if (event._tag === "Some") take(event.value, Option.getOrNull(whole));
        }
      });
      answer.on("error", (error) => fail(error.message));
      answer.on("end", () => fail("the event stream ended"));
    });
    call.end();
    return Effect.sync(() => call.destroy());
  });

/** opencode behind the runtime port, driven by its own HTTP API (`opencode serve`, version 1.18). */
import { request } from "node:http";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { callHttp, callJson, HttpFailure } from "../http-client.ts";
import {
  CALL_TIMEOUT_MS,
  PROBE_TIMEOUT_MS,
  type InitialPrompt,
  type RuntimeAdapter,
  type TurnObserver,
} from "./adapter.ts";

const AgentSession = Schema.Struct({ id: Schema.String, title: Schema.String });
const AgentSessions = Schema.Array(AgentSession);
const Agents = Schema.Array(Schema.Struct({ name: Schema.String }));
const Messages = Schema.Array(Schema.Unknown);
const Statuses = Schema.Record(Schema.String, Schema.Struct({ type: Schema.String }));

/** Of an event only this is read; `status` is there on `session.status`. */
const RuntimeEvent = Schema.Struct({
  type: Schema.String,
  properties: Schema.optionalKey(
    Schema.Struct({
      sessionID: Schema.optionalKey(Schema.String),
      status: Schema.optionalKey(Schema.Struct({ type: Schema.String })),
    }),
  ),
});
type RuntimeEvent = typeof RuntimeEvent.Type;
const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(RuntimeEvent));

/** An event longer than this is no event. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;
/** spec.md 2.4: the agent that needs no file of its own. */
const DEFAULT_AGENT = "default";

/** Holds against the project's configuration: file snapshots cost seconds on a large repository (facts.md). */
const FIXED = JSON.stringify({ autoupdate: false, share: "disabled", snapshot: false });
/** Nobody may be there to answer a question, and the sandbox is the boundary: a project can ask for less. */
const DEFAULTS = JSON.stringify({
  // See OWN_EDIT.
  $schema: "https://opencode.ai/config.json",
  permission: { "*": "allow" },
});

/** opencode writes the schema into a configuration file that has none, the project's own among them. */
const OWN_EDIT = String.raw`\n  "$schema": "https://opencode\.ai/config\.json",`;

export const opencodeAdapter = (port: number): RuntimeAdapter => {
  const api = new OpencodeApi(`http://127.0.0.1:${port}`);
  return {
    defaults: DEFAULTS,
    ownEdit: OWN_EDIT,
    environment: ({ configDir, defaults }) => ({
      OPENCODE_CONFIG: defaults,
      OPENCODE_CONFIG_DIR: configDir,
      OPENCODE_CONFIG_CONTENT: FIXED,
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
    }),
    probe: Effect.asVoid(callHttp({ url: api.url("/global/health"), timeoutMs: PROBE_TIMEOUT_MS })),
    deliverPrompt: (prompt) => deliver(api, prompt),
    tell: Effect.fnUntraced(function* (sessionId, text) {
      const session = yield* untouchedSession(api, sessionId);
      if (session === null) return;
      yield* api.post(`/session/${session.id}/message`, { noReply: true, parts: [{ type: "text", text }] });
    }),
    followTurns: (observer) => followTurns(api, observer),
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

  post(path: string, body: unknown = {}): Effect.Effect<string, HttpFailure> {
    return callHttp({ url: this.url(path), method: "POST", body, timeoutMs: CALL_TIMEOUT_MS });
  }

  /** Sessions with a turn in progress; idle ones are not in the answer, or say so. */
  get busySessions(): Effect.Effect<readonly string[], HttpFailure> {
    return Effect.map(this.get("/session/status", Statuses), (statuses) =>
      Object.entries(statuses).flatMap(([id, { type }]) => (type === "idle" ? [] : [id])),
    );
  }
}

/**
 * The prompt goes to the agent session titled with the session's id, once: a session that has a message already took
 * it in a former life of the daemon (api.md 7).
 */
const deliver = Effect.fnUntraced(function* (api: OpencodeApi, prompt: InitialPrompt) {
  const agents = yield* api.get("/agent", Agents);
  const agent = agents.find(({ name }) => name === prompt.agentName)?.name;
  if (agent === undefined && prompt.agentName !== DEFAULT_AGENT) {
    return { refused: `the agent runtime knows no agent "${prompt.agentName}"` };
  }
  const session = yield* untouchedSession(api, prompt.sessionId);
  if (session === null) return "accepted" as const;
  yield* api.post(`/session/${session.id}/prompt_async`, {
    parts: [{ type: "text", text: prompt.text }],
    ...(agent === undefined ? {} : { agent }),
    ...(prompt.model === null ? {} : { model: splitModel(prompt.model) }),
  });
  return "accepted" as const;
});

/** The agent session of that title; null where it has a message already. */
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

/** `provider/model`; the model's own name may hold further slashes. */
const splitModel = (model: string): { readonly providerID: string; readonly modelID: string } => {
  const slash = model.indexOf("/");
  return { providerID: model.slice(0, slash), modelID: model.slice(slash + 1) };
};

/** Events that begin or end a session's turn. */
const TURN_EVENTS = new Set(["session.status", "session.idle", "session.deleted"]);

const followTurns = Effect.fnUntraced(function* (api: OpencodeApi, observer: TurnObserver) {
  const busy = new Set<string>();
  /** Sessions of whose turns the stream has told: newer than the answer to the question. */
  const told = new Set<string>();
  // The stream first, then what is busy already: nothing falls between the two.
  const stream = followEvents(api.url("/event"), (event) => {
    if (!event.type.startsWith("session.") && !event.type.startsWith("message.")) return;
    const { sessionID, status } = event.properties ?? {};
    if (sessionID !== undefined && TURN_EVENTS.has(event.type)) {
      told.add(sessionID);
      if (event.type === "session.status" && status?.type !== "idle") busy.add(sessionID);
      else busy.delete(sessionID);
    }
    observer.turn(busy.size > 0);
    observer.activity();
  });
  const already = Effect.flatMap(api.busySessions, (sessions) =>
    Effect.suspend(() => {
      for (const session of sessions) if (!told.has(session)) busy.add(session);
      observer.turn(busy.size > 0);
      if (sessions.length > 0) observer.activity();
      return Effect.never;
    }),
  );
  return yield* Effect.raceFirst(stream, already);
});

/** Reads a stream of server-sent events until it breaks. */
const followEvents = (url: string, take: (event: RuntimeEvent) => void): Effect.Effect<never, HttpFailure> =>
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
          const event = decodeEvent(line.slice(5));
          if (event._tag === "Some") take(event.value);
        }
      });
      answer.on("error", (error) => fail(error.message));
      answer.on("end", () => fail("the event stream ended"));
    });
    call.end();
    return Effect.sync(() => call.destroy());
  });

/** Calls to opencode's HTTP API. */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import { callForAnswer, callHttp, callJson, type HttpAnswer, type HttpFailure } from "../../http/client.ts";
import { CALL_TIMEOUT_MS } from "../adapter.ts";
import { oldestFirst } from "./records.ts";

/** The longest answer. A listing has the files of its messages, in base64. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** How long one short read may take. */
const READ_TIMEOUT_MS = 5000;
/**
 * A read without an answer is repeated: opencode never answers what it gets in its first 300 ms, and its first answers
 * wait until it has opened the project.
 */
const READ_AGAIN = { schedule: Schedule.spaced("200 millis"), times: 4 };

const AgentSession = Schema.Struct({ id: Schema.String, title: Schema.String });
const decodeAgentSession = Schema.decodeUnknownOption(AgentSession);
const Records = Schema.Array(Schema.Unknown);
const Statuses = Schema.Record(Schema.String, Schema.Struct({ type: Schema.String }));

export class OpencodeApi {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  url(path: string): string {
    return `${this.#base}${path}`;
  }

  get<A>(path: string, schema: Schema.Decoder<A>): Effect.Effect<A, HttpFailure> {
    const call = { url: this.url(path), timeoutMs: READ_TIMEOUT_MS, maxBytes: ANSWER_BYTES_MAX };
    return Effect.retry(callJson(call, schema), {
      ...READ_AGAIN,
      while: ({ status }) => status === null,
    });
  }

  /** An answer that may take long, with its headers. */
  page(path: string): Effect.Effect<HttpAnswer, HttpFailure> {
    return callForAnswer({ url: this.url(path), timeoutMs: CALL_TIMEOUT_MS, maxBytes: ANSWER_BYTES_MAX });
  }

  post(path: string, body: unknown = {}): Effect.Effect<string, HttpFailure> {
    return callHttp({ url: this.url(path), method: "POST", body, timeoutMs: CALL_TIMEOUT_MS });
  }

  patch(path: string, body: unknown): Effect.Effect<string, HttpFailure> {
    return callHttp({ url: this.url(path), method: "PATCH", body, timeoutMs: CALL_TIMEOUT_MS });
  }

  remove(path: string): Effect.Effect<string, HttpFailure> {
    return callHttp({ url: this.url(path), method: "DELETE", timeoutMs: CALL_TIMEOUT_MS });
  }

  /** Sessions with a turn in progress. Idle ones are missing in the answer, or marked as idle. */
  get busySessions(): Effect.Effect<readonly string[], HttpFailure> {
    return Effect.map(this.get("/session/status", Statuses), (statuses) =>
      Object.entries(statuses).flatMap(([id, { type }]) => (type === "idle" ? [] : [id])),
    );
  }
}

/**
 * The agent session with that title. opencode makes it if it has no such session. A call without an answer may have made one, and
 * the next call a second one: all messages go to the first, because it is followed (conversation.ts, V5).
 */
export const openSession = Effect.fnUntraced(function* (api: OpencodeApi, title: string) {
  const first = Effect.map(api.get("/session", Records), (sessions) =>
    oldestFirst(sessions)
      .flatMap((session) => Option.toArray(decodeAgentSession(session)))
      .find((session) => session.title === title),
  );
  const existing = yield* first;
  if (existing !== undefined) return existing;
  const session = yield* callJson(
    { url: api.url("/session"), method: "POST", body: { title }, timeoutMs: CALL_TIMEOUT_MS },
    AgentSession,
  );
  return (yield* first) ?? session;
});

/** In place of a model that is not known, because opencode requires one. No message may be sent to it. */
export const UNKNOWN_MODEL = "unknown/unknown";

/** `provider/model`. The model's own name may contain further slashes. */
export const splitModel = (model: string): { readonly providerID: string; readonly modelID: string } => {
  const slash = model.indexOf("/");
  return { providerID: model.slice(0, slash), modelID: model.slice(slash + 1) };
};

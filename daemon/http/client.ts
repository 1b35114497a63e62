/** The daemon's own small JSON calls: to the service (through the sandbox's proxy) and to the agent runtime. */
import * as http from "node:http";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";

/** No usable answer. `status` is null without an HTTP answer. `message` contains neither bodies nor headers. */
export class HttpFailure extends Schema.TaggedError<HttpFailure>()("HttpFailure", {
  status: Schema.NullOr(Schema.Finite),
  message: Schema.String,
}) {}

export interface HttpCall {
  readonly url: string;
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly timeoutMs: number;
  /** The longest answer that is read. Default: `MAX_ANSWER_BYTES`. */
  readonly maxBytes?: number;
  /** Proxy variables to use (HTTP_PROXY, NO_PROXY, …). Absent: a direct connection. */
  readonly proxyEnv?: Readonly<Record<string, string>>;
}

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** An answer with a 2xx status. */
export interface HttpAnswer {
  readonly body: string;
  readonly headers: http.IncomingHttpHeaders;
}

/** One request, one answer with a 2xx status, its body as text. Interrupting it closes the connection. */
export const callHttp = (call: HttpCall): Effect.Effect<string, HttpFailure> =>
  Effect.map(callForAnswer(call), ({ body }) => body);

/** Like `callHttp`, with the answer's headers. */
export const callForAnswer = (call: HttpCall): Effect.Effect<HttpAnswer, HttpFailure> =>
  Effect.promise(() => libraryFor(call.url)).pipe(
    Effect.flatMap((library) => exchange(call, library)),
    Effect.timeoutOrElse({
      duration: call.timeoutMs,
      orElse: () =>
        Effect.fail(new HttpFailure({ status: null, message: `no answer within ${call.timeoutMs} ms` })),
    }),
  );

type Library = Pick<typeof http, "Agent" | "request">;

/**
 * TLS is loaded only when needed: it costs each start about 10 ms, and inside a sandbox the service is reached without
 * it.
 */
const libraryFor = async (url: string): Promise<Library> =>
  url.startsWith("https:") ? await import("node:https") : http;

const openRequest = (call: HttpCall, { Agent, request }: Library): http.ClientRequest =>
  request(call.url, {
    method: call.method ?? "GET",
    headers: {
      accept: "application/json",
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
      ...call.headers,
    },
    // A separate connection for each call: the runtime resets idle ones, and these calls are rare.
    agent: new Agent({ keepAlive: false, ...(call.proxyEnv && { proxyEnv: call.proxyEnv }) }),
  });

const exchange = (call: HttpCall, library: Library): Effect.Effect<HttpAnswer, HttpFailure> =>
  Effect.callback<HttpAnswer, HttpFailure>((resume) => {
    const fail = (message: string, status: number | null = null) =>
      resume(Effect.fail(new HttpFailure({ status, message })));
    const request = openRequest(call, library);
    request.on("error", (error) => fail(error.message));
    request.on("response", (answer) => {
      const status = answer.statusCode ?? 0;
      const chunks: Buffer[] = [];
      let length = 0;
      answer.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length > (call.maxBytes ?? MAX_ANSWER_BYTES))
          request.destroy(new Error("the answer is too long"));
        else chunks.push(chunk);
      });
      answer.on("error", (error) => fail(error.message));
      answer.on("end", () => {
        if (status < 200 || status > 299) fail(`${new URL(call.url).pathname} answered ${status}`, status);
        else
          resume(Effect.succeed({ body: Buffer.concat(chunks).toString("utf8"), headers: answer.headers }));
      });
    });
    request.end(call.body === undefined ? undefined : JSON.stringify(call.body));
    return Effect.sync(() => request.destroy());
  });

/** Like `callHttp`, with the answer decoded. An answer of another shape is a failure. */
export const callJson = <A>(call: HttpCall, schema: Schema.Decoder<A>): Effect.Effect<A, HttpFailure> =>
  Effect.flatMap(callHttp(call), (text) =>
    Effect.mapError(
      Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(text),
      () =>
        new HttpFailure({
          status: null,
          message: `${new URL(call.url).pathname} answered in an unexpected form`,
        }),
    ),
  );

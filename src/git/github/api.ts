/**
 * Calls to a code host's REST API: in the credential's turn, within a deadline, tried again where that is harmless, and
 * at no cost where nothing has changed.
 *
 *  A1 a call that may not be made twice is made once: what became of it without an answer is the caller's to find out.
 *  A2 a token that the host does not take any more is renewed once a call.
 *  A3 what an answer holds is taken by a schema; nothing of it, and no token, is in an error but the host's own sentence.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Random from "effect/Random";
import * as Schema from "effect/Schema";
import type { CodeHost } from "../../domain/code-host.ts";
import { GitError } from "../port.ts";
import { isLimited, makeLimits } from "./limits.ts";
import { hostMessage, refusalOf, type Trouble, troubleOf } from "./trouble.ts";
import type { Wire, WireAnswer } from "./wire.ts";

/** Whose calls they are. */
export interface Access {
  readonly host: CodeHost;
  /** Names the credential without being it: limits and answers are kept under it. */
  readonly key: string;
  /** The token to send now. `stale`: one that the host refused; where another can be had, that one comes. */
  readonly token: (stale: string | null) => Effect.Effect<string, GitError>;
}

export interface ApiCall<A> {
  readonly method: "GET" | "POST" | "PATCH" | "PUT";
  /** Behind the API's base, segments encoded. */
  readonly path: string;
  readonly body?: unknown;
  /** What an answer of 2xx holds. */
  readonly answer: Schema.Decoder<A>;
  /** Statuses that are the caller's to understand; others that are not 2xx are errors. */
  readonly known?: readonly number[];
  /** May be made twice; reading always may. */
  readonly repeatable?: boolean;
  readonly maxBytes?: number;
}

/** An answer of 2xx as its schema reads it, or a status from `known` with the host's sentence. */
export type ApiAnswer<A> =
  | { readonly ok: true; readonly value: A }
  | { readonly ok: false; readonly status: number; readonly message: string };

export type Api = <A>(access: Access, call: ApiCall<A>) => Effect.Effect<ApiAnswer<A>, GitError>;

export interface ApiOptions {
  /** ms for one exchange. */
  readonly exchangeMs?: number;
  /** ms before the second try; each further one waits twice as long, give or take a half. */
  readonly backoffMs?: number;
  /** Longest wait for a limit, ms: beyond, whoever asked is told until when it lasts. */
  readonly patienceMs?: number;
}

const TRIES = 3;
const EXCHANGE_MS = 15_000;
const BACKOFF_MS = 400;
const PATIENCE_MS = 5_000;
const MAX_BYTES = 1024 * 1024;
/** Answers kept for conditional requests, each some hundred bytes when it is read. */
const ANSWERS_KEPT = 5_000;
const VERSION = "2022-11-28";

/** Answers by credential and address, the one asked for longest ago first. */
const makeMemory = () => {
  const kept = new Map<string, { readonly etag: string; readonly value: unknown }>();
  return {
    of: (key: string) => kept.get(key) ?? null,
    keep: (key: string, entry: { readonly etag: string; readonly value: unknown }): void => {
      kept.delete(key);
      kept.set(key, entry);
      const [oldest] = kept.keys();
      if (kept.size > ANSWERS_KEPT && oldest !== undefined) kept.delete(oldest);
    },
  };
};

const parsed = (answer: WireAnswer): Effect.Effect<unknown, Trouble> =>
  Effect.try({
    try: (): unknown => (answer.text === "" ? null : JSON.parse(answer.text)),
    catch: () => troubleOf("did not answer with JSON"),
  });

/** What all calls of one client share. */
interface Client {
  readonly wire: Wire;
  readonly options: ApiOptions;
  readonly limits: ReturnType<typeof makeLimits>;
  readonly memory: ReturnType<typeof makeMemory>;
}

interface Exchanged {
  readonly answer: WireAnswer;
  /** What an answer of 304 stands for. */
  readonly known: { readonly value: unknown } | null;
}

const exchange = <A>(
  { wire, options, limits, memory }: Client,
  { host, key }: Access,
  { call, token }: { readonly call: ApiCall<A>; readonly token: string },
): Effect.Effect<Exchanged, Trouble> => {
  const { method, path, body } = call;
  const known = method === "GET" ? memory.of(`${key} ${path}`) : null;
  const request = wire({
    method,
    url: `${host.api}${path}`,
    headers: {
      accept: "application/vnd.github+json",
      "accept-encoding": "identity",
      authorization: `Bearer ${token}`,
      "user-agent": "platform",
      "x-github-api-version": VERSION,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(known === null ? {} : { "if-none-match": known.etag }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    maxBytes: call.maxBytes ?? MAX_BYTES,
    deadlineMs: options.exchangeMs ?? EXCHANGE_MS,
  });
  return limits.inTurn(key, method !== "GET", request).pipe(
    Effect.mapError(({ why }) => troubleOf(why)),
    Effect.map((answer) => ({ answer, known })),
  );
};

/** Waits where a limit ends soon; fails where it does not. */
const untilOpen = Effect.fnUntraced(function* ({ limits, options }: Client, key: string) {
  const until = yield* limits.closedUntil(key);
  if (until === null) return;
  const left = until - (yield* Clock.currentTimeMillis);
  if (left > (options.patienceMs ?? PATIENCE_MS)) return yield* Effect.fail(limitReached(until));
  yield* Effect.sleep(left);
});

const read = Effect.fnUntraced(function* <A>(
  { memory }: Client,
  { place, call }: { readonly place: string; readonly call: ApiCall<A> },
  { answer, known }: Exchanged,
): Effect.fn.Return<ApiAnswer<A>, Trouble> {
  // Kept under the same call, which has the same schema.
  // oxlint-disable-next-line typescript/consistent-type-assertions -- see above
  if (answer.status === 304 && known !== null) return { ok: true, value: known.value as A };
  const json = yield* parsed(answer);
  const value = yield* Schema.decodeUnknownEffect(call.answer)(json).pipe(
    Effect.mapError(() => troubleOf("sent an unexpected response")),
  );
  const etag = answer.headers["etag"];
  if (call.method === "GET" && etag !== undefined) memory.keep(place, { etag, value });
  return { ok: true, value };
});

/** One exchange, or two where the token had to be renewed. */
const once = Effect.fnUntraced(function* <A>(
  client: Client,
  access: Access,
  { call, stale }: { readonly call: ApiCall<A>; readonly stale: string | null },
): Effect.fn.Return<ApiAnswer<A>, Trouble> {
  const { key } = access;
  yield* untilOpen(client, key);
  const token = yield* Effect.mapError(access.token(stale), final);
  if (token === stale) return yield* Effect.fail(refusalOf(401, ""));
  const heard = yield* exchange(client, access, { call, token });
  const { answer } = heard;
  const message = hostMessage(answer, token);
  const limited = isLimited(answer.status, answer.headers, message);
  yield* client.limits.heard(key, answer.headers, limited);
  // Refused before anything was done: any call may be made again.
  if (limited) return yield* Effect.fail(troubleOf("has a limit on requests", { afterRefusal: true }));
  if (call.known?.includes(answer.status) === true) return { ok: false, status: answer.status, message };
  if (answer.status === 401 && stale === null) return yield* once(client, access, { call, stale: token });
  if (answer.status === 304 || (answer.status >= 200 && answer.status < 300))
    return yield* read(client, { place: `${key} ${call.path}`, call }, heard);
  return yield* Effect.fail(refusalOf(answer.status, message));
});

export const makeApi = (wire: Wire, options: ApiOptions = {}): Api => {
  const client: Client = { wire, options, limits: makeLimits(), memory: makeMemory() };
  return <A>(access: Access, call: ApiCall<A>) => {
    const repeatable = call.method === "GET" || call.repeatable === true;
    const attempt = (left: number, backoffMs: number): Effect.Effect<ApiAnswer<A>, GitError> =>
      once(client, access, { call, stale: null }).pipe(
        Effect.catch((trouble) => {
          const passes = trouble.passes && (repeatable || trouble.afterRefusal);
          if (!passes || left <= 1) return Effect.fail(trouble.error(access.host.host));
          return Effect.flatMap(Random.nextBetween(0.5, 1.5), (part) =>
            Effect.andThen(
              Effect.sleep(trouble.afterRefusal ? 0 : backoffMs * part),
              attempt(left - 1, backoffMs * 2),
            ),
          );
        }),
      );
    return attempt(TRIES, options.backoffMs ?? BACKOFF_MS);
  };
};

const final = (error: GitError): Trouble => ({
  passes: false,
  afterRefusal: false,
  error: () => error,
});

const limitReached = (until: number): Trouble =>
  final(
    new GitError({
      code: "unavailable",
      message: `The rate limit of the code host is used up for this credential. Try again after ${new Date(until).toISOString()}.`,
    }),
  );

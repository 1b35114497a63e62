/**
 * Calls to a code host's REST API: within the credential's rate limits, with a deadline, retried if that is harmless,
 * and conditional, so that unchanged data costs nothing.
 *
 *  A1 A call that is not repeatable is made once. If there is no answer, the caller must find out what happened.
 *  A2 A token that the host no longer accepts is renewed once in each call.
 *  A3 A schema reads each answer. An error contains the host's own sentence, but no other part of the answer and no
 *     token.
 *  A4 A restored copy that is paused reads, and changes nothing at the host.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Random from "effect/Random";
import * as Schema from "effect/Schema";
import { BoundedMap } from "../../ground/bounded-map.ts";
import { Pause, PAUSED } from "../../ground/pause.ts";
import type { CodeHost } from "../../domain/repository/code-host.ts";
import { GitError } from "../port.ts";
import { isLimited, makeLimits } from "./limits.ts";
import { hostMessage, githubRefusal, type Trouble, githubTrouble } from "./trouble.ts";
import type { Wire, WireAnswer } from "./wire.ts";

/** Where a call goes, and with which credential. */
export interface Access {
  readonly host: CodeHost;
  /** Identifies the credential without containing it. Limits and answers are stored under it. */
  readonly key: string;
  /** The token to send now. `stale`: a token that the host refused; a different one is returned if there is one. */
  readonly token: (stale: string | null) => Effect.Effect<string, GitError>;
}

export interface ApiCall<A> {
  readonly method: "GET" | "POST" | "PATCH" | "PUT";
  /** Follows the API's base, with encoded segments. */
  readonly path: string;
  readonly body?: unknown;
  /** The content of a 2xx answer. */
  readonly answer: Schema.Decoder<A>;
  /** Statuses that the caller handles. Any other status outside 2xx is an error. */
  readonly known?: readonly number[];
  /** Whether the call may be repeated. Reading always may. */
  readonly repeatable?: boolean;
  /** Of a call that is not GET: whether it leaves the repository as it is (A4). */
  readonly onlyReads?: boolean;
  readonly maxBytes?: number;
}

/** A decoded 2xx answer, or a status from `known` with the host's sentence. */
export type ApiAnswer<A> =
  | { readonly ok: true; readonly value: A }
  | { readonly ok: false; readonly status: number; readonly message: string };

export type Api = <A>(access: Access, call: ApiCall<A>) => Effect.Effect<ApiAnswer<A>, GitError>;

export interface ApiOptions {
  /** Deadline of one exchange, ms. */
  readonly exchangeMs?: number;
  /** Wait before the second attempt, ms. Each further one waits twice as long, plus or minus a half. */
  readonly backoffMs?: number;
  /** The longest wait for a limit, ms. Beyond that, the caller gets an error that says when the limit ends. */
  readonly patienceMs?: number;
}

const TRIES = 3;
const EXCHANGE_MS = 15_000;
const BACKOFF_MS = 400;
const PATIENCE_MS = 5_000;
const MAX_BYTES = 1024 * 1024;
/** How many answers are kept for conditional requests. Each takes some hundred bytes once decoded. */
const ANSWERS_KEPT = 5_000;
const VERSION = "2022-11-28";

const parseAnswer = (answer: WireAnswer): Effect.Effect<unknown, Trouble> =>
  Effect.try({
    try: (): unknown => (answer.text === "" ? null : JSON.parse(answer.text)),
    catch: () => githubTrouble("did not answer with JSON"),
  });

/** State that all calls of one client share. */
interface Client {
  readonly wire: Wire;
  readonly options: ApiOptions;
  readonly limits: ReturnType<typeof makeLimits>;
  /** By credential and address. */
  readonly memory: BoundedMap<string, { readonly etag: string; readonly value: unknown }>;
}

interface Exchanged {
  readonly answer: WireAnswer;
  /** The stored answer that a 304 refers to. */
  readonly known: { readonly value: unknown } | null;
}

const exchange = <A>(
  { wire, options, limits, memory }: Client,
  { host, key }: Access,
  { call, token }: { readonly call: ApiCall<A>; readonly token: string },
): Effect.Effect<Exchanged, Trouble> => {
  const { method, path, body } = call;
  const cached = method === "GET" ? (memory.get(`${key} ${path}`) ?? null) : null;
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
      ...(cached === null ? {} : { "if-none-match": cached.etag }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    maxBytes: call.maxBytes ?? MAX_BYTES,
    deadlineMs: options.exchangeMs ?? EXCHANGE_MS,
  });
  return limits.inTurn(key, method !== "GET", request).pipe(
    Effect.mapError(({ why }) => githubTrouble(why)),
    Effect.map((answer) => ({ answer, known: cached })),
  );
};

/** Waits if a limit ends soon. Otherwise fails. */
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
  // Stored under the same call, which has the same schema.
  // oxlint-disable-next-line typescript/consistent-type-assertions -- see above
  if (answer.status === 304 && known !== null) return { ok: true, value: known.value as A };
  const json = yield* parseAnswer(answer);
  const value = yield* Schema.decodeUnknownEffect(call.answer)(json).pipe(
    Effect.mapError(() => githubTrouble("sent an unexpected response")),
  );
  const etag = answer.headers["etag"];
  if (call.method === "GET" && etag !== undefined) memory.set(place, { etag, value });
  return { ok: true, value };
});

/** One exchange, or two if the token had to be renewed. */
const once = Effect.fnUntraced(function* <A>(
  client: Client,
  access: Access,
  { call, stale }: { readonly call: ApiCall<A>; readonly stale: string | null },
): Effect.fn.Return<ApiAnswer<A>, Trouble> {
  const { key } = access;
  yield* untilOpen(client, key);
  const token = yield* Effect.mapError(access.token(stale), final);
  if (token === stale) return yield* Effect.fail(githubRefusal(401, ""));
  const outcome = yield* exchange(client, access, { call, token });
  const { answer } = outcome;
  const message = hostMessage(answer, token);
  const isRateLimit = isLimited(answer.status, answer.headers, message);
  yield* client.limits.heard(key, answer.headers, isRateLimit);
  // Refused before any effect, so any call may be repeated.
  if (isRateLimit)
    return yield* Effect.fail(githubTrouble("limits the number of requests", { afterRefusal: true }));
  if (call.known?.includes(answer.status) === true) return { ok: false, status: answer.status, message };
  if (answer.status === 401 && stale === null) return yield* once(client, access, { call, stale: token });
  if (answer.status === 304 || (answer.status >= 200 && answer.status < 300))
    return yield* read(client, { place: `${key} ${call.path}`, call }, outcome);
  return yield* Effect.fail(githubRefusal(answer.status, message));
});

export const makeApi = (wire: Wire, options: ApiOptions = {}): Api => {
  const client: Client = { wire, options, limits: makeLimits(), memory: new BoundedMap(ANSWERS_KEPT) };
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
    const isChange = call.method !== "GET" && call.onlyReads !== true;
    return Effect.flatMap(Pause, ({ isOn }) =>
      isOn && isChange
        ? Effect.fail(new GitError({ code: "refused", message: PAUSED }))
        : attempt(TRIES, options.backoffMs ?? BACKOFF_MS),
    );
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

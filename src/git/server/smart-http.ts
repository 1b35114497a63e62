/**
 * Git's smart HTTP protocol (v0 to v2) over a bare repository. Native `upload-pack` and `receive-pack` do the work;
 * this file frames, streams and bounds it. The caller has authenticated and decides what may be written
 * (ref-policy.ts).
 *
 *  H1 Nothing is buffered beyond one chunk and the pipes: a slow reader slows git down, and git slows the sender down.
 *  H2 Git lives while `body` runs, and at most a minute longer than bytes flow.
 *  H3 If git did not finish a body, it ends as an error, never as a clean end.
 *  H4 Only refs that the policy allows are written, one by one. A push without an allowed ref leaves no object behind.
 *     Nothing is written after the credential has ended (standing.ts).
 */
import * as NodeStream from "@effect/platform-node/NodeStream";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { Readable } from "node:stream";
import { parseUuid } from "../../domain/ids.ts";
import { checkHooks, searchVariables } from "./hooks.ts";
import { GitError, type Repository } from "../port.ts";
import { makePlaces, PLACES, type PlaceLimits, type TakePlace } from "../places.ts";
import type { PushHeard } from "./pushed.ts";
import { atomicity, converse } from "./receive.ts";
import { type Forward, pushJudge, type WritePolicy } from "./ref-policy.ts";
import { protectionHere } from "../repository/read.ts";
import { type Standing, standingJudge, untilEnded } from "./standing.ts";
import { existingRepository, hooksDirectory } from "../repository/repository-path.ts";
import { gitMessage } from "../failure.ts";
import { feed, spawnGit } from "../run.ts";
import { inflate } from "./inflated.ts";

export type GitService = "git-upload-pack" | "git-receive-pack";

/** The target of a request path. `service` null: the file protocol of old clients, which is refused (403). */
export interface GitRoute {
  readonly projectId: string;
  readonly kind: "advertise" | "serve";
  readonly service: GitService | null;
}

/** The caller's knowledge about an authenticated request. */
export interface GitCall {
  readonly repository: Repository;
  readonly service: GitService;
  readonly policy: WritePolicy;
  /** Whether the caller may fetch saved work (saves/views/git-door.ts). Absent: she may not. */
  readonly mayFetchSaves?: boolean;
  /** Receives the refs that a push has written, and may return messages for the pusher. */
  readonly pushed?: PushHeard;
  /** Whether the credential is still valid. Absent: it is. */
  readonly standing?: Standing;
  /** The `Git-Protocol` header. */
  readonly protocol: string | undefined;
  /**
   * Closes the client's connection, after the idle time without a byte. A reader that has stopped reading notices no
   * other end, and a writer to it would wait for ever.
   */
  readonly disconnect: Effect.Effect<void>;
}

export interface GitServeCall extends GitCall {
  readonly body: Stream.Stream<Uint8Array, unknown>;
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
}

export interface GitResponse {
  readonly status: 200 | 403 | 415 | 502 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** Starts git when it runs, and ends it when it is done, interrupted or failed. */
  readonly body: Stream.Stream<Uint8Array, GitError>;
}

export interface SmartHttpOptions {
  /** A backend's directory. Its layer has installed the hooks there. */
  readonly directory: string;
  /** Milliseconds without a byte in either direction after which git is ended (60 s, api.md 1). */
  readonly idleMs?: number;
  /** The largest pushed pack, in bytes (2 GiB). */
  readonly maxPackBytes?: number;
  /** How long one push may take, even if its bytes flow steadily, in milliseconds (an hour). */
  readonly maxPushMs?: number;
  /** How many gits may serve clients at the same time (places.ts). */
  readonly places?: PlaceLimits;
  /** The repositories are views of saved work: `refs/wip` is shown. In others it is hidden: a save of an earlier version. */
  readonly areViews?: boolean;
  /** Set if the directory contains mirrors. */
  readonly elsewhere?: Elsewhere;
}

/** The steps between a client and a repository at another server. */
export interface Elsewhere {
  /** Updates the mirror before a client gets its refs. */
  readonly freshen: (call: GitCall) => Effect.Effect<void, GitError>;
  /** Opens the connection to the server for one push. It closes when git has ended. */
  readonly forwarding: (projectId: string) => Effect.Effect<Forward, never, Scope.Scope>;
}

export interface SmartHttp {
  /** Answers `GET …/info/refs?service=…`. Fails with `unknown_repository`. */
  readonly advertise: (call: GitCall) => Effect.Effect<GitResponse, GitError>;
  /** Answers `POST …/git-upload-pack` and `POST …/git-receive-pack`. Fails with `unknown_repository`. */
  readonly serve: (call: GitServeCall) => Effect.Effect<GitResponse, GitError>;
}

const idleMs = 60_000;
const maxPackBytes = 2 * 1024 ** 3;
const maxPushMs = 3_600_000;
/**
 * How much memory git may allocate at once while it unpacks a push: a pack of a kilobyte can contain a file of many
 * gigabytes as a difference to a small one. Files that are sent whole may be larger, because they are streamed.
 */
const pushAllocation = "256m";
/** A fetch's request: wants and haves, which upload-pack keeps in memory. */
const maxFetchRequestBytes = 32 * 1024 ** 2;
/** The commands of a push before its pack. */
const maxCommandBytes = 1024 ** 2;

const noCache = {
  "cache-control": "no-cache, max-age=0, must-revalidate",
  expires: "Fri, 01 Jan 1980 00:00:00 GMT",
  pragma: "no-cache",
};

const isService = (text: string | null): text is GitService =>
  text === "git-upload-pack" || text === "git-receive-pack";

/**
 * Reads `/v1/git/{pid}.git/…` in a request target, still encoded: exactly the three addresses of the smart protocol,
 * and the file protocol's `info/refs`. Anything else is null (404).
 */
export const parseGitPath = (target: string): GitRoute | null => {
  const [, project = "", rest, query = ""] =
    /^\/v1\/git\/([^/]+)\.git\/([^?#]+)(?:\?([^#]*))?$/.exec(target) ?? [];
  const projectId = parseUuid(project);
  if (projectId === null) return null;
  if (rest === "info/refs") {
    const service = new URLSearchParams(query).getAll("service");
    const [only = null] = service.length === 1 ? service : [];
    return { projectId, kind: "advertise", service: isService(only) ? only : null };
  }
  return rest !== undefined && isService(rest) ? { projectId, kind: "serve", service: rest } : null;
};

const failure = (message: string): GitError => new GitError({ code: "git_failed", message });

/** An answer that git shows to the user line by line after `remote:`. */
const plain = (status: Exclude<GitResponse["status"], 200>, text: string): GitResponse => ({
  status,
  headers: { ...noCache, "content-type": "text/plain; charset=utf-8" },
  body: Stream.succeed(Buffer.from(`${text}\n`)),
});

/** The endpoint's options, the places for its gits, and its cached greeting. */
type Served = SmartHttpOptions & {
  readonly takePlace: TakePlace;
  readonly greeting: ReturnType<typeof makeGreeting>;
};

interface Exchange {
  readonly call: GitCall;
  readonly path: string;
  readonly options: Served;
  readonly args: readonly string[];
  readonly body: Stream.Stream<Uint8Array, GitError>;
}

/** Pushing has no version 2: git itself answers a push in version 0. */
const protocolVariables = ({ protocol }: GitCall): Readonly<Record<string, string>> => {
  const version = /(?:^|:)version=([12])(?:$|:)/.exec(protocol ?? "")?.[1];
  return version === undefined ? {} : { GIT_PROTOCOL: `version=${version}` };
};

const start = ({ call, path, options, args }: Exchange) => {
  const fetching = call.service === "git-upload-pack";
  return spawnGit({
    repository: null,
    args: [call.service.slice("git-".length), "--stateless-rpc", ...args, path],
    stopBy: fetching ? "signal" : "hang-up",
    group: fetching ? "shared" : "own",
    config: fetching
      ? {
          "uploadpack.allowFilter": "true",
          ...(options.areViews === true ? {} : { "uploadpack.hideRefs": "refs/wip" }),
        }
      : {
          ...(options.areViews !== true &&
            call.policy.writer.kind === "session" && { "receive.hideRefs": "refs/wip" }),
          "core.hooksPath": hooksDirectory(options.directory),
          "receive.maxInputSize": String(options.maxPackBytes ?? maxPackBytes),
          "receive.denyDeleteCurrent": "ignore", // the policy decides what may be deleted
          "receive.denyCurrentBranch": "ignore",
        },
    environment: fetching
      ? protocolVariables(call)
      : { GIT_ALLOC_LIMIT: pushAllocation, ...searchVariables(call.policy) },
  });
};

/** Ends git and the connection if no byte has moved for the given time. */
const watch = (end: Effect.Effect<void>, lastByteAt: () => number, limit: number) =>
  Effect.gen(function* () {
    for (;;) {
      const now = yield* Clock.currentTimeMillis;
      const left = lastByteAt() + limit - now;
      if (left <= 0) return yield* end;
      yield* Effect.sleep(left);
    }
  });

/** One run of git: the request in, the response out. */
const exchange = (exchangeWish: Exchange): Stream.Stream<Uint8Array, GitError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { repository, policy, service, standing } = exchangeWish.call;
      const over = untilEnded(standing);
      yield* Effect.raceFirst(exchangeWish.options.takePlace(repository.projectId), over);
      // Opened before git starts, so it closes after git has ended.
      const { elsewhere } = exchangeWish.options;
      const forward = elsewhere === undefined ? null : yield* elsewhere.forwarding(repository.projectId);
      const git = yield* start(exchangeWish);
      const { observe, isAtomic } = atomicity();
      if (service === "git-receive-pack") {
        const writePolicy = forward === null ? protectionHere(policy, exchangeWish.path) : policy;
        const judge = standingJudge(pushJudge(writePolicy, forward, isAtomic), standing, forward !== null);
        yield* converse(git.channel, { judge, pushed: exchangeWish.call.pushed });
      }
      let lastByteAt = yield* Clock.currentTimeMillis;
      const touch = Effect.map(Clock.currentTimeMillis, (now) => {
        lastByteAt = now;
      });
      const breakage = yield* Deferred.make<never, GitError>();
      const request = yield* exchangeWish.body.pipe(
        Stream.runForEach((chunk) => {
          observe(chunk);
          return Effect.andThen(touch, feed(git.stdin, chunk));
        }),
        Effect.andThen(Effect.sync(() => git.stdin.end())),
        // To git, a broken request must not look complete. A push marks its own end, and a fetch's git is ended by a
        // signal.
        Effect.catch((error) => Effect.andThen(git.terminate, Deferred.fail(breakage, error))),
        Effect.forkScoped,
      );
      const limit = exchangeWish.options.idleMs ?? idleMs;
      const end = (message: string) =>
        git.terminate.pipe(
          Effect.andThen(Deferred.fail(breakage, new GitError({ code: "timeout", message }))),
          Effect.andThen(exchangeWish.call.disconnect),
        );
      const endStalled = end(`The transfer made no progress for ${limit / 1000} s.`);
      yield* Effect.forkScoped(watch(endStalled, () => lastByteAt, limit));
      yield* Effect.forkScoped(Effect.catch(over, ({ message }) => end(message)));
      if (exchangeWish.call.service === "git-receive-pack") {
        const longest = exchangeWish.options.maxPushMs ?? maxPushMs;
        yield* Effect.forkScoped(
          Effect.delay(end(`The push took longer than ${longest / 1000} s.`), longest),
        );
      }
      const output = NodeStream.fromReadable({
        evaluate: () => (git.stdout.readableEnded ? Readable.from([]) : git.stdout),
        onError: () => failure("The response of git was cut off."),
        chunkSize: 4,
        closeOnDone: false, // spawnGit closes it: a git that is hung up on still finishes its output
      });
      // A nonzero exit code is git's refusal, which it has already sent in the protocol; a signal is not. If git
      // refused early, the rest of the request is still read, because a client only listens after it has sent
      // everything.
      const endTransfer = Effect.gen(function* () {
        yield* Fiber.await(request);
        const code = yield* git.exit;
        if (code === null) return yield* failure("git was stopped before it responded.");
        if (code !== 0)
          yield* Effect.logDebug(`git ended with ${code}: ${gitMessage(git.stderr(), exchangeWish.path)}`);
      });
      return Stream.tap(output, () => touch).pipe(
        Stream.concat(Stream.drain(Stream.fromEffect(endTransfer))),
        Stream.interruptWhen(Deferred.await(breakage)),
      );
    }),
  );

const limitBody = (
  body: Stream.Stream<Uint8Array, unknown>,
  limit: number,
): Stream.Stream<Uint8Array, GitError> =>
  Stream.suspend(() => {
    let size = 0;
    return body.pipe(
      Stream.mapError(() => failure("The request was cut off.")),
      Stream.tap((chunk) => {
        size += chunk.length;
        return size > limit
          ? Effect.fail(failure(`The request is longer than ${limit} bytes.`))
          : Effect.void;
      }),
    );
  });

/**
 * Git's capabilities, its first output in version 2. They are the same for every repository here, since all have one
 * object format and no configuration of their own. So git is started for them once, which saves a third of the
 * processes of a small clone. If git is upgraded under a running service, the old greeting stays until the service
 * restarts.
 */
const makeGreeting = (): ((
  output: Stream.Stream<Uint8Array, GitError>,
) => Stream.Stream<Uint8Array, GitError>) => {
  let buffer: Buffer | null = null;
  return (output) =>
    Stream.suspend(() => {
      if (buffer !== null) return Stream.succeed(buffer);
      const chunks: Uint8Array[] = [];
      const keep = Effect.sync(() => {
        const whole = Buffer.concat(chunks);
        // A git that cannot read the repository also ends, but prints less.
        if (/^[0-9a-f]{4}version 2\n.*0000$/s.test(whole.toString("latin1"))) buffer = whole;
      });
      return output.pipe(
        Stream.tap((chunk) => Effect.sync(() => void chunks.push(chunk))),
        Stream.concat(Stream.drain(Stream.fromEffect(keep))),
      );
    });
};

const advertise = (options: Served, call: GitCall, path: string): GitResponse => {
  const answer = exchange({ call, path, options, args: ["--advertise-refs"], body: Stream.empty });
  const speaksV2 =
    call.service === "git-upload-pack" && protocolVariables(call)["GIT_PROTOCOL"] === "version=2";
  const title = `# service=${call.service}\n`;
  const preamble = `${(title.length + 4).toString(16).padStart(4, "0")}${title}0000`;
  return {
    status: 200,
    headers: { ...noCache, "content-type": `application/x-${call.service}-advertisement` },
    body: speaksV2 ? options.greeting(answer) : Stream.concat(Stream.succeed(Buffer.from(preamble)), answer),
  };
};

const serve = (options: Served, call: GitServeCall, path: string): GitResponse => {
  if (call.contentType !== `application/x-${call.service}-request`) {
    return plain(415, `The content type must be application/x-${call.service}-request.`);
  }
  const encoding = call.contentEncoding?.toLowerCase() ?? "identity";
  if (!["identity", "gzip", "x-gzip"].includes(encoding))
    return plain(415, "Only gzip encoding is supported.");
  const limit =
    call.service === "git-upload-pack"
      ? maxFetchRequestBytes
      : (options.maxPackBytes ?? maxPackBytes) + maxCommandBytes;
  const body = limitBody(encoding === "identity" ? call.body : inflate(call.body), limit);
  return {
    status: 200,
    headers: { ...noCache, "content-type": `application/x-${call.service}-result` },
    body: exchange({ call, path, options, args: [], body }),
  };
};

/** Git shows the sentence. An unavailable server is temporary (503), a refusal is not. */
const upstreamFailed = ({ code, message }: GitError): GitResponse | null => {
  if (code === "unavailable") {
    const answer = plain(503, message);
    return { ...answer, headers: { ...answer.headers, "retry-after": "5" } };
  }
  return code === "refused" ? plain(502, message) : null;
};

/** The endpoint over the repositories of a directory. */
export const smartHttp = (partialOptions: SmartHttpOptions): SmartHttp => {
  const takePlace = makePlaces(partialOptions.places ?? PLACES);
  const options: Served = { ...partialOptions, takePlace, greeting: makeGreeting() };
  const answer = (call: GitCall, respond: (path: string) => GitResponse) =>
    Effect.gen(function* () {
      const path = yield* existingRepository(options.directory, call.repository);
      if (call.service === "git-receive-pack") {
        if (call.policy.writer.kind === "none")
          return plain(403, "This credential can read but cannot push.");
        yield* checkHooks(hooksDirectory(options.directory));
      }
      return respond(path);
    });
  const freshen = options.elsewhere?.freshen ?? (() => Effect.void);
  return {
    advertise: (call) =>
      Effect.andThen(
        freshen(call),
        answer(call, (path) => advertise(options, call, path)),
      ).pipe(
        Effect.catchTag("GitError", (error) => {
          const response = upstreamFailed(error);
          return response === null ? Effect.fail(error) : Effect.succeed(response);
        }),
      ),
    serve: (call) => answer(call, (path) => serve(options, call, path)),
  };
};

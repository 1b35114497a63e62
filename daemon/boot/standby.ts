/**
 * A sandbox that waits for a session (docs/decisions/0073-warm-sandboxes.md): the agent runtime starts, and a claim brings the
 * session. Then the daemon boots as ever, with a runtime that runs already.
 *
 *  W1 Before the claim, nothing in the sandbox acts for a session: no message, no request to the runtime. The project's own setup
 *     command may run (setup-ahead.ts).
 *  W2 There is one claim. Only a context that the service signed for the claim's session is accepted.
 *  W3 A runtime that ends while it waits ends the daemon, and with it the sandbox: no session gets a broken one.
 */
import { rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import * as Scope from "effect/Scope";
import { DEFAULT_CONFIG_DIR } from "../../src/domain/manifest/config-dir.ts";
import { DAEMON_PROTOCOL } from "../../src/domain/sandbox/daemon-protocol.ts";
import { Claim } from "../../src/domain/sandbox/launch.ts";
import {
  USER_CONTEXT_HEADER,
  verifyUserContext,
  type UserContextRefusal,
} from "../../src/domain/sandbox/user-context.ts";
import { requestAmbiguity } from "../../src/proxy/ambiguity.ts";
import { headerValues } from "../../src/proxy/headers.ts";
import type { AheadOfSession, RuntimeAdapter } from "../adapters/adapter.ts";
import { AgentEnv } from "../agent/env.ts";
import { runtimeLaunch } from "../agent/launch.ts";
import type { Allowance } from "../logs/allowance.ts";
import {
  answerError,
  answerJson,
  answerMalformed,
  answerRefusal,
  answerUnauthenticated,
  CLAIMED,
  invalid,
  refusal,
} from "../http/answer.ts";
import { BODY_LIMIT_BYTES, readBytes } from "../http/body.ts";
import { writeForAgent } from "../files.ts";
import {
  type Adoptable,
  cleanCheckout,
  prepareCheckout,
  type Prepared,
  waitToAdopt,
} from "../git/checkout.ts";
import { listenForRejections } from "../git/rejections.ts";
import type { Log } from "../logs/log.ts";
import { configuresRuntime, writeRuntimeDefaults } from "../agent/models.ts";
import { endWhenLeftAlone } from "./orphan.ts";
import { ProcessGroup } from "../agent/process.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import type { HealthReport } from "../report.ts";
import { decideRoute } from "../http/route.ts";
import type { Settings } from "../settings.ts";
import { setupAhead, type SetupAhead } from "./setup-ahead.ts";

/** Pause between two checks whether the runtime answers. */
const PROBE_EVERY = "40 millis";
/** How much of the runtime's output is kept until the session has a log for it. */
const HELD_BYTES = 64 * 1024;

type OnOutput = (stream: "stdout" | "stderr", chunk: Buffer) => void;

/** A runtime that started before its session. */
export interface StartedAhead {
  readonly group: ProcessGroup;
  /** From now on, its output goes there. Earlier output is handed over immediately. */
  readonly readBy: (onOutput: OnOutput) => void;
}

export interface ClaimedSession {
  readonly claim: Claim;
  /** Null if this kind of runtime starts with its session. */
  readonly ahead: StartedAhead | null;
  /** Null if the session branch's commit is not checked out. */
  readonly prepared: PreparedAhead | null;
  /** Of the session's git (git/rejections.ts). */
  readonly refused: Effect.Effect<void>;
}

/** The session branch's commit, checked out before the session. */
export interface PreparedAhead extends Adoptable {
  /** Null if it has no setup command. */
  readonly setup: SetupAhead | null;
  /** Removes what else than the commit's files is in the workspace. */
  readonly undo: Effect.Effect<void>;
}

export interface StandbyOptions {
  /** Without a session's part (settings.ts). */
  readonly settings: Settings;
  readonly adapter: RuntimeAdapter;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly allowance: Allowance;
  readonly version: string;
}

const NOT_CLAIMED = refusal(503, "unclaimed", "This sandbox waits for a session.");

const NOT_PREPARED = refusal(502, "not_prepared", "Git could not unpack the commit.");

const decodeClaim = Schema.decodeUnknownResult(Schema.fromJsonString(Claim));

/** Starts the runtime and waits for the claim. The runtime lives as long as the scope. */
export const standBy = Effect.fnUntraced(function* (
  options: StandbyOptions,
): Effect.fn.Return<ClaimedSession, never, Scope.Scope> {
  const { adapter, log, settings } = options;
  const side = { settings, adapter, agentEnv: new AgentEnv(settings, options.redactor) };
  const beginSetup = yield* setupAhead(side, options);
  const scope = yield* Effect.scope;
  const waiting = new Waiting(options, (checkedOut) =>
    Effect.gen(function* () {
      const adopt = yield* waitToAdopt(settings, checkedOut.commit);
      if (adapter.ahead !== null && waiting.runtime === "ready" && !configuresRuntime(settings, checkedOut))
        yield* rehearse(options, adapter.ahead, settings.layout.workspace);
      const setup = beginSetup(checkedOut);
      return { checkedOut, adopt, setup, undo: setup?.undo ?? cleanCheckout(settings) };
    }).pipe(Scope.provide(scope), Effect.runPromise),
  );
  const rejection = yield* listenForRejections(settings);
  const ahead = adapter.ahead === null ? null : yield* startAhead(side, adapter.ahead);
  if (ahead === null || adapter.ahead === null) waiting.runtime = "ready";
  else {
    yield* Effect.forkScoped(becomeReady(options, adapter.ahead, waiting));
    yield* Effect.forkScoped(endWith(options, ahead.group, waiting));
  }
  const claim = yield* Effect.scoped(listen(options, waiting));
  writeForAgent(`${settings.layout.sessionEnvironment}.json`, JSON.stringify(claim.environment));
  log("claimed", { session: claim.session_id });
  const { prepared } = waiting;
  if (prepared === null || prepared.checkedOut.commit === claim.branch_commit)
    return { claim, ahead, prepared, refused: rejection };
  yield* prepared.undo;
  return { claim, ahead, prepared: null, refused: rejection };
});

/** The agent's side before there is a session. */
type Side = Pick<StandbyOptions, "settings" | "adapter"> & { readonly agentEnv: AgentEnv };

const startAhead = Effect.fnUntraced(function* (
  side: Side,
  { plugin }: AheadOfSession,
): Effect.fn.Return<StartedAhead, never, Scope.Scope> {
  const { sessionEnvironment, workspace } = side.settings.layout;
  const configDir = join(workspace, DEFAULT_CONFIG_DIR);
  writeForAgent(`${sessionEnvironment}.mjs`, plugin(`${sessionEnvironment}.json`));
  writeRuntimeDefaults(side, configDir);
  const earlyOutput: (readonly ["stdout" | "stderr", Buffer])[] = [];
  let heldBytes = 0;
  let reader: OnOutput | null = null;
  const group = yield* Effect.acquireRelease(
    ProcessGroup.start(runtimeLaunch(side, configDir), (stream, chunk) => {
      if (reader !== null) return reader(stream, chunk);
      heldBytes += chunk.length;
      if (heldBytes <= HELD_BYTES) earlyOutput.push([stream, chunk]);
    }),
    ({ end }) => end,
  );
  return {
    group,
    readBy: (onOutput) => {
      reader = onOutput;
      for (const [stream, chunk] of earlyOutput.splice(0)) onOutput(stream, chunk);
    },
  };
});

/** Reports that the runtime is ready once it answers and has opened a project. */
const becomeReady = (options: StandbyOptions, ahead: AheadOfSession, waiting: Waiting) =>
  Effect.gen(function* () {
    const { adapter, settings, log } = options;
    yield* Effect.retry(adapter.probe, Schedule.spaced(PROBE_EVERY));
    yield* rehearse(options, ahead, settings.launch.commonEnv["HOME"] ?? "/");
    waiting.runtime = "ready";
    log("waits for a session");
  });

/** A session can do without it. */
const rehearse = ({ log }: StandbyOptions, ahead: AheadOfSession, directory: string) =>
  Effect.catch(ahead.rehearse(directory), ({ message }) =>
    Effect.sync(() => log("the rehearsal failed", { message })),
  );

/** The end of the runtime before the claim ends the daemon (W3). */
const endWith = ({ log }: StandbyOptions, group: ProcessGroup, waiting: Waiting) =>
  Effect.gen(function* () {
    yield* Effect.exit(group.exit);
    if (waiting.isClaimed) return;
    log("the agent runtime ended before a session came");
    process.kill(process.pid, "SIGTERM");
  });

/** Listens until the claim has come and was answered. */
const listen = Effect.fnUntraced(function* (options: StandbyOptions, waiting: Waiting) {
  const { settings, log } = options;
  const { layout, servicePort, launch } = settings;
  yield* Effect.acquireRelease(
    Effect.promise(() => {
      rmSync(layout.socket, { force: true });
      return Promise.all([
        waiting.listen({ path: layout.socket }),
        waiting.listen({ host: layout.serviceHost, port: servicePort }),
      ]);
    }),
    () => Effect.promise(() => waiting.close()),
  );
  log("listening", { port: servicePort });
  if (launch.orphanMs !== undefined) {
    const wasHeard = () => waiting.wasHeard();
    yield* Effect.forkScoped(
      endWhenLeftAlone({ orphanMs: launch.orphanMs, socket: layout.socket, wasHeard, log }),
    );
  }
  return yield* waiting.claimed;
});

/** The HTTP surface of a waiting sandbox: its health, and the claim. */
class Waiting {
  runtime: "starting" | "ready" = "starting";
  readonly #options: StandbyOptions;
  readonly #begin: (checkedOut: Prepared) => Promise<PreparedAhead>;
  readonly #servers: Server[] = [];
  readonly #claim = Deferred.makeUnsafe<Claim>();
  readonly claimed = Deferred.await(this.#claim);
  isClaimed = false;
  prepared: PreparedAhead | null = null;
  #preparing: Promise<unknown> | null = null;
  #heard = false;

  /** @param begin begins what the session of a commit needs */
  constructor(options: StandbyOptions, begin: (checkedOut: Prepared) => Promise<PreparedAhead>) {
    this.#options = options;
    this.#begin = begin;
  }

  wasHeard(): boolean {
    const wasHeard = this.#heard;
    this.#heard = false;
    return wasHeard;
  }

  listen(where: { readonly path: string } | { readonly host: string; readonly port: number }): Promise<void> {
    const server = createServer({ requestTimeout: 60_000 });
    server.on("request", (request, response) => this.#handle(request, response));
    if ("path" in where) server.on("connection", () => (this.#heard = true));
    this.#servers.push(server);
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(where, () => resolve());
    });
  }

  /** Returns when the addresses are free for the daemon's own server. */
  async close(): Promise<void> {
    await Promise.all(
      this.#servers.map(
        (server) =>
          new Promise<void>((resolve) => {
            server.close(() => resolve());
            server.closeAllConnections();
          }),
      ),
    );
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const ambiguity = requestAmbiguity(request);
    if (ambiguity !== null) return answerMalformed(response, ambiguity);
    const route = decideRoute({ method: request.method ?? "", url: request.url ?? "" }, []);
    if (route.kind === "refused") return answerRefusal(response, route.refusal);
    if (route.kind === "health") return answerJson(response, 200, this.#health());
    if (route.kind === "claim") return void this.#take(request, response);
    if (route.kind === "prepare") return void this.#prepare(route.commit, request, response);
    answerError(response, NOT_CLAIMED.status, NOT_CLAIMED.body);
  }

  /** In the form of a booting daemon's health (report.ts). */
  #health(): Omit<HealthReport, "repo" | "restore" | "restored" | "typed_at"> & { readonly repo: object } {
    return {
      protocol: DAEMON_PROTOCOL,
      status: "starting",
      daemon: { version: this.#options.version, uptime_ms: Math.round(performance.now()) },
      runtime: { state: this.runtime, pid: null, restarts: 0, last_exit: null },
      repo: { ready: false, url: this.#options.settings.repoUrl, branch: null, commit: null },
      bootstrap: { state: "none", at: null },
      turn: { active: null, active_since: null, last_activity_at: null, last: null },
      boot: [],
      error: null,
    };
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBytes(request, response, BODY_LIMIT_BYTES);
    if (!Buffer.isBuffer(bytes)) return answerError(response, bytes.status, bytes.body);
    const read = decodeClaim(bytes.toString("utf8"));
    if (Result.isFailure(read)) {
      const { status, body } = invalid("", "must be a session's claim");
      return answerError(response, status, body);
    }
    const claim = read.success;
    const signatureRefusal = this.#refusal(request, claim.session_id);
    if (signatureRefusal !== null) return answerUnauthenticated(response, signatureRefusal);
    if (this.isClaimed) return answerError(response, CLAIMED.status, CLAIMED.body);
    this.isClaimed = true;
    await this.#preparing;
    const take = () => Deferred.doneUnsafe(this.#claim, Effect.succeed(claim));
    // A caller who has left asks again. It gets its answer from the session's daemon.
    if (response.destroyed) return void take();
    // The answer goes first: the connection ends with this server.
    response.once("close", take);
    response.setHeader("connection", "close");
    answerJson(response, 200, { session_id: claim.session_id });
  }

  #refusal(request: IncomingMessage, sessionId: string): UserContextRefusal | null {
    const verification = verifyUserContext(headerValues(request, USER_CONTEXT_HEADER), {
      token: this.#options.settings.token,
      sessionId,
      // oxlint-disable-next-line no-restricted-properties -- this file is the adapter to the outside world
      nowMs: Date.now(),
    });
    return Result.isFailure(verification) ? verification.failure : null;
  }

  /** Once. A session that comes meanwhile waits for its end. */
  async #prepare(commit: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { settings, log } = this.#options;
    const signatureRefusal = this.#refusal(request, settings.launch.standby ?? "");
    if (signatureRefusal !== null) return answerUnauthenticated(response, signatureRefusal);
    const pack = await readBytes(request, response, BODY_LIMIT_BYTES);
    if (!Buffer.isBuffer(pack)) return answerError(response, pack.status, pack.body);
    if (this.isClaimed || this.#preparing !== null)
      return answerError(response, CLAIMED.status, CLAIMED.body);
    const unpacking = this.#unpack({ commit, pack });
    this.#preparing = unpacking;
    const problem = await unpacking;
    if (problem === null) return answerJson(response, 200, { commit });
    log("the commit was not prepared", { message: problem });
    answerError(response, NOT_PREPARED.status, NOT_PREPARED.body);
  }

  /** @returns why it failed; null if the commit is checked out */
  async #unpack(checkout: Parameters<typeof prepareCheckout>[1]): Promise<string | null> {
    const checkedOut = await Effect.runPromise(
      Effect.result(prepareCheckout(this.#options.settings, checkout)),
    );
    if (Result.isFailure(checkedOut)) return checkedOut.failure.message;
    this.prepared = await this.#begin(checkedOut.success);
    return null;
  }
}

/**
 * This node's endpoint for other nodes, below Effect's router. It serves authenticated calls to the node's provider and
 * repositories, and passes requests to the daemons of its sandboxes. It also forwards git: a request for another node's
 * repository goes to that node unchanged, and that node authenticates it.
 *
 *  E1 Without a node's credential (D1, D2 of domain/service/node-credential.ts), nothing is read, called or forwarded.
 *  E2 A forwarded request is not forwarded again.
 *  E3 A sandbox is created only for a live record that names this node: a late call changes nothing.
 */
import { randomBytes } from "node:crypto";
import type { GitBackend } from "../git/port.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as FiberSet from "effect/FiberSet";
import * as Schema from "effect/Schema";
import { waitOutOutage } from "../store/ports/outage.ts";
import { Activity } from "../services/sessions/activity.ts";
import { Building } from "../services/environments/building.ts";
import { Keyring } from "../services/keyring.ts";
import {
  NODE_HEADER,
  openNodeMessage,
  sealNodeMessage,
  signNodeRequest,
  verifyNodeRequest,
} from "../domain/service/node-credential.ts";
import { USER_CONTEXT_HEADER } from "../domain/sandbox/user-context.ts";
import { GitError } from "../git/port.ts";
import { parseGitPath } from "../git/server/smart-http.ts";
import { BadRequest, Conflict, notFound, Unauthorized, Unavailable } from "../http/api/errors.ts";
import { runDecision } from "../http/steps/answers.ts";
import { RELAY_FAILURES } from "../http/relay/relay.ts";
import { answerRaw, requestId } from "../http/answers/respond.ts";
import type { RawRoutes } from "../http/server.ts";
import { headerValues } from "../proxy/headers.ts";
import { openProxy, type Upstream } from "../proxy/proxy.ts";
import { responseOn } from "../proxy/tunnel.ts";
import { linkTarget, SandboxError, type SandboxSpec } from "../sandbox/port.ts";
import { LocalSaves } from "../saves/layer.ts";
import { EnvironmentBuilds } from "../store/ports/projects/environment-builds.ts";
import { Sandboxes } from "../store/ports/sessions/sandboxes.ts";
import { LOST, OUTCOME_WAIT_MS } from "./building.ts";
import { CALL_PATH, MESSAGE_LIMIT_BYTES, NodeQuestion, SEAL_IV_BYTES, type NodeAnswer } from "./call.ts";
import { LocalParts } from "./local.ts";
import { NodeMap, remembering } from "./map.ts";
import { EXIT_WAIT_MS, SANDBOX_PATH } from "./sandboxes.ts";
import { encodePage } from "./tree-page.ts";

const NODES = "/v1/nodes/";
const SANDBOX = new RegExp(`^${SANDBOX_PATH}/([0-9a-f-]{36})/(client|service)(/.*)$`, "s");

type Operation = (args: never) => Effect.Effect<unknown, SandboxError | GitError>;

const notCreated = (message: string, passes = false) =>
  Effect.fail(
    new SandboxError({ operation: "create", message, ...(passes ? { node: "away" as const } : {}) }),
  );
const nothing = <E>(effect: Effect.Effect<void, E>) => Effect.as(effect, null);
const on =
  <Given extends readonly unknown[], A>(operation: (...args: Given) => Effect.Effect<A, GitError>) =>
  (args: Given) =>
    operation(...args);

const savesOperations = (saves: LocalSaves["Service"]) => ({
  "saves.check": on(saves.check),
  "saves.save": ([request]: Parameters<typeof saves.save>) => saves.save(request),
  "saves.restore": ([request]: Parameters<typeof saves.restore>) => saves.restore(request),
  "saves.copy": on(saves.copy),
  "saves.compare": on(saves.compare),
  "saves.diff": on(saves.diff),
  "saves.forgetEarlier": on(saves.forgetEarlier),
  "saves.remove": on(saves.remove),
  "saves.removeProject": on(saves.removeProject),
  "saves.sizes": on(saves.sizes),
});

const base64 = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : Buffer.from(bytes).toString("base64");

const gitOperations = (repositories: GitBackend["Service"]): Readonly<Record<string, Operation>> => ({
  "git.setDefaultBranch": on(repositories.setDefaultBranch),
  "git.remove": on(repositories.remove),
  "git.resolveBase": on(repositories.resolveBase),
  "git.branchTip": on(repositories.branchTip),
  "git.removeOldSave": on(repositories.removeOldSave),
  "git.hasChanges": on(repositories.hasChanges),
  "git.branches": on(repositories.branches),
  "git.createBranch": on(repositories.createBranch),
  "git.commitFile": on(repositories.commitFile),
  "git.pack": (args: Parameters<typeof repositories.pack>) => Effect.map(repositories.pack(...args), base64),
  "git.readFile": (args: Parameters<typeof repositories.readFile>) =>
    Effect.map(repositories.readFile(...args), base64),
  "git.objectIds": on(repositories.objectIds),
  "git.readTree": (args: Parameters<typeof repositories.readTree>) =>
    Effect.map(repositories.readTree(...args), (page) => page && encodePage(page)),
  "git.paths": on(repositories.paths),
  "git.compare": on(repositories.compare),
  "git.diff": on(repositories.diff),
  "git.merge": on(repositories.merge),
});

/**
 * The operations that this node performs for others, by name. Arguments are trusted to fit the port, since they come
 * from a node.
 */
const makeOperations = Effect.fnUntraced(function* (ending: Effect.Effect<void>) {
  const { provider, repositories } = yield* LocalParts;
  const { self } = yield* NodeMap;
  const sandboxes = yield* Sandboxes;

  const create = Effect.fnUntraced(function* (spec: SandboxSpec) {
    const row = yield* Effect.catch(sandboxes.get(spec.id), () =>
      notCreated("the database cannot be reached", true),
    );
    if (row?.nodeId !== self || row.endedAt !== null)
      return yield* notCreated("no live record names this node");
    yield* provider.create(spec);
    return null;
  });
  const builds = yield* EnvironmentBuilds;
  const building = yield* Building;
  /** A build of this node, for an operation on it. Null if it does not exist, or is another node's. */
  const buildHere = (id: string) =>
    Effect.map(waitOutOutage("a build for another node", builds.get(id)), (build) =>
      build?.nodeId === self ? build : null,
    );
  const operations: Readonly<Record<string, Operation>> = {
    "environment.run": (id: string) =>
      Effect.flatMap(buildHere(id), (build) =>
        build === null
          ? Effect.succeed(LOST)
          : Effect.raceFirst(
              building.run(build),
              Effect.as(Effect.raceFirst(Effect.sleep(OUTCOME_WAIT_MS), ending), null),
            ),
      ),
    "environment.end": (id: string) =>
      Effect.flatMap(buildHere(id), (build) =>
        build === null ? Effect.succeed(null) : nothing(building.end(build)),
      ),
    "sandbox.create": create,
    "sandbox.awaitExit": (id: string) =>
      Effect.raceFirst(
        provider.awaitExit(id),
        Effect.as(Effect.raceFirst(Effect.sleep(EXIT_WAIT_MS), ending), null),
      ),
    "sandbox.setSecretNames": ({ id, names }: { readonly id: string; readonly names: readonly string[] }) =>
      nothing(provider.setSecretNames(id, names)),
    "sandbox.logs": (id: string) => provider.logs(id),
    "sandbox.end": (id: string) => nothing(provider.end(id)),
    "sandbox.destroy": (id: string) => nothing(provider.destroy(id)),
    ...gitOperations(repositories),
    ...savesOperations(yield* LocalSaves),
  };
  return operations;
});

const decodeQuestion = Schema.decodeUnknownEffect(Schema.fromJsonString(NodeQuestion));
const encodeError = Schema.encodeUnknownSync(Schema.Union([SandboxError, GitError]));

const malformedRequest = (what: string) => new BadRequest({ error: `${what}.`, code: "malformed_request" });

const readBody = (request: IncomingMessage) =>
  Effect.tryPromise({
    try: async () => {
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of request as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > MESSAGE_LIMIT_BYTES) throw new Error("too long");
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    },
    catch: () => malformedRequest("The request was cut off"),
  });

/** Answers one call of another node, after its credential was verified. */
const makeAnswerer = Effect.fnUntraced(function* (ending: Effect.Effect<void>) {
  const operations = yield* makeOperations(ending);
  const { nodes: keys } = yield* Keyring;
  return Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
    const [credential = ""] = headerValues(request, NODE_HEADER);
    const text = openNodeMessage(yield* readBody(request), { credential, way: "question" }, keys);
    if (text === null)
      return yield* malformedRequest("The request does not come from a node of this database");
    const { operation, given } = yield* Effect.mapError(decodeQuestion(text), () =>
      malformedRequest("Not a question"),
    );
    const perform = Object.hasOwn(operations, operation) ? operations[operation] : undefined;
    // A newer node may call an operation that this one does not know.
    if (perform === undefined) return yield* notFound("operation");
    const answer: NodeAnswer = yield* Effect.match(perform(given as never), {
      onSuccess: (value) => ({ ok: true as const, value: value ?? null }),
      onFailure: (error) => ({ ok: false as const, error: encodeError(error) }),
    });
    const sealedAnswer = sealNodeMessage(
      JSON.stringify(answer),
      { envelope: { credential, way: "answer" }, iv: randomBytes(SEAL_IV_BYTES) },
      keys,
    );
    response.writeHead(200, {
      "content-type": "application/octet-stream",
      "content-length": sealedAnswer.length,
    });
    response.end(sealedAnswer);
  });
});

/** What a node says about the request that it forwards. Empty if the call is its own. */
const forwardedBy = ({ headers }: IncomingMessage): Pick<Upstream, "forwarded"> => {
  const [address, host, proto] = ["for", "host", "proto"].map((what) => headers[`x-forwarded-${what}`]);
  return typeof address === "string" && typeof host === "string" && typeof proto === "string"
    ? { forwarded: { for: address, host, proto } }
    : {};
};

const makeDaemonWay = Effect.gen(function* () {
  const { provider } = yield* LocalParts;
  const sandboxes = yield* Sandboxes;
  const { touch, open } = yield* Activity;
  const sandboxSession = remembering((id) => Effect.map(sandboxes.get(id), (row) => row?.sessionId ?? null));
  return Effect.fnUntraced(function* (request: IncomingMessage) {
    const [, id = "", by, path = ""] = SANDBOX.exec(request.url ?? "") ?? [];
    const sessionId = yield* sandboxSession(id);
    if (sessionId === null) return yield* notFound("sandbox");
    const link = yield* Effect.mapError(
      provider.link(id),
      () => new Conflict({ error: "The session's sandbox no longer exists.", code: "session_not_running" }),
    );
    const touchSession = (): void => touch(sessionId);
    if (by === "client") touchSession();
    const context = headerValues(request, USER_CONTEXT_HEADER);
    const upstream: Upstream = {
      at: linkTarget(link),
      path,
      host: "daemon",
      headers: context.flatMap((value) => [USER_CONTEXT_HEADER, value]),
      rewrite: (name, value) => (name === NODE_HEADER ? null : value),
      ...forwardedBy(request),
      ...(by === "client" ? { heard: touchSession, opened: () => open(sessionId) } : {}),
    };
    return upstream;
  });
});

export const repositoryAway = (): Unavailable =>
  new Unavailable({
    error: "The node that stores the repository cannot be reached. Try again in a moment.",
    code: "node_away",
  });

/** Where a git request goes: to another node, or null for this one. */
const makeGitWay = Effect.gen(function* () {
  const map = yield* NodeMap;
  const { nodes: keys } = yield* Keyring;
  return Effect.fnUntraced(function* (request: IncomingMessage, projectId: string) {
    const place = yield* map.repositoryPlace(projectId);
    if (place.is === "here") return null;
    if (place.is !== "there") return yield* repositoryAway();
    const { url: target = "", method = "GET", headers } = request;
    const at = yield* Clock.currentTimeMillis;
    const credential = signNodeRequest({ to: place.nodeId, method, target }, { from: map.self, at }, keys);
    const url = new URL(place.url);
    const upstream: Upstream = {
      at: linkTarget({ kind: "url", url: place.url }),
      path: target,
      host: url.host,
      headers: [
        NODE_HEADER,
        credential,
        // The caller's credential, for this one hop: the other node authenticates it.
        ...(headers.authorization === undefined ? [] : ["authorization", headers.authorization]),
      ],
    };
    return upstream;
  });
});

const strange = (): Unauthorized =>
  new Unauthorized({ error: "Only the service's own nodes can use this address.", code: "unauthorized" });

/** @returns a function that runs a decision to its answer. If the caller leaves, the decision is interrupted. */
const makeRun = Effect.gen(function* () {
  const runFork = yield* FiberSet.makeRuntime<never>();
  return <E>(response: ServerResponse, decision: Effect.Effect<void, E>): void => {
    const fiber = runFork(runDecision(decision, (error) => answerRaw(response, error)));
    response.on("close", () => {
      if (!response.writableFinished) fiber.interruptUnsafe();
    });
  };
});

/**
 * The raw routes of a node among several. They live as long as the scope.
 *
 * @param ending completes when the service begins to shut down. Requests that wait here for an event then end.
 */
export const makeNodeRoutes = Effect.fnUntraced(function* (ending: Effect.Effect<void>) {
  const { self } = yield* NodeMap;
  const { nodes: keys } = yield* Keyring;
  const answer = yield* makeAnswerer(ending);
  const daemonWay = yield* makeDaemonWay;
  const elsewhere = yield* makeGitWay;
  const run = yield* makeRun;
  const clock = yield* Clock.clockWith(Effect.succeed);
  const toDaemons = yield* openProxy((response, _to, why) => answerRaw(response, RELAY_FAILURES[why]()));
  const toNodes = yield* openProxy((response, _to, why) =>
    answerRaw(response, why === "unreachable" ? repositoryAway() : RELAY_FAILURES[why]()),
  );

  const isNodes = (request: IncomingMessage): boolean => {
    const { method = "GET", url: target = "" } = request;
    const signedRequest = { to: self, method, target, now: clock.currentTimeMillisUnsafe() };
    return verifyNodeRequest(headerValues(request, NODE_HEADER), signedRequest, keys) !== null;
  };
  const passOn = (request: IncomingMessage, response: ServerResponse, pass: (to: Upstream) => void): void =>
    run(response, Effect.map(daemonWay(request), pass));
  const forNode = (request: IncomingMessage, response: ServerResponse): void => {
    const target = request.url ?? "";
    if (!isNodes(request)) answerRaw(response, strange());
    else if (target === CALL_PATH && request.method === "POST") run(response, answer(request, response));
    else if (SANDBOX.test(target)) passOn(request, response, (to) => toDaemons.pass(request, response, to));
    else answerRaw(response, notFound("address"));
  };

  const routes: RawRoutes = {
    request: (request, response, next) => {
      const target = request.url ?? "";
      if (target.startsWith(NODES)) {
        forNode(request, response);
        return true;
      }
      const route = parseGitPath(target);
      if (route === null || request.headers[NODE_HEADER] !== undefined) return false;
      const decision = Effect.map(elsewhere(request, route.projectId), (to) =>
        to === null ? next() : toNodes.pass(request, response, to),
      );
      run(response, decision);
      return true;
    },
    upgrade: (request, socket, head) => {
      if (!(request.url ?? "").startsWith(NODES)) return false;
      const response = responseOn(request, socket);
      response.setHeader("x-request-id", requestId(request));
      if (!isNodes(request)) answerRaw(response, strange());
      else if (!SANDBOX.test(request.url ?? "")) answerRaw(response, notFound("address"));
      else passOn(request, response, (to) => toDaemons.upgrade(request, response, { socket, head, to }));
      return true;
    },
  };
  return routes;
});

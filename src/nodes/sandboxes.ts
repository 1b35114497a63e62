/**
 * The sandbox provider with several nodes: the node that has a sandbox performs the operations on it. Actors and
 * endpoints do not notice. If a node is unreachable, its operations fail with `node: "away"`, and callers that need
 * them retry. That is not yet the end: the sandbox of a silent node may still run, and a session may have only one. If a node is
 * dead, its sandboxes are lost and their end counts as done: when the node comes back, it removes their leftovers
 * (duties/orphans.ts).
 */
import { clockWith } from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { Keyring } from "../services/keyring.ts";
import { backoff } from "../ground/backoff.ts";
import { NODE_HEADER, signNodeRequest } from "../domain/service/node-credential.ts";
import { SandboxError, SandboxProvider, SandboxExit, type DaemonLink } from "../sandbox/port.ts";
import { Sandboxes } from "../store/ports/sessions/sandboxes.ts";
import { nodeCaller } from "./call.ts";
import { LocalParts } from "./local.ts";
import { NodeMap, remembering, type Place } from "./map.ts";

/** The path under which a node forwards requests to the daemons of its sandboxes. */
export const SANDBOX_PATH = "/v1/nodes/sandboxes";

/** How long an operation may take on the other node. A boot takes the longest; callers have their own limits. */
const TIMEOUT_MS = 10 * 60_000;
/** A call that waits for a sandbox's end waits this long at the other node, and a little longer for the answer. */
export const EXIT_WAIT_MS = 15_000;
const EXIT_TIMEOUT_MS = EXIT_WAIT_MS + 10_000;

const LOST: SandboxExit = { code: "absent", message: "the node of the sandbox does not answer any more" };

type Operation = SandboxError["operation"];
type There = Extract<Place, { readonly is: "there" }>;

const away = (operation: Operation, message: string) =>
  new SandboxError({ operation, message, node: "away" });

const decodeError = Schema.decodeUnknownEffect(SandboxError);
const decodeExit = Schema.decodeUnknownEffect(Schema.NullOr(SandboxExit));

const lostNode = (operation: Operation) =>
  Effect.fail(new SandboxError({ operation, message: LOST.message, node: "dead" }));

/** An operation on a sandbox, for each place where the sandbox may be. */
interface Doing<A> {
  readonly here: Effect.Effect<A, SandboxError>;
  readonly there: (to: There) => Effect.Effect<A, SandboxError>;
  /** The result if the sandbox's node is dead. */
  readonly lost: Effect.Effect<A, SandboxError>;
}

/** @returns the functions that call other nodes, and that find a sandbox's node. */
const makeAsking = Effect.gen(function* () {
  const map = yield* NodeMap;
  const sandboxes = yield* Sandboxes;
  const { nodes: keys } = yield* Keyring;
  const call = nodeCaller({ map, keys });
  const owner = remembering((id) => Effect.map(sandboxes.get(id), (row) => row?.nodeId ?? null));
  /** A sandbox without a record counts as this node's. */
  const sandboxPlace = (id: string) => Effect.map(owner(id), (nodeId) => map.place(nodeId ?? map.self));

  const ask = (to: There, operation: Operation, request: unknown): Effect.Effect<unknown, SandboxError> =>
    call(to, { operation: `sandbox.${operation}`, given: request }, TIMEOUT_MS).pipe(
      Effect.mapError(({ message }) => away(operation, message)),
      Effect.flatMap((answer) =>
        answer.ok
          ? Effect.succeed(answer.value)
          : Effect.flatMap(Effect.orDie(decodeError(answer.error)), (error) => Effect.fail(error)),
      ),
    );

  const perform = <A>(operation: Operation, id: string, by: Doing<A>): Effect.Effect<A, SandboxError> =>
    Effect.gen(function* () {
      const place = yield* Effect.mapError(sandboxPlace(id), () =>
        away(operation, "the database cannot be reached"),
      );
      if (place.is === "here") return yield* by.here;
      if (place.is === "there") return yield* by.there(place);
      if (place.is === "dead") return yield* by.lost;
      return yield* away(operation, "the sandbox's node cannot be reached");
    });

  /** The sandbox's exit if it has ended by now. Null if not yet: call again. */
  const askExit = Effect.fnUntraced(function* (to: There, id: string) {
    const answer = yield* call(to, { operation: "sandbox.awaitExit", given: id }, EXIT_TIMEOUT_MS);
    return answer.ok ? yield* decodeExit(answer.value) : null;
  });
  return { sandboxPlace, ask, done: perform, askExit };
});

/** @returns a function that makes a link to a daemon on another node. */
const makeLinking = Effect.gen(function* () {
  const { self } = yield* NodeMap;
  const { nodes: keys } = yield* Keyring;
  const clock = yield* clockWith(Effect.succeed);
  return ({ nodeId: to, url }: There, id: string): DaemonLink => ({
    kind: "node",
    url,
    request: ({ method, path, by }) => {
      const target = `${SANDBOX_PATH}/${id}/${by}${path}`;
      const credential = { from: self, at: clock.currentTimeMillisUnsafe() };
      return {
        path: target,
        headers: [NODE_HEADER, signNodeRequest({ to, method, target }, credential, keys)],
      };
    },
  });
});

/** If a node is away, retry after 100 ms, doubling to 1 s. */
const AGAIN = backoff("100 millis", "1 second");

const make = Effect.gen(function* () {
  const { provider: own } = yield* LocalParts;
  const { sandboxPlace, ask, done, askExit } = yield* makeAsking;
  const linkTo = yield* makeLinking;

  /** One check for a sandbox's end, which may take a while. Null until then. Fails if its node cannot tell. */
  const lookForExit = (id: string) =>
    Effect.gen(function* () {
      const place = yield* sandboxPlace(id);
      if (place.is === "here") return yield* own.awaitExit(id);
      if (place.is === "dead") return LOST;
      if (place.is === "away") return yield* Effect.fail("unknown" as const);
      return yield* askExit(place, id);
    });
  /** Waits until the end is known: a node that is away comes back, or is declared dead. */
  const awaitExit = (id: string): Effect.Effect<SandboxExit> =>
    lookForExit(id).pipe(
      Effect.retry(AGAIN),
      Effect.orDie,
      Effect.repeat({ until: (exit) => exit !== null }),
      Effect.map((exit) => exit ?? LOST),
    );

  /** For an operation without a result. On a dead node it counts as done. */
  const endSandbox = (operation: "end" | "destroy", id: string) =>
    done(operation, id, {
      here: own[operation](id),
      there: (to) => Effect.asVoid(ask(to, operation, id)),
      lost: Effect.void,
    });

  return SandboxProvider.of({
    ...own,
    create: (spec) =>
      done("create", spec.id, {
        here: own.create(spec),
        there: (to) => Effect.asVoid(ask(to, "create", spec)),
        lost: lostNode("create"),
        // A repeated create joins the first one (sandbox/port.ts P1). The caller gives up at the boot deadline.
      }).pipe(Effect.retry({ while: ({ node }) => node === "away", schedule: AGAIN })),
    awaitExit,
    link: (id) =>
      done("link", id, {
        here: own.link(id),
        there: (to) => Effect.succeed(linkTo(to, id)),
        lost: lostNode("link"),
      }),
    setSecretNames: (id, names) =>
      done("setSecretNames", id, {
        here: own.setSecretNames(id, names),
        there: (to) => Effect.asVoid(ask(to, "setSecretNames", { id, names })),
        lost: lostNode("setSecretNames"),
      }),
    logs: (id) =>
      done("logs", id, {
        here: own.logs(id),
        there: (to) => Effect.map(ask(to, "logs", id), String),
        lost: Effect.succeed(""),
      }),
    end: (id) => endSandbox("end", id),
    destroy: (id) => endSandbox("destroy", id),
  });
});

/** Dispatches over this node's own provider. */
export const nodeSandboxes = Layer.effect(SandboxProvider, make);

/**
 * The twin of every provider: sandboxes in memory, with the port's semantics. Time is Effect's Clock, so a test clock
 * drives it. `SimulatedSandboxes` is the test's side: it injects faults, ends sandboxes, and shows the calls.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  type DaemonLink,
  SandboxError,
  ABSENT_EXIT,
  type SandboxExit,
  type SandboxListing,
  SandboxProvider,
  type SandboxSpec,
} from "./port.ts";

/** A fault of the next call for which it is set. */
export type SimulatedFault =
  /** Never answers. A create has no effect before it hangs. */
  | { readonly kind: "hang" }
  /** Fails without effect. */
  | { readonly kind: "error"; readonly message: string; readonly code?: "no_capacity" }
  /** Answers correctly, after an additional delay in milliseconds. */
  | { readonly kind: "slow"; readonly milliseconds: number }
  /** Takes effect and then fails, as if the answer was lost (threats.md R05). */
  | { readonly kind: "lost"; readonly message: string }
  /** Succeeds, and the sandbox ends at once for this reason. */
  | { readonly kind: "exit"; readonly exit: SandboxExit };

type Faulty = "create" | "end" | "destroy" | "list" | "link" | "logs";

export interface SimulatedSandbox {
  readonly spec: SandboxSpec;
  readonly startedAt: number;
  readonly exit: SandboxExit | null;
}

export class SimulatedSandboxes extends Context.Service<
  SimulatedSandboxes,
  {
    /** Queues a fault for the next call of an operation. Faults are used in order. */
    readonly fault: (operation: Faulty, fault: SimulatedFault) => Effect.Effect<void>;
    /** Ends a sandbox as if by itself. */
    readonly end: (id: string, exit: SandboxExit) => Effect.Effect<void>;
    /** Makes a sandbox write whole lines to its log. */
    readonly write: (id: string, text: string) => Effect.Effect<void>;
    /** An operator gives the node another program of its runtimes. */
    readonly install: (digest: string) => Effect.Effect<void>;
    /** Adds a sandbox that was never created here: left behind by a dead service, or owned by another installation. */
    readonly plant: (spec: SandboxSpec) => Effect.Effect<void>;
    /** All present sandboxes, including ended ones, by id. */
    readonly all: Effect.Effect<ReadonlyMap<string, SimulatedSandbox>>;
  }
>()("platform/sandbox/SimulatedSandboxes") {}

export interface SimulatedOptions {
  /** Milliseconds from create to its answer. */
  readonly bootMs: number;
  /** Where a daemon is reached, by id. The default leads nowhere, for twins of the daemon's client. */
  readonly link?: (id: string) => DaemonLink;
}

interface Entry {
  readonly spec: SandboxSpec;
  readonly startedAt: number;
  readonly exit: Deferred.Deferred<SandboxExit>;
  reason: SandboxExit | null;
  log: string;
}

const ENDED: SandboxExit = { code: "exited", message: "the sandbox was ended" };
const DESTROYED: SandboxExit = { code: "exited", message: "the sandbox was destroyed" };
const nowhere = (id: string): DaemonLink => ({ kind: "url", url: `http://${id}.sandbox.invalid` });

const failure = (operation: Faulty, message: string, code?: "no_capacity") =>
  new SandboxError({ operation, message, ...(code !== undefined && { code }) });

/** The sandboxes themselves, without the fault injection. */
const openWorld = () => {
  const entries = new Map<string, Entry>();

  const end = (id: string, exit: SandboxExit): Effect.Effect<void> =>
    Effect.suspend(() => {
      const entry = entries.get(id);
      if (entry === undefined || entry.reason !== null) return Effect.void;
      entry.reason = exit;
      return Effect.asVoid(Deferred.succeed(entry.exit, exit));
    });

  const start = Effect.fnUntraced(function* (spec: SandboxSpec) {
    if (entries.has(spec.id)) return;
    const exit = yield* Deferred.make<SandboxExit>();
    entries.set(spec.id, {
      spec,
      startedAt: yield* Clock.currentTimeMillis,
      exit,
      reason: null,
      log: "simulated sandbox\n",
    });
  });

  const remove = (id: string): Effect.Effect<void> =>
    Effect.andThen(
      end(id, DESTROYED),
      Effect.sync(() => entries.delete(id)),
    );

  const listing = Effect.sync((): SandboxListing[] =>
    [...entries.values()].map(({ spec, reason }) => ({
      id: spec.id,
      sessionId: spec.sessionId,
      state: reason === null ? "running" : "exited",
    })),
  );
  return { entries, end, start, remove, listing };
};

/**
 * The queued faults, and `under`, which runs an operation with the next fault. `id` is the sandbox that `exit` ends.
 */
const openFaults = (end: (id: string, exit: SandboxExit) => Effect.Effect<void>) => {
  const faults: Record<Faulty, SimulatedFault[]> = {
    create: [],
    end: [],
    destroy: [],
    list: [],
    link: [],
    logs: [],
  };
  const under =
    (operation: Faulty, id: string | null) =>
    <A>(run: Effect.Effect<A, SandboxError>): Effect.Effect<A, SandboxError> =>
      Effect.suspend(() => {
        const fault = faults[operation].shift();
        switch (fault?.kind) {
          case undefined:
            return run;
          case "hang":
            return Effect.never;
          case "error":
            return Effect.fail(failure(operation, fault.message, fault.code));
          case "slow":
            return Effect.delay(run, fault.milliseconds);
          case "lost":
            return Effect.andThen(run, Effect.fail(failure(operation, fault.message)));
          case "exit":
            return Effect.tap(run, () => (id === null ? Effect.void : end(id, fault.exit)));
        }
      });
  return { faults, under };
};

const make = (options: SimulatedOptions): Context.Context<SandboxProvider | SimulatedSandboxes> => {
  const { entries, end, start, remove, listing } = openWorld();
  const { faults, under } = openFaults(end);

  const link = (id: string): Effect.Effect<DaemonLink, SandboxError> =>
    Effect.suspend(() =>
      entries.has(id)
        ? Effect.succeed((options.link ?? nowhere)(id))
        : Effect.fail(failure("link", "the sandbox does not exist")),
    );

  /** Of its runtimes' program. */
  let digest: string | null = null;
  const provider = SandboxProvider.of({
    name: "simulated",
    summary: "simulated: starts nothing real and isolates nothing; for load tests and for trying the API",
    create: (spec) => Effect.delay(start(spec), options.bootMs).pipe(under("create", spec.id)),
    installed: () => Effect.sync(() => digest),
    awaitExit: (id) =>
      Effect.suspend(() => {
        const entry = entries.get(id);
        return entry === undefined ? Effect.succeed(ABSENT_EXIT) : Deferred.await(entry.exit);
      }),
    list: listing.pipe(under("list", null)),
    link: (id) => link(id).pipe(under("link", id)),
    // It reaches nothing, whatever secrets its project has.
    setSecretNames: (id) =>
      Effect.suspend(() =>
        entries.has(id)
          ? Effect.void
          : Effect.fail(
              new SandboxError({ operation: "setSecretNames", message: "the sandbox does not exist" }),
            ),
      ),
    logs: (id) => Effect.sync(() => entries.get(id)?.log ?? "").pipe(under("logs", id)),
    end: (id) => end(id, ENDED).pipe(under("end", id)),
    destroy: (id) => remove(id).pipe(under("destroy", id)),
    doctor: Effect.succeed({
      provider: "simulated",
      usable: true,
      problem: null,
      findings: [{ subject: "everything", how: "not at all", detail: "nothing real is started" }],
    }),
  });

  const control = SimulatedSandboxes.of({
    fault: (operation, fault) => Effect.sync(() => void faults[operation].push(fault)),
    end,
    write: (id, text) =>
      Effect.sync(() => {
        const entry = entries.get(id);
        if (entry !== undefined) entry.log += text;
      }),
    install: (next) => Effect.sync(() => void (digest = next)),
    plant: start,
    all: Effect.sync(
      () =>
        new Map(
          [...entries].map(([id, { spec, startedAt, reason }]) => [id, { spec, startedAt, exit: reason }]),
        ),
    ),
  });
  return Context.make(SandboxProvider, provider).pipe(Context.add(SimulatedSandboxes, control));
};

/** The twin, with the test's side. */
export const simulatedProvider = (
  options: SimulatedOptions,
): Layer.Layer<SandboxProvider | SimulatedSandboxes> => Layer.effectContext(Effect.sync(() => make(options)));

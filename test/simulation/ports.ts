/** The twins of everything the service touches, each behind the boundary at which things go wrong. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { Approvals } from "../../src/features/approvals/ports/approvals.ts";
import { Connectors } from "../../src/store/ports/connectors/connectors.ts";
import { ExecutorCalls } from "../../src/store/ports/connectors/executor-calls.ts";
import { BuildSite } from "../../src/builder/site/port.ts";
import { GitBackend, GitError } from "../../src/git/port.ts";
import { DaemonClient } from "../../src/sandbox/daemon.ts";
import { SandboxProvider } from "../../src/sandbox/port.ts";
import { SimulatedSandboxes, type SimulatedFault } from "../../src/sandbox/simulated.ts";
import { ChangeRequests } from "../../src/features/change-requests/ports/change-requests.ts";
import { Conversations } from "../../src/store/ports/sessions/conversations.ts";
import { Counters } from "../../src/store/ports/triggers/counters.ts";
import { StoreError } from "../../src/store/ports/journal.ts";
import { Admissions } from "../../src/store/ports/triggers/admissions.ts";
import { CloneCredentials } from "../../src/store/ports/sessions/clone-credentials.ts";
import { EnvironmentBuilds } from "../../src/store/ports/projects/environment-builds.ts";
import { Events } from "../../src/store/ports/events.ts";
import { Fires } from "../../src/store/ports/triggers/fires.ts";
import { StoreHealth } from "../../src/store/ports/health.ts";
import { BrowserSessions } from "../../src/store/ports/people/browser-sessions.ts";
import { Identities } from "../../src/store/ports/people/identities.ts";
import { Identity } from "../../src/store/ports/people/identity.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import { Sandboxes } from "../../src/store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { Secrets } from "../../src/store/ports/projects/secrets.ts";
import { Previews } from "../../src/store/ports/sessions/previews.ts";
import { WarmSandboxes } from "../../src/store/ports/sessions/warm-sandboxes.ts";
import { Saves } from "../../src/saves/port.ts";
import { SessionLogs } from "../../src/store/ports/sessions/session-logs.ts";
import { WebhookRefusals } from "../../src/store/ports/triggers/webhook-refusals.ts";
import type { SimulatedSaves } from "../twins/saves.ts";
import type { Boundary } from "./world/boundary.ts";
import { hasApprovals, hasPeople, hasWarm } from "./config.ts";
import type { MadeMerge } from "./world/merges.ts";
import type { Random } from "./random.ts";
import type { Process } from "./time.ts";

/** Waiting for news is not a statement: it takes no effect, and no part of it fails. */
const WAITS = new Set(["changed", "awaitExit", "turn"]);
/** What only reads, and comes with every round of every duty. */
const READS =
  /^(get|list|states|changedSince|unsettled|ownerless|wrong|unheld|runningOn|waitingAccounts|prune|prunePrevious|sealed|load|account|lastFired|lastBySlug|queue|due|request|prompt|link|health|newest|ready|inUse|log|objectIds|readTree|find|branchTip|readFile|resolveBase|keepCursors|cursors|acceptBootstrap|compare|byId|allOpen)$/;

/** The first text among what a call was given, or the id it was given under. */
const aboutOf = (given: readonly unknown[]): string => {
  const [first, second] = given;
  if (typeof first === "string") return first;
  if (typeof first !== "object" || first === null) return "";
  const fields = first as Readonly<Record<string, unknown>>;
  const event = fields["event"] as { readonly type?: string } | undefined;
  const id = fields["id"] ?? fields["projectId"] ?? "";
  const more = typeof second === "object" && second !== null && "branch" in second ? second.branch : "";
  return [id, event?.type ?? "", more].filter((text) => text !== "").join(" ");
};

interface Wrapping {
  readonly boundary: Boundary;
  readonly process: Process;
  readonly port: string;
  readonly failure: ((operation: string) => unknown) | null;
}

/** The same service with every call of it behind the boundary. */
const behind = <S extends object>(service: S, wrapping: Wrapping): S => {
  const { boundary, process, port, failure } = wrapping;
  const around = (operation: string) => {
    const isTraced = !READS.test(operation);
    const error = failure === null ? null : () => failure(operation);
    return (given: readonly unknown[], effect: unknown): unknown =>
      !Effect.isEffect(effect) || WAITS.has(operation)
        ? effect
        : boundary.around(
            { process, port, operation, about: aboutOf(given), given, isTraced, failure: error },
            effect,
          );
  };
  const copy = Object.entries(service).map(([name, part]: readonly [string, unknown]) => {
    if (typeof part === "function") {
      const call = part as (...given: readonly unknown[]) => unknown;
      const wrapped = around(name);
      return [name, (...given: readonly unknown[]) => wrapped(given, call(...given))] as const;
    }
    if (Effect.isEffect(part)) return [name, around(name)([], part)] as const;
    if (typeof part === "object" && part !== null)
      return [name, behind(part, { ...wrapping, port: `${port}.${name}` })] as const;
    return [name, part] as const;
  });
  return Object.fromEntries(copy) as S;
};

const storeError = (operation: string) =>
  new StoreError({ operation, cause: new Error("the simulated database cannot be reached") });
const gitError = () => new GitError({ code: "git_failed", message: "the simulated repository failed" });

export const STORE = [
  Admissions,
  ChangeRequests,
  CloneCredentials,
  Conversations,
  Counters,
  EnvironmentBuilds,
  Events,
  Fires,
  BrowserSessions,
  Identities,
  Identity,
  Previews,
  Projects,
  Sandboxes,
  Secrets,
  SessionLogs,
  Sessions,
  StoreHealth,
  WebhookRefusals,
] as const;

/** Behind the boundary where agents call tools that ask. Elsewhere, calls of these ports move no draw. */
const STORE_OF_APPROVALS = [Approvals, ExecutorCalls] as const;

/** The same where sandboxes wait for sessions. */
const STORE_OF_WARM = [WarmSandboxes] as const;

type StoreServices = Context.Service.Identifier<
  | (typeof STORE)[number]
  | (typeof STORE_OF_APPROVALS)[number]
  | (typeof STORE_OF_WARM)[number]
  | typeof Connectors
>;
/** The twins as they are, with their other sides. */
export type Twins =
  | StoreServices
  | GitBackend
  | BuildSite
  | SandboxProvider
  | SimulatedSandboxes
  | DaemonClient
  | Saves;

const addBehind = <I, S extends object>(
  context: Context.Context<Twins>,
  tag: Context.Service<I, S>,
  wrapping: Wrapping,
): Context.Context<Twins> => {
  const service = Context.getUnsafe(context, tag);
  return Context.add(context, tag, behind(service, wrapping)) as Context.Context<Twins>;
};

const FLAKY = [
  "store.Sessions",
  "store.Sessions.memory",
  "store.Sandboxes",
  "store.Sandboxes.memory",
  "store.Admissions",
  "store.Projects",
  "store.Fires",
];
const FLAKY_WITH_PEOPLE = [...FLAKY, "store.Conversations", "store.Conversations.memory"];
const FLAKY_WITH_WARM = [...FLAKY, "store.WarmSandboxes"];
const FLAKY_WITH_APPROVALS = [...FLAKY_WITH_PEOPLE, "store.Approvals", "upstream"];

/** The ports of which a share of calls may go wrong. */
export const flakyPorts = (seed: number): readonly string[] => {
  if (hasWarm(seed)) return FLAKY_WITH_WARM;
  if (hasApprovals(seed)) return FLAKY_WITH_APPROVALS;
  return hasPeople(seed) ? FLAKY_WITH_PEOPLE : FLAKY;
};

export interface PortOptions {
  readonly saves: SimulatedSaves;
  readonly boundary: Boundary;
  /** Whether agents call tools that ask. */
  readonly isAsking: boolean;
  /** Whether sandboxes wait for sessions. */
  readonly isWarm: boolean;
  /** Whose ports they are. */
  readonly process: Process;
  readonly random: Random;
  /** The share of a provider's calls that go wrong, by now. */
  readonly providerFaults: () => number;
  /** Whether this destruction is said to have succeeded and does nothing. */
  readonly lies: (sandboxId: string) => boolean;
  /** A sandbox's record is being opened. */
  readonly opening: (record: { readonly id: string; readonly nodeId: string }) => void;
  /** An existing sandbox is being destroyed. */
  readonly destroying: (sandboxId: string) => void;
  /** Git has merged, and moved a branch. */
  readonly merged: (merge: MadeMerge) => void;
}

type Faulty = Parameters<SimulatedSandboxes["Service"]["fault"]>[0];

/** What a provider's call may meet. */
const providerFault = (random: Random, operation: Faulty): SimulatedFault => {
  const message = "the simulated provider failed";
  const faults: [SimulatedFault, ...SimulatedFault[]] = [
    { kind: "error", message },
    { kind: "lost", message },
    { kind: "slow", milliseconds: random.between(100, 45_000) },
    { kind: "hang" },
  ];
  if (operation === "create") {
    faults.push({ kind: "exit", exit: { code: "memory_exceeded", message: "no memory" } });
  }
  return random.pick(faults);
};

/** `meet` queues the fault of a call right before it: queued any sooner, it would be left to another's if the caller died. */
const unreliable = (
  provider: SandboxProvider["Service"],
  meet: (operation: Faulty) => void,
): SandboxProvider["Service"] => {
  const meeting = <A, E>(operation: Faulty, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      meet(operation);
      return effect;
    });
  return {
    ...provider,
    create: (spec) => meeting("create", provider.create(spec)),
    end: (id) => meeting("end", provider.end(id)),
    destroy: (id) => meeting("destroy", provider.destroy(id)),
    list: meeting("list", provider.list),
    link: (id) => meeting("link", provider.link(id)),
    logs: (id) => meeting("logs", provider.logs(id)),
  };
};

/** The ports as the service sees them in this simulation. */
export const portsBehind = (
  twins: Context.Context<Twins>,
  {
    isAsking,
    isWarm,
    saves,
    boundary,
    process,
    random,
    providerFaults,
    lies,
    opening,
    destroying,
    merged,
  }: PortOptions,
) => {
  const control = Context.get(twins, SimulatedSandboxes);
  let ports = twins;
  const more = [...(isAsking ? STORE_OF_APPROVALS : []), ...(isWarm ? STORE_OF_WARM : [])];
  for (const tag of [...STORE, ...more]) {
    const port = tag.key.split("/").at(-1) ?? tag.key;
    ports = addBehind(ports, tag as Context.Service<unknown, object>, {
      boundary,
      process,
      port: `store.${port}`,
      failure: storeError,
    });
  }
  const sandboxes = Context.get(ports, Sandboxes);
  ports = Context.add(ports, Sandboxes, {
    ...sandboxes,
    open: (record) => {
      opening(record);
      return sandboxes.open(record);
    },
  });
  const git = Context.get(ports, GitBackend);
  ports = Context.add(ports, GitBackend, {
    ...git,
    merge: ({ projectId }, request) =>
      Effect.tap(git.merge({ projectId }, request), (made) =>
        Effect.sync(() => {
          const { message } = request;
          if (made.outcome === "merged") merged({ projectId, message, commit: made.commit });
        }),
      ),
  });
  ports = addBehind(ports, GitBackend, { boundary, process, port: "git", failure: gitError });
  ports = Context.add(ports, Saves, saves.over(Context.get(ports, Sessions)));
  ports = addBehind(ports, Saves, { boundary, process, port: "saves", failure: null });
  ports = addBehind(ports, BuildSite, { boundary, process, port: "site", failure: null });
  ports = addBehind(ports, DaemonClient, { boundary, process, port: "daemon", failure: null });
  const provider = unreliable(Context.get(twins, SandboxProvider), (operation) => {
    const share = providerFaults();
    if (share === 0 || !random.chance(share)) return;
    const fault = providerFault(random, operation);
    boundary.hit(`${fault.kind} provider.${operation}`);
    boundary.note(`${fault.kind} provider.${operation}`);
    Effect.runSync(control.fault(operation, fault));
  });
  const lying = SandboxProvider.of({
    ...provider,
    destroy: (id) =>
      Effect.suspend(() => {
        if (Effect.runSync(control.all).has(id)) destroying(id);
        if (!lies(id)) return provider.destroy(id);
        boundary.hit("lie provider.destroy");
        return Effect.void;
      }),
  });
  ports = Context.add(ports, SandboxProvider, lying);
  return addBehind(ports, SandboxProvider, { boundary, process, port: "provider", failure: null });
};

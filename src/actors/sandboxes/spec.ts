/** Gathers a sandbox's spec: the injected environment, the project's secrets, and the hosts that it may reach. */
import { createHash } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { DAEMON_PROTOCOL } from "../../domain/sandbox/daemon-protocol.ts";
import {
  type EnvironmentInput,
  injectedEnvironment,
  splitEnvironment,
} from "../../domain/sandbox/environment.ts";
import { commitOfSaved, lackingWords } from "../../domain/save/saved.ts";
import type { Claim, GitCredential } from "../../domain/sandbox/launch.ts";
import { SandboxProvider, type SandboxSpec } from "../../sandbox/port.ts";
import { providerPointing } from "../../domain/agents/agent-provider.ts";
import { usedProviders } from "../../domain/sandbox/model.ts";
import { credentialOwner } from "../../services/connectors/own-credentials.ts";
import { AccountModels } from "../../services/projects/account-models.ts";
import { type Agent, agentStart } from "../../domain/agents/agents.ts";
import {
  launchedSubscription,
  type SubscriptionChoice,
  usedSubscription,
} from "../../domain/agents/subscription.ts";
import { MODEL_HOST } from "../../domain/sandbox/account-provider.ts";
import { OwnSubscriptions, type StartingSession } from "../../services/projects/own-subscriptions.ts";
import { DEFAULT_AGENT } from "../../domain/sandbox/agent.ts";
import { agentIn, Runtimes } from "../../services/projects/runtimes.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { type Sandbox, Sandboxes } from "../../store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { Suspensions } from "../../store/ports/connectors/suspensions.ts";
import { Secrets } from "../../store/ports/projects/secrets.ts";
import { Conversations } from "../../store/ports/sessions/conversations.ts";
import type { BootEnvironment } from "../../services/environments/environments.ts";
import { readRecap } from "../../services/sessions/recap.ts";
import { Keyring } from "../../services/keyring.ts";
import { openSecrets } from "../../services/projects/project-secrets.ts";

export interface SpecOptions {
  /** How sandboxes reach this service, e.g. `http://platform.internal` (api.md 8). */
  readonly internalUrl: string;
  /** Hosts that every sandbox may reach (PLATFORM_EGRESS_ALLOW). */
  readonly egressAllow: readonly string[];
  /** The managed model gateway and the tiers that have it (PLATFORM_LLM_*). Null if no gateway is configured. */
  readonly gateway: {
    readonly upstream: string;
    readonly baseUrl: string;
    readonly apiKey: string;
    readonly tiers: readonly string[];
  } | null;
  /** PLATFORM_BOOT_TIMEOUT_MS. */
  readonly bootTimeoutMs: number;
  /** PLATFORM_CLONE_CREDENTIAL_TTL_MS. */
  readonly cloneCredentialTtlMs: number;
}

/** The gateway as sandboxes see it: our host name, and the configured path. @param llm PLATFORM_LLM_* */
export const sandboxGateway = (
  llm: { readonly baseUrl: string; readonly apiKey: string; readonly tiers: readonly string[] } | null,
): SpecOptions["gateway"] => {
  if (llm === null) return null;
  const upstream = new URL(llm.baseUrl);
  const path = upstream.pathname.replace(/\/$/, "");
  return {
    upstream: `${upstream.origin}${path}`,
    baseUrl: `http://${MODEL_HOST}${path}`,
    apiKey: llm.apiKey,
    tiers: llm.tiers,
  };
};

/**
 * How much of a boot's time is left, ms. Never more than a whole boot's time: a clock that was set back must not
 * lengthen it (threats.md C14).
 */
export const bootTimeLeft = (bootDeadlineAt: number, now: number, bootTimeoutMs: number): number =>
  Math.min(Math.max(0, bootDeadlineAt - now), bootTimeoutMs);

const requireRow = <A>(what: string, row: A | null): Effect.Effect<A> =>
  row === null ? Effect.die(new Error(`${what} has no row`)) : Effect.succeed(row);

/** The parts of a spec that a session brings. */
type OfSession = Pick<SandboxSpec, "sessionId" | "wip" | "wipLacks" | "restore" | "recap" | "bootDeadlineMs">;

/** What the injected environment takes from a session. */
type SessionInput = Pick<
  EnvironmentInput,
  "sessionId" | "baseRef" | "agentName" | "agentModel" | "initialPrompt"
>;

interface Standing {
  readonly sandboxId: string;
  readonly projectId: string;
  readonly environment: BootEnvironment;
  /** The session's, or of no effect. */
  readonly session: SessionInput;
  /** Whose own providers of models and subscriptions the session may use. */
  readonly personId: string | null;
  /** Null if the sandbox waits for a session. */
  readonly starting: StartingSession | null;
}

/** The own subscription that a sandbox gets, and the hosts that its runtime then asks. */
const ownSubscription = Effect.fnUntraced(function* (
  { sandboxId, starting, personId }: Standing,
  start: { readonly named: Agent } & Pick<ReturnType<typeof agentStart>, "agent" | "model">,
  secretNames: SubscriptionChoice["secretNames"],
) {
  const { named, agent, model } = start;
  if (starting === null || personId === null || agent === null) return null;
  const { kept, deliver } = yield* OwnSubscriptions;
  const subscription = usedSubscription(named, model, {
    secretNames,
    kept: yield* kept(starting.accountId, personId),
  });
  if (subscription === null) return null;
  const content = yield* deliver(starting, { sandboxId, runtime: named.runtime.name });
  if (content === null) return null;
  return { hosts: subscription.hosts, launched: launchedSubscription(subscription, content, agent) };
});

/** @returns a function that builds what all sandboxes of a project have in common, from the tables as they are now. */
const standingSpec = Effect.fnUntraced(function* (options: SpecOptions) {
  const projects = yield* Projects;
  const keyring = yield* Keyring;
  const runtimes = yield* Runtimes;
  const accountModels = yield* AccountModels;
  const { installed } = yield* SandboxProvider;
  const services = yield* Effect.context<Secrets | Keyring>();
  return Effect.fnUntraced(function* (standing: Standing) {
    const { sandboxId, projectId, environment, session, personId } = standing;
    const [[state = null], { given, values }] = yield* Effect.all(
      [projects.states([projectId]), Effect.provideContext(openSecrets(projectId), services)],
      { concurrency: "unbounded" },
    );
    const { project, tier, manifest } = yield* requireRow(`project ${projectId}`, state);
    const sessionAgent = yield* Effect.provideService(
      agentIn(manifest, session.agentName),
      Runtimes,
      runtimes,
    );
    const { runtime, agent, model } = agentStart(sessionAgent, session.agentModel);
    const secretNames = Object.keys(values);
    const providers = usedProviders(
      yield* accountModels({ accountId: project.accountId, projectId, personId }),
      secretNames,
    );
    const pointing = providerPointing(sessionAgent, model, { providers, secretNames });
    const own = yield* ownSubscription(standing, { named: sessionAgent, agent, model }, secretNames);
    const digest = yield* installed(runtime);
    const gateway = options.gateway?.tiers.includes(tier) === true ? options.gateway : null;
    const { image, variables } = environment;
    const spec = {
      id: sandboxId,
      environment: injectedEnvironment({
        ...session,
        agentModel: model,
        projectId,
        baseUrl: options.internalUrl,
        defaultBranch: project.defaultBranch,
        secretNames,
        secretsRevision: String(given.revision),
        sandboxToken: keyring.serviceKey(sandboxId),
        projectToken: keyring.cliToken(sandboxId),
        gateway: gateway === null ? null : { apiKey: gateway.apiKey, baseUrl: gateway.baseUrl },
      }),
      secrets: values,
      image,
      ...(Object.keys(variables).length > 0 && { variables }),
      egressAllow: [...options.egressAllow, ...(own?.hosts ?? [])],
      llmUpstream: gateway === null ? null : gateway.upstream,
      // A sandbox gets these, and nothing else of a provider.
      ...(providers.length > 0 && {
        providers: providers.map(({ owner, name, kind, models }) => ({ owner, name, kind, models })),
      }),
      runtime,
      ...(digest !== null && { installed: digest }),
      agent: agent && {
        ...agent,
        ...pointing,
        variables: { ...agent.variables, ...pointing.variables },
        ...((agent.files ?? pointing.files) && { files: { ...agent.files, ...pointing.files } }),
        ...(own !== null && { subscription: own.launched }),
      },
      // The platform has tools of its own, so every agent has some.
      hasConnectors: true,
    } satisfies Omit<SandboxSpec, keyof OfSession>;
    return { spec, given };
  });
});

/** What a spec takes from the sandbox's record. */
type Booting = Pick<Sandbox, "id" | "sessionId" | "bootDeadlineAt">;

/**
 * Builds the spec of a session's sandbox, with the session, from the tables as they are now, so a booting sandbox gets the newest secrets.
 * Its image was chosen before (services/environments/environments.ts).
 */
export const sandboxSpec = Effect.fnUntraced(function* (options: SpecOptions) {
  const sandboxes = yield* Sandboxes;
  const sessions = yield* Sessions;
  const services = yield* Effect.context<Conversations | Sessions | Suspensions>();
  const makeStanding = yield* standingSpec(options);
  return Effect.fnUntraced(function* (row: Booting, environment: BootEnvironment) {
    const { id: sandboxId, sessionId } = row;
    const session = yield* requireRow(`session ${sessionId}`, yield* sessions.get(sessionId));
    const { projectId } = session;
    const standing = makeStanding({
      sandboxId,
      projectId,
      environment,
      session: { ...session, sessionId },
      personId: yield* Effect.provideContext(credentialOwner(session), services),
      starting: { ...session, id: sessionId },
    });
    const [{ spec, given }, recap] = yield* Effect.all(
      [standing, Effect.provideContext(readRecap(session), services)],
      { concurrency: "unbounded" },
    );
    // Recorded once: a boot that is performed again may join a sandbox that started with the secrets recorded then.
    yield* sandboxes.noteSecrets(sandboxId, null, given);
    const whole = {
      ...spec,
      sessionId,
      wip: commitOfSaved(session.saved),
      wipLacks: lackingWords(session.saved),
      restore: session.restoreSaved,
      recap,
      bootDeadlineMs: bootTimeLeft(row.bootDeadlineAt, yield* Clock.currentTimeMillis, options.bootTimeoutMs),
    } satisfies SandboxSpec;
    return { spec: whole, session };
  });
});

/** A session's variables in a sandbox that has none. They are cut out again. */
const NO_SESSION: SessionInput = {
  sessionId: "",
  baseRef: "",
  agentName: DEFAULT_AGENT,
  agentModel: null,
  initialPrompt: null,
};

/** @returns a function that builds the spec of a sandbox that waits for a session. */
export const waitingSpec = Effect.fnUntraced(function* (options: SpecOptions) {
  const makeStanding = yield* standingSpec(options);
  return Effect.fnUntraced(function* (sandboxId: string, projectId: string, environment: BootEnvironment) {
    const { spec, given } = yield* makeStanding({
      sandboxId,
      projectId,
      environment,
      session: NO_SESSION,
      personId: null,
      starting: null,
    });
    const waiting: SandboxSpec = {
      ...spec,
      environment: splitEnvironment(spec.environment).standing,
      sessionId: null,
      agent: null,
      wip: null,
      wipLacks: null,
      restore: false,
      recap: null,
      bootDeadlineMs: options.bootTimeoutMs,
    };
    return { spec: waiting, given };
  });
});

/** A digest of everything in a spec that a sandbox is started with and a claim does not bring. Equal for all sandboxes of equal contents. */
export const specRecipe = (spec: SandboxSpec): string => {
  const {
    PLATFORM_TOKEN: _token,
    PLATFORM_CLI_TOKEN: _cli,
    PLATFORM_EXECUTOR_TOKEN: _executor,
    ...standing
  } = splitEnvironment(spec.environment).standing;
  // Secrets are named by their revision, which is in the environment.
  const { image, variables, egressAllow, llmUpstream, providers, runtime, installed, hasConnectors } = spec;
  const parts = [
    DAEMON_PROTOCOL,
    Object.entries(standing).toSorted(([one], [other]) => (one < other ? -1 : 1)),
    image,
    Object.entries(variables ?? {}).toSorted(([one], [other]) => (one < other ? -1 : 1)),
    // With the hosts of an own subscription: a claim does not bring the way out to them.
    egressAllow,
    llmUpstream,
    ...(providers === undefined ? [] : [providers]),
    [runtime.adapter, runtime.command, Object.entries(runtime.variables), runtime.permissions],
    hasConnectors,
    // An operator may give the node another version.
    ...(installed === undefined ? [] : [installed]),
  ];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
};

/** The parts of a claim that are not in the spec. */
export interface ClaimParts {
  readonly sessionId: string;
  /** Where the session branch is; null if that is unknown. */
  readonly branchCommit: string | null;
  readonly credential: GitCredential;
}

/** What a waiting sandbox gets with its session. */
export const makeClaim = (spec: SandboxSpec, { sessionId, branchCommit, credential }: ClaimParts): Claim => ({
  session_id: sessionId,
  environment: splitEnvironment(spec.environment).session,
  ...(spec.wip !== null && { wip: spec.wip }),
  ...(spec.wipLacks !== null && { wip_lacks: spec.wipLacks }),
  ...(spec.restore && { restore: true }),
  ...(spec.recap !== null && { recap: spec.recap }),
  ...(spec.agent !== null && { agent: spec.agent }),
  ...(branchCommit !== null && { branch_commit: branchCommit }),
  credential,
  boot_deadline_ms: spec.bootDeadlineMs,
});

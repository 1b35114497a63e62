/** Gathers a sandbox's spec: the injected environment, the project's secrets, and the hosts that it may reach. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { injectedEnvironment } from "../domain/environment.ts";
import type { SandboxSpec } from "../sandbox/port.ts";
import { Identity } from "../store/ports/identity.ts";
import { Projects } from "../store/ports/projects.ts";
import { Sandboxes } from "../store/ports/sandboxes.ts";
import { Sessions } from "../store/ports/sessions.ts";
import { Secrets } from "../store/ports/secrets.ts";
import { Conversations } from "../store/ports/conversations.ts";
import type { BootEnvironment } from "../services/environments.ts";
import { readRecap } from "../services/recap.ts";
import { Keyring } from "../services/keyring.ts";
import { openSecrets } from "../duties/secrets.ts";

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
}

/**
 * How much of a boot's time is left, ms. Never more than a whole boot's time: a clock that was set back must not
 * lengthen it (threats.md C14).
 */
export const bootTimeLeft = (bootDeadlineAt: number, now: number, bootTimeoutMs: number): number =>
  Math.min(Math.max(0, bootDeadlineAt - now), bootTimeoutMs);

const found = <A>(what: string, row: A | null): Effect.Effect<A> =>
  row === null ? Effect.die(new Error(`${what} has no row`)) : Effect.succeed(row);

/**
 * Builds a sandbox's spec from the tables as they are now, so a booting sandbox gets the newest secrets. Its image was
 * chosen before (services/environments.ts).
 */
export const sandboxSpec = Effect.fnUntraced(function* (options: SpecOptions) {
  const sandboxes = yield* Sandboxes;
  const sessions = yield* Sessions;
  const projects = yield* Projects;
  const identity = yield* Identity;
  const keyring = yield* Keyring;
  const services = yield* Effect.context<Conversations | Secrets | Keyring>();
  return Effect.fnUntraced(function* (sandboxId: string, { image, variables }: BootEnvironment) {
    const row = yield* found(`sandbox ${sandboxId}`, yield* sandboxes.get(sandboxId));
    const session = yield* found(`session ${row.sessionId}`, yield* sessions.get(row.sessionId));
    const [state = null] = yield* projects.states([session.projectId]);
    const { project } = yield* found(`project ${session.projectId}`, state);
    const account = yield* found(`account ${session.accountId}`, yield* identity.account(session.accountId));
    const { given, values } = yield* Effect.provideContext(openSecrets(project.id), services);
    // Recorded once: a boot that is performed again may join a sandbox that started with the secrets recorded then.
    yield* sandboxes.noteSecrets(sandboxId, null, given);
    const gateway = options.gateway?.tiers.includes(account.tier) === true ? options.gateway : null;
    const spec: SandboxSpec = {
      id: sandboxId,
      sessionId: session.id,
      environment: injectedEnvironment({
        projectId: project.id,
        sessionId: session.id,
        baseUrl: options.internalUrl,
        defaultBranch: project.defaultBranch,
        baseRef: session.baseRef,
        agentName: session.agentName,
        agentModel: session.agentModel,
        initialPrompt: session.initialPrompt,
        secretNames: Object.keys(values),
        secretsRevision: String(given.revision),
        sandboxToken: keyring.serviceKey(sandboxId),
        projectToken: keyring.cliToken(sandboxId),
        gateway: gateway === null ? null : { apiKey: gateway.apiKey, baseUrl: gateway.baseUrl },
      }),
      secrets: values,
      image,
      ...(Object.keys(variables).length > 0 && { variables }),
      egressAllow: options.egressAllow,
      llmUpstream: gateway === null ? null : gateway.upstream,
      wip: session.saved?.wip ?? null,
      recap: yield* Effect.provideContext(readRecap(session.id), services),
      // The platform has tools of its own, so every agent has some.
      hasConnectors: true,
      bootDeadlineMs: bootTimeLeft(row.bootDeadlineAt, yield* Clock.currentTimeMillis, options.bootTimeoutMs),
    };
    return spec;
  });
});

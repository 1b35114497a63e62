/** Gathers what a sandbox is made of: the injected environment, the project's secrets, what it may reach. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { injectedEnvironment } from "../domain/environment.ts";
import { unsealSecret } from "../domain/secret.ts";
import * as Result from "effect/Result";
import type { SandboxSpec } from "../sandbox/port.ts";
import { Identity, Projects, Sandboxes, Secrets, Sessions } from "../store/port.ts";
import type { SealedSecret } from "../store/records.ts";
import { Keyring } from "./keyring.ts";

export interface SpecOptions {
  /** How sandboxes reach this service, e.g. `http://platform.internal` (api.md 8). */
  readonly internalUrl: string;
  /** Hosts that every sandbox may reach (PLATFORM_EGRESS_ALLOW). */
  readonly egressAllow: readonly string[];
  /** The managed model gateway and the tiers that have it (PLATFORM_LLM_*); null where there is none. */
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
 * How much of a boot's time is left, ms. Never more than a whole boot has: a clock that was set back must not lengthen it
 * (threats.md C14).
 */
export const bootTimeLeft = (bootDeadlineAt: number, now: number, bootTimeoutMs: number): number =>
  Math.min(Math.max(0, bootDeadlineAt - now), bootTimeoutMs);

const found = <A>(what: string, row: A | null): Effect.Effect<A> =>
  row === null ? Effect.die(new Error(`${what} has no row`)) : Effect.succeed(row);

const unsealed = (
  keyring: Keyring["Service"],
  secret: SealedSecret,
): Effect.Effect<readonly [string, string]> => {
  const value = unsealSecret(keyring.secrets, secret, secret.envelope);
  return Result.isSuccess(value)
    ? Effect.succeed([secret.name, value.success])
    : Effect.die(new Error(`the secret ${secret.name} cannot be opened: ${value.failure}`));
};

/** Makes a sandbox's spec from the tables as they are now: a booting sandbox has the newest secrets. */
export const sandboxSpec = Effect.fnUntraced(function* (options: SpecOptions) {
  const sandboxes = yield* Sandboxes;
  const sessions = yield* Sessions;
  const projects = yield* Projects;
  const identity = yield* Identity;
  const secrets = yield* Secrets;
  const keyring = yield* Keyring;
  return Effect.fnUntraced(function* (sandboxId: string) {
    const row = yield* found(`sandbox ${sandboxId}`, yield* sandboxes.get(sandboxId));
    const session = yield* found(`session ${row.sessionId}`, yield* sessions.get(row.sessionId));
    const project = yield* found(`project ${session.projectId}`, yield* projects.get(session.projectId));
    const account = yield* found(`account ${session.accountId}`, yield* identity.account(session.accountId));
    const sealed = yield* secrets.sealed(project.id);
    const { revision } = yield* secrets.list(project.id);
    const opened = yield* Effect.forEach(sealed, (secret) => unsealed(keyring, secret));
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
        secretNames: opened.map(([name]) => name),
        secretsRevision: String(revision),
        sandboxToken: keyring.serviceKey(sandboxId),
        projectToken: keyring.cliToken(sandboxId),
        gateway: gateway === null ? null : { apiKey: gateway.apiKey, baseUrl: gateway.baseUrl },
      }),
      secrets: Object.fromEntries(opened),
      egressAllow: options.egressAllow,
      llmUpstream: gateway === null ? null : gateway.upstream,
      bootDeadlineMs: bootTimeLeft(row.bootDeadlineAt, yield* Clock.currentTimeMillis, options.bootTimeoutMs),
    };
    return spec;
  });
});

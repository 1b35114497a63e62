/** Sandboxes: their records, their actors' memory, and the secrets that each received. */
import * as Context from "effect/Context";
import type { SandboxCommand, SandboxEvent, SandboxSnapshot } from "../../../machines/sandbox.ts";
import type { Memory, Stored, UnsettledActor } from "../journal.ts";
import type { LimitedSession } from "../../../domain/sandbox/spend.ts";
import type { Failure } from "../../../domain/session/failure.ts";
import type { SandboxStatus } from "../../../domain/session/session.ts";

export interface Sandbox {
  readonly id: string;
  readonly sessionId: string;
  readonly provider: string;
  readonly nodeId: string;
  /** The operator's image whose file system it sees, as the project's manifest names it. Null if it names none. */
  readonly image: string | null;
  /** The build whose image it sees, or for which it waits. Null if its project has no Dockerfile. */
  readonly environment: SandboxEnvironment | null;
  /** It waited for its session: a digest of everything that it was started with. Null if it was started for the session. */
  readonly warmRecipe: string | null;
  readonly status: SandboxStatus;
  readonly failure: Failure | null;
  readonly bootDeadlineAt: number;
  readonly createdAt: number;
  /** When its newest boot began. Null while it waits for a place (services/sessions/boot-places.ts). */
  readonly bootStartedAt: number | null;
  readonly activeAt: number | null;
  readonly endedAt: number | null;
}

/** A build, as a sandbox uses it. */
export interface SandboxEnvironment {
  readonly buildId: string;
  /** The project's Dockerfile has changed since, and its newer build is not ready. */
  readonly isStale: boolean;
}

export interface NotedEnvironment extends SandboxEnvironment {
  readonly now: number;
}

/** The project's secrets that a sandbox last received: the version of each by its name, no values. */
export interface GivenSecrets {
  readonly revision: number;
  readonly versions: Readonly<Record<string, number>>;
}

/** An active sandbox whose project's secrets have changed since, with its session. */
export interface OutdatedSandbox {
  readonly id: string;
  readonly session: LimitedSession & { readonly agentName: string };
  readonly given: GivenSecrets;
}

export class Sandboxes extends Context.Service<
  Sandboxes,
  {
    readonly memory: Memory<SandboxSnapshot, SandboxEvent, SandboxCommand>;
    /**
     * Opens the record with its first commands, and this boot's two tokens (by hash). Idempotent by id. Fenced by the
     * session (I18): if the session is not provisioning with this sandbox any more, nothing is written, so that a late
     * owner leaves no sandbox behind. A session has at most one sandbox that is provisioning or active (api.md 3). If the
     * session has claimed a waiting sandbox with this id, its node, recipe and secrets are taken over, and its row goes.
     */
    readonly open: (request: {
      readonly id: string;
      readonly sessionId: string;
      readonly provider: string;
      readonly nodeId: string;
      readonly bootDeadlineAt: number;
      readonly snapshot: SandboxSnapshot;
      readonly commands: readonly SandboxCommand[];
      readonly serviceKeyHash: string;
      readonly cliToken: { readonly id: string; readonly hash: string };
      readonly now: number;
    }) => Stored<void>;
    readonly get: (id: string) => Stored<Sandbox | null>;
    readonly newest: (sessionId: string) => Stored<Sandbox | null>;
    /**
     * Records that a provisioning sandbox boots from now until its deadline. Called again for each attempt. False: it
     * is no longer provisioning.
     */
    readonly beginBoot: (
      id: string,
      boot: { readonly now: number; readonly deadlineAt: number },
    ) => Stored<boolean>;
    readonly unsettled: Stored<readonly UnsettledActor[]>;
    /**
     * The ids among these that no record holds: the record does not exist, or has ended with no pending command, and
     * nothing waits for a session under that id.
     */
    readonly unheld: (ids: readonly string[]) => Stored<readonly string[]>;
    /** It did not wait for its session, or not as it should: from now on it counts as started for the session. */
    readonly forgetWarmth: (id: string) => Stored<void>;
    /** Records the image with which it boots. */
    readonly noteImage: (id: string, image: string) => Stored<void>;
    /** Records the build with whose image it boots, or for which it waits. */
    readonly noteEnvironment: (id: string, environment: NotedEnvironment) => Stored<void>;
    /**
     * Records the secrets that it receives, if `former` is the revision recorded before (null: none). False: not
     * recorded.
     */
    readonly noteSecrets: (id: string, former: number | null, secrets: GivenSecrets) => Stored<boolean>;
    /** Active sandboxes of this node whose recorded secrets have another revision than their project's. */
    readonly outdated: (nodeId: string) => Stored<readonly OutdatedSandbox[]>;
  }
>()("platform/store/Sandboxes") {}

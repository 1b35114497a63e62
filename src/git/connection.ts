/**
 * The port to checks of a connection: whether the service could work with a repository at another server, step by step, and
 * what a person can do where it could not. A check changes nothing at the server
 * (docs/decisions/0049).
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { Upstream } from "../domain/repository-credential.ts";
import type { GitError, Repository } from "./port.ts";
import type { Upstreams } from "./upstream/upstreams.ts";

/** In the order in which they are tried. A step that fails ends the check. */
export const CONNECTION_STEPS = [
  "host",
  "credential",
  "repository",
  "default_branch",
  "push",
  "pull_requests",
] as const;
export type ConnectionStepName = (typeof CONNECTION_STEPS)[number];

export interface ConnectionStep {
  readonly step: ConnectionStepName;
  /** `unknown`: only its first use will show it. */
  readonly outcome: "passed" | "failed" | "unknown";
  /** What was found, as a sentence. It contains no part of a credential. */
  readonly message: string;
  /** What to do about a failure. */
  readonly advice: string | null;
}

export interface Connection {
  readonly steps: readonly ConnectionStep[];
  /** Null if no step found it. */
  readonly defaultBranch: string | null;
}

/** @param branch the wanted default branch. Null: the one that the server names. */
export type CheckConnection = (upstream: Upstream, branch: string | null) => Effect.Effect<Connection>;

export interface ConnectionsPort {
  readonly check: CheckConnection;
  /** With the project's stored credential. Null: no other server has the project's repository. */
  readonly ofProject: (repository: Repository) => Effect.Effect<Connection | null, GitError>;
}

/** Without other servers, no step is tried. */
export const Connections = Context.Reference<ConnectionsPort>("platform/git/Connections", {
  defaultValue: () => ({
    check: () => Effect.succeed({ steps: [], defaultBranch: null }),
    ofProject: () => Effect.succeed(null),
  }),
});

export const connections = (upstreams: Upstreams["Service"], check: CheckConnection): ConnectionsPort => ({
  check,
  ofProject: ({ projectId }) =>
    Effect.flatMap(upstreams.find(projectId), (upstream) =>
      upstream === null ? Effect.succeed(null) : check(upstream, upstream.defaultBranch),
    ),
});

export const passed = (step: ConnectionStepName, message: string): ConnectionStep => ({
  step,
  outcome: "passed",
  message,
  advice: null,
});

export const failed = (step: ConnectionStepName, message: string, advice: string): ConnectionStep => ({
  step,
  outcome: "failed",
  message,
  advice,
});

export const unknown = (step: ConnectionStepName, message: string): ConnectionStep => ({
  step,
  outcome: "unknown",
  message,
  advice: null,
});

/** The check of a connection to a repository at another server, step by step (api.md 2 "Checks"). */

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
  /** The finding, as a sentence. It contains no part of a credential. */
  readonly message: string;
  /** The remedy of a failure, as a sentence. */
  readonly advice: string | null;
}

export interface Connection {
  readonly steps: readonly ConnectionStep[];
  /** Null if no step found it. */
  readonly defaultBranch: string | null;
}

export const passedStep = (step: ConnectionStepName, message: string): ConnectionStep => ({
  step,
  outcome: "passed",
  message,
  advice: null,
});

export const failedStep = (step: ConnectionStepName, message: string, advice: string): ConnectionStep => ({
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

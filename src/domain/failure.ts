/**
 * Why a session or a sandbox failed: a stable code for programs and a sentence for people (threats.md I22: every
 * failed session has a reason). `message` never holds a credential; whoever builds a Failure has redacted it.
 */
export interface Failure {
  readonly code: FailureCode;
  readonly message: string;
}

export type FailureCode =
  | "branch_failed"
  | "sandbox_create_failed"
  | "boot_timeout"
  | "clone_failed"
  | "runtime_failed"
  | "sandbox_lost"
  | "memory_exceeded"
  | "disk_exceeded"
  | "internal_error";

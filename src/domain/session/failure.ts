/** Failures: why a session or a sandbox ended in error. */
import { cutText, storableText } from "../text.ts";

/**
 * Why a session or a sandbox failed: a stable code for programs and a sentence for people (threats.md I22: every failed
 * session has a reason). `message` never contains a credential: the code that builds a Failure redacts it first. Only
 * `failure` creates Failures: a message that no row can store would keep its session from ever failing.
 */
export interface Failure {
  readonly code: FailureCode;
  readonly message: string;
}

export type FailureCode =
  | "branch_failed"
  | "environment_failed"
  | "sandbox_create_failed"
  | "no_capacity"
  | "boot_timeout"
  | "clone_failed"
  | "runtime_failed"
  | "sandbox_lost"
  | "memory_exceeded"
  | "disk_exceeded"
  | "internal_error";

/** The longest message, in UTF-16 code units. A daemon joins up to three texts of 4096 in one message. */
const MESSAGE_MAX_LENGTH = 16_384;

/** @param message any text. NUL and lone surrogates are removed, and text beyond 16,384 characters is cut. */
export const failure = (code: FailureCode, message: string): Failure => ({
  code,
  message: cutText(storableText(message), MESSAGE_MAX_LENGTH),
});

/** Of a session that was starting when a backup was made, in the restored copy. The original goes on with it. */
export const STARTED_ELSEWHERE = failure(
  "sandbox_lost",
  "The session was starting when the backup of this restored copy was made. It goes on in the original, if that still runs.",
);

/** Advice for the operator, by failure code. */
export const ADVICE: Readonly<Record<FailureCode, string>> = {
  branch_failed: "Check the repository and its credential, then restart the session.",
  environment_failed:
    "Read the build's log on the project's Environment page and fix the cause. If the fix is not a commit, build again. Then restart the session.",
  sandbox_create_failed: "Run `platform doctor` on the node. It lists what is missing to run sandboxes.",
  no_capacity:
    "Read in the message what is full. Add nodes or raise the quota, or wait until other sessions end. Then restart the session.",
  boot_timeout:
    "Read the session's log. On a slow machine, raise PLATFORM_BOOT_TIMEOUT_MS. Then restart the session.",
  clone_failed: "Read the session's log and check the repository, then restart the session.",
  runtime_failed: "Read the last lines of the agent runtime in the session's log.",
  sandbox_lost: "Find out on the node why the sandbox's processes ended, then restart the session.",
  memory_exceeded:
    "Give the agent smaller tasks, then restart the session. A sandbox can use 2 GiB of memory.",
  disk_exceeded: "Give the agent smaller tasks, then restart the session. A sandbox can use 8 GiB of disk.",
  internal_error: "Find the crash in the service's log above this line, then restart the session.",
};

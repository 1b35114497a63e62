/** What the service says of runs and of refused deliveries, in words. Codes that have none here are shown as they are. */
import type { FailureCode } from "../../src/domain/session/failure.ts";
import { modelErrorWords } from "../../src/domain/session/model-errors.ts";
import type { Answer } from "../../src/cli/contract.ts";

export type Run = Answer<"GET /v1/projects/:pid/fires">["fires"][number];

const RUN_REASONS: ReadonlyMap<string, string> = new Map([
  ["account_session_cap", "All sessions of the account were in use."],
  ["missed", "The run was due while the service could not start it, and is now too old to catch up."],
  ["paused", "The project's triggers were paused."],
  ["overlapped", "A later run of the same trigger replaced it in the queue."],
  ["filtered", "The delivery does not match the trigger's filter."],
  ["deletion", "The delivery tells of a deleted branch or tag."],
  ["own_push", "The delivery is a push to a session's own branch."],
  ["own_request", "The delivery is about a pull request that the service opened or updated."],
  ["own_comment", "The delivery is a comment of the service itself."],
  ["same_delivery", "The delivery came again. A replay runs the first one's request again."],
  ["queue_ttl", "The run waited too long for a free session."],
  ["project_archived", "The project was archived."],
  ["project_deleted", "The project was deleted."],
  ["prompt_too_large", "The rendered prompt was too large."],
  ["prompt_empty", "The prompt rendered to no text."],
  [
    "spend_limit",
    "A limit of spend was reached: of the trigger that day, or of the project or the account that month.",
  ],
  [
    "unknown_model",
    "The agent's model has a provider that does not exist, or that the agent's runtime does not speak to.",
  ],
  [
    "limit_needs_provider",
    "A limit of spend applied, but calls of models could not be counted: the project has a key of its own, or the agent uses no model provider of the account.",
  ],
]);

const REFUSAL_REASONS: ReadonlyMap<string, string> = new Map([
  ["invalid_webhook_address", "No trigger has this webhook address."],
  ["unknown_trigger", "platform.toml has no trigger with this slug."],
  ["trigger_in_error", "The trigger's entry in platform.toml, or its filter, has an error."],
  ["trigger_disabled", "The trigger is disabled."],
  ["not_a_webhook_trigger", "The trigger is not a webhook trigger."],
  ["triggers_paused", "The project's triggers are paused."],
  ["project_archived", "The project is archived."],
  ["project_deleted", "The project is deleted."],
  ["secret_not_configured", "The trigger's secret has no value."],
  ["signature_missing", "The request has no signature."],
  ["signature_malformed", "The signature must be sha256= followed by 64 hexadecimal digits."],
  ["signature_mismatched", "The signature does not match. Check that the sender uses the trigger's secret."],
  ["body_too_large", "The body is larger than 25 MiB."],
  ["body_timeout", "The body did not arrive in time."],
  ["malformed_request", "The request ended before its body was complete."],
  ["queue_full", "The account's queue was full."],
  ["busy", "The service was busy."],
  ["database_unavailable", "The database could not be reached."],
]);

/** Whether a run's reason is a code, of which there are words. */
export const isReasonCode = (reason: string): boolean => RUN_REASONS.has(reason);

/** @param reason a code, or a text of the service */
export const runReason = (reason: string): string => RUN_REASONS.get(reason) ?? reason;

export const refusalReason = (code: string): string => REFUSAL_REASONS.get(code) ?? code;

const KINDS: Readonly<Record<Run["kind"], string>> = {
  cron: "on its schedule",
  webhook: "by a webhook",
  manual: "by hand",
  session: "by a person",
};

/** What started the run. */
export const runStart = ({ kind, started_by: person, replay_of: former }: Run): string => {
  if (former !== null) return "replay of an earlier run";
  return person === null ? KINDS[kind] : `${KINDS[kind]}, ${person}`;
};

const FAILURES: Readonly<Record<FailureCode, string>> = {
  branch_failed: "its branch could not be made",
  environment_failed: "its environment could not be built",
  sandbox_create_failed: "its sandbox could not be made",
  no_capacity: "no node had room",
  boot_timeout: "its sandbox took too long to start",
  clone_failed: "the repository could not be cloned",
  runtime_failed: "the agent's program did not start, or ended",
  sandbox_lost: "its sandbox was lost",
  memory_exceeded: "its sandbox had too little memory",
  disk_exceeded: "its sandbox had too little disk",
  internal_error: "the service failed",
};

/** Why a run's session or its last turn failed. Codes without words here are those of agents. */
export const failureReason = (code: string): string => {
  const model = modelErrorWords(code);
  return model === null ? (FAILURES[code as FailureCode] ?? code) : `the model's provider ${model.did}`;
};

/** What became of a run's session; without one, of the run. */
export const runResult = ({ status, outcome }: Pick<Run, "status" | "outcome">): string =>
  outcome?.state ?? status;

/** @param result of a run */
export const resultWord = (result: string): string => (result === "fired" ? "started" : result);

/** When it was due, otherwise when it arrived. */
export const runInstant = ({ scheduled_for: due, received_at: arrived }: Run): string => due ?? arrived;

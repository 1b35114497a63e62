/** Errors that the endpoints of several groups answer with. An error of one group stands with its handlers. */
import { NO_MODEL } from "../../domain/sandbox/model.ts";
import { PROMPT_LIMIT_BYTES } from "../../domain/trigger/prompt.ts";
import type { GitError } from "../../git/port.ts";
import type { PromptFailure } from "../../store/ports/triggers/admissions.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import type { Project } from "../../store/ports/projects/projects.ts";
import { instant } from "../steps/wire.ts";
import { Conflict, Internal, TooMany, Unavailable, Unprocessable } from "../api/errors.ts";
import { quantity } from "../../domain/counted.ts";

export const databaseUnavailable = ({ isDiskFull = false }: StoreError): Unavailable =>
  new Unavailable({
    error: isDiskFull
      ? "The database's disk is full, so nothing can be stored. The operator has to free some space."
      : "The database cannot be reached. Try again in a moment.",
    code: "database_unavailable",
  });

export const sandboxAway = (): Unavailable =>
  new Unavailable({
    error: "The sandbox does not answer now. Try again in a moment.",
    code: "sandbox_away",
  });

export const capReached = ({
  limit,
  activeSessions,
}: {
  readonly limit: number;
  readonly activeSessions: number;
}) =>
  new TooMany({
    error: `The account has ${activeSessions} of ${quantity(limit, "session")} running. Stop one or wait.`,
    code: "session_cap_reached",
    details: { limit, active_sessions: activeSessions },
  });

/** The agent of a session has started as many sessions as it may. */
export const childrenFull = ({ limit }: { readonly limit: number }) =>
  new TooMany({
    error: `This session has started ${quantity(limit, "session that is", "sessions that are")} live. Stop one of them, or wait.`,
    code: "child_sessions_reached",
    details: { limit },
  });

/** The node that has a session's saved work is away. */
export const savesAway = ({ message }: GitError): Unavailable =>
  new Unavailable({
    error: `${message} Or start without the saved work, which stays: \`restore_saved\` false, \`--no-restore\`.`,
    code: "node_away",
  });

export const gitFailed = ({ code, message }: GitError): Internal | Unavailable | Conflict => {
  if (code === "away") return new Unavailable({ error: message, code: "node_away" });
  if (code === "unavailable") return new Unavailable({ error: message, code: "repository_unavailable" });
  if (code === "disk_full") return new Unavailable({ error: message, code: "disk_full" });
  if (code === "refused") return new Conflict({ error: message, code: "repository_refused" });
  return new Internal({ error: `The repository could not be read: ${message}`, code: "repository_failed" });
};

/** A branch that was removed leaves its change request or its session, with nothing to show. */
export const refGone = (error: GitError) =>
  error.code === "unknown_ref"
    ? new Conflict({ error: `The branches cannot be compared: ${error.message}`, code: "ref_gone" })
    : gitFailed(error);

/** The project starts nothing. */
export const projectInactive = ({ deletesAt }: Pick<Project, "deletesAt">) =>
  new Conflict({
    error:
      deletesAt === null
        ? "The project is archived. Reactivate it first, in its settings or by its `status`."
        : `The project is deleted, and will be gone at ${instant(deletesAt)}. An owner can restore it until then.`,
    code: "project_not_active",
  });

/** A session whose runtime has no conversation. */
export const takesNoMessages = () =>
  new Conflict({ error: "The runtime of the session's agent takes no messages.", code: "not_supported" });

export const promptTooLarge = (): Internal =>
  new Internal({
    error: `The rendered prompt is larger than ${PROMPT_LIMIT_BYTES} bytes.`,
    code: "prompt_too_large",
    details: { limit_bytes: PROMPT_LIMIT_BYTES },
  });

/** A limit of spend applies to a session whose calls could not be counted. */
export const limitNeedsProvider = (message: string): Unprocessable =>
  new Unprocessable({ error: message, code: "limit_needs_provider" });

/** No provider that a session can use has its model. */
export const unknownModel = (message: string): Unprocessable =>
  new Unprocessable({ error: message, code: "unknown_model" });

/** A limit of spend is reached, so that a fire starts nothing. */
export const spendLimitReached = (): Unprocessable =>
  new Unprocessable({
    error:
      "A limit of spend is reached: of the trigger today, or of the project or the account this month. Raise it first. `platform limits` shows them.",
    code: "spend_limit",
  });

/** The answer to a fire that left a failed row. */
export const fireFailed = (reason: PromptFailure): Internal | Unprocessable => {
  if (reason === "no_model") return new Unprocessable({ error: NO_MODEL, code: "no_model" });
  if (reason === "prompt_empty")
    return new Unprocessable({
      error:
        "The prompt of this trigger rendered to no text, so there is nothing to tell an agent. Add words of its own to it.",
      code: "prompt_empty",
    });
  if (reason === "unknown_model")
    return unknownModel(
      "The agent of this trigger has a model of a provider that its session cannot use. `platform sessions agents` names the problem.",
    );
  return reason === "limit_needs_provider"
    ? limitNeedsProvider(
        "A limit of spend applies to this trigger, but its calls of models could not be counted: the project has a key of its own, or the agent uses no model provider of the account.",
      )
    : promptTooLarge();
};

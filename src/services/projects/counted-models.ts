/** Refuses sessions to which a limit of spend applies, but whose calls of models could not be counted (domain/sandbox/uncounted.ts). */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type { Agent } from "../../domain/agents/agents.ts";
import { deliveredNames } from "../../domain/manifest/required-secrets.ts";
import { providerKeys, uncountedReason } from "../../domain/sandbox/uncounted.ts";
import { Secrets } from "../../store/ports/projects/secrets.ts";
import { credentialOwner } from "../connectors/own-credentials.ts";
import { AccountModels } from "./account-models.ts";
import { AccountSpend } from "./account-spend.ts";
import { knownAgent } from "./agents.ts";
import type { LimitedSession } from "../../domain/sandbox/spend.ts";
import { OwnSubscriptions } from "./own-subscriptions.ts";
import { configuresModel, ModelPolicy } from "./models.ts";

/** api.md 3: 422 `limit_needs_provider`. The message says what to do. */
export class LimitNeedsProvider extends Schema.TaggedError<LimitNeedsProvider>()("LimitNeedsProvider", {
  message: Schema.String,
}) {}

interface Calling {
  readonly agent: Agent;
  /** The session's own choice. */
  readonly agentModel: string | null;
  /** Where the repository's configuration is read. Null if it has no commit. */
  readonly commit: string | null;
  /** Whose own providers the session may use. */
  readonly personId: string | null;
  /** The names of the secrets that its sandbox has. Absent: those that it would get now. */
  readonly secretNames?: readonly string[];
}

/** Why a session's calls could not be counted, in a sentence, whether a limit applies to it or not. Null if they are. */
export const countingFault = Effect.fnUntraced(function* (
  { accountId, projectId }: Pick<LimitedSession, "accountId" | "projectId">,
  { agent, agentModel, commit, personId, secretNames }: Calling,
) {
  // Simulated sandboxes run no model.
  if (!(yield* ModelPolicy).required) return null;
  return uncountedReason({
    agent,
    agentModel,
    secretNames: secretNames ?? deliveredNames((yield* (yield* Secrets).list(projectId)).secrets),
    providers: yield* (yield* AccountModels)({ accountId, projectId, personId }),
    kept: yield* (yield* OwnSubscriptions).kept(accountId, personId),
    bringsModel: commit !== null && (yield* configuresModel({ projectId }, commit)),
  });
});

/** Fails if the session's calls could not be counted. */
export const requireCountable = Effect.fnUntraced(function* (
  session: Pick<LimitedSession, "accountId" | "projectId">,
  calling: Calling,
) {
  const reason = yield* countingFault(session, calling);
  if (reason !== null) return yield* new LimitNeedsProvider({ message: reason });
});

/** The same, if a limit applies. */
export const requireCounted = Effect.fnUntraced(function* (session: LimitedSession, calling: Calling) {
  const { standing } = yield* AccountSpend;
  if ((yield* standing(session)).applies) yield* requireCountable(session, calling);
});

/** A session's record, or the one that a waiting fire would make. */
interface RecordedSession extends LimitedSession {
  readonly origin: "session" | "trigger";
  readonly agentName: string;
  readonly agentModel: string | null;
  readonly baseCommit: string | null;
}

/** What decides how a session of a record calls models. Null if its agent's table has an error, which its start says. */
export const callingSession = Effect.fnUntraced(function* (session: RecordedSession) {
  const agent = yield* Effect.option(knownAgent(session.projectId, session.agentName));
  if (agent._tag === "None") return null;
  const { agentModel, baseCommit: commit } = session;
  return { agent: agent.value, agentModel, commit, personId: yield* credentialOwner(session) };
});

/**
 * The secrets among these that a running session does not get: keys of providers, if a limit of spend applies to it. They would make its
 * calls uncounted.
 */
export const withheldKeys = Effect.fnUntraced(function* (
  session: LimitedSession & { readonly agentName: string },
  names: readonly string[],
) {
  const agent = yield* Effect.option(knownAgent(session.projectId, session.agentName));
  if (!(yield* ModelPolicy).required) return [];
  // An agent whose table has an error now still runs.
  const keys = providerKeys(names, agent._tag === "Some" ? agent.value.runtime : { providers: null });
  return keys.length > 0 && (yield* (yield* AccountSpend).standing(session)).applies ? keys : [];
});

/**
 * `POST /v1/repository-checks` and `POST /v1/projects/{pid}/repository/check`: whether the service could work with a
 * repository at another server, step by step. The last step of an existing project is its webhook.
 */
import * as Effect from "effect/Effect";
import type { Connection, ConnectionStep } from "../../../domain/repository/connection.ts";
import type { RepositoryRequest, RepositorySource } from "../../../domain/repository/repository.ts";
import { repositorySource } from "../../../domain/repository/repository.ts";
import type { RepositoryCredential } from "../../../domain/repository/repository-credential.ts";
import { Manifests } from "../../../services/projects/manifests.ts";
import { Connections } from "../../../git/connection.ts";
import { Fires } from "../../../store/ports/triggers/fires.ts";
import type { Project } from "../../../store/ports/projects/projects.ts";
import { Sessions } from "../../../store/ports/sessions/sessions.ts";
import { WebhookRefusals } from "../../../store/ports/triggers/webhook-refusals.ts";
import { Caller } from "../../api/access.ts";
import { Conflict } from "../../api/errors.ts";
import { gitFailed } from "../../answers/refusals.ts";
import { projectFor } from "../answers.ts";
import { instant } from "../wire.ts";

type Step = Omit<ConnectionStep, "step"> & { readonly step: ConnectionStep["step"] | "webhook" };

const connectionWire = ({ steps, defaultBranch }: Connection, more: readonly Step[] = []) => ({
  usable: steps.length > 0 && steps.every(({ outcome }) => outcome !== "failed"),
  default_branch: defaultBranch,
  steps: [...steps, ...more],
});

/** How an import's source or another server is reached. Null if the repository is created here, so that nothing has to be reached. */
const toUpstream = (
  request: RepositoryRequest,
  source: RepositorySource,
  credential: RepositoryCredential | null,
) => {
  if (source.kind !== "hosted") return { source, credential };
  const from = request.kind === "hosted" ? request.import_from : undefined;
  return from === undefined || from.startsWith("/")
    ? null
    : { source: { kind: "git" as const, url: from }, credential: null };
};

/** Checks a repository before it gets a project. */
export const checkRepository = Effect.fnUntraced(function* (
  request: RepositoryRequest,
  credential: RepositoryCredential | null,
  branch: string | null,
) {
  const upstream = toUpstream(request, repositorySource(request), credential);
  if (upstream === null) return { usable: true, default_branch: branch, steps: [] };
  const connection = yield* (yield* Connections).check(upstream, branch);
  // A copy is never pushed to its source.
  const isCopy = request.kind === "hosted";
  return connectionWire(
    isCopy ? { ...connection, steps: connection.steps.filter(({ step }) => step !== "push") } : connection,
  );
});

/** The newest rows that are looked at. A person's test is among them. */
const NEWEST = { limit: 20, cursor: null };

const isOpen = ({ step, outcome }: ConnectionStep): boolean => step === "push" && outcome === "unknown";

/**
 * At a server whose answer shows only at a push: whether it has taken one. The branch of a session is pushed before its
 * sandbox starts.
 */
const withPush = Effect.fnUntraced(function* (project: Project, connection: Connection) {
  if (!connection.steps.some(isOpen)) return connection;
  const { items } = yield* (yield* Sessions).list(project.id, { ...NEWEST, status: null });
  const session = items.find(({ runningAt }) => runningAt !== null);
  if (session === undefined) return connection;
  const message = `The server took the branch of a session that was started at ${instant(session.createdAt)}.`;
  const passedStep = { step: "push", outcome: "passed", message, advice: null } as const;
  return { ...connection, steps: connection.steps.map((one) => (isOpen(one) ? passedStep : one)) };
});

/** Whether deliveries arrive. No step if no trigger waits for one. */
const webhookStep = Effect.fnUntraced(function* (project: Project) {
  const { triggers } = yield* (yield* Manifests).current(project);
  const slugs = triggers.filter(({ type, enabled }) => type === "webhook" && enabled).map(({ slug }) => slug);
  if (slugs.length === 0) return [];
  const { items: fires } = yield* (yield* Fires).list(project.id, { ...NEWEST, slug: null, status: null });
  const { items: refusals } = yield* (yield* WebhookRefusals).list(project.id, { ...NEWEST, limit: 1 });
  const delivery = fires.find(({ kind }) => kind === "webhook");
  const [refused] = refusals;
  const step = "webhook" as const;
  const result: Step =
    refused !== undefined && refused.at > (delivery?.receivedAt ?? 0)
      ? {
          step,
          outcome: "failed",
          message: `The newest delivery, at ${instant(refused.at)}, was refused: ${refused.reason.replaceAll("_", " ")}.`,
          advice: "The project's refused deliveries say why. Correct the sender, and let it send again.",
        }
      : delivery === undefined
        ? {
            step,
            outcome: "unknown",
            message: `No delivery has arrived for ${slugs.join(", ")}.`,
            advice:
              "Set up the webhook on GitHub as the trigger's page says. GitHub's page of the webhook can send a delivery again.",
          }
        : {
            step,
            outcome: "passed",
            message: `A delivery for ${delivery.triggerSlug} arrived at ${instant(delivery.receivedAt)}.`,
            advice: null,
          };
  return [result];
});

/** Checks the repository of a project with its stored credential. */
export const checkConnection = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const { ofProject } = yield* Connections;
  const connection = yield* Effect.catchTag(ofProject({ projectId: project.id }), "GitError", (error) =>
    gitFailed(error),
  );
  if (connection === null)
    return yield* new Conflict({
      error: "The service hosts this repository. There is no other server to check.",
      code: "repository_hosted",
    });
  return connectionWire(yield* withPush(project, connection), yield* webhookStep(project));
});

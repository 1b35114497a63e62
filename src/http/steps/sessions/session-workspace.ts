/** A session's workspace while it runs: what has changed, the diff, directories and files. Reading them does not count as activity. */
import * as Effect from "effect/Effect";
import { DaemonClient, type WorkspaceRefusal, type WorkspaceRefused } from "../../../sandbox/daemon.ts";
import { SandboxProvider } from "../../../sandbox/port.ts";
import { withLink } from "../../../services/answered.ts";
import { serviceContext } from "../../../services/sessions/service-context.ts";
import { Sandboxes } from "../../../store/ports/sessions/sandboxes.ts";
import type { Session } from "../../../store/ports/sessions/sessions.ts";
import { Caller } from "../../api/access.ts";
import { Conflict, GatewayTimeout, notFound, Unavailable } from "../../api/errors.ts";
import { sandboxAway } from "../../answers/refusals.ts";
import { sessionFor } from "../answers.ts";
import { workspaceSides, type SessionPath } from "./session-changes.ts";

const REFUSALS: Readonly<
  Record<WorkspaceRefusal, () => Conflict | GatewayTimeout | Unavailable | ReturnType<typeof notFound>>
> = {
  not_found: () => notFound("path"),
  path_unreadable: () =>
    new Conflict({
      error:
        "The path cannot be read: it is a link, leads through one, is no file and no directory, or is closed to the agent.",
      code: "path_unreadable",
    }),
  workspace_busy: () =>
    new Unavailable({
      error: "Too many calls read this workspace now. Try again in a moment.",
      code: "workspace_busy",
    }),
  workspace_slow: () =>
    new GatewayTimeout({
      error:
        "Reading the workspace took longer than 15 seconds, and was stopped. It may have very many or very large files.",
      code: "workspace_slow",
    }),
  workspace_too_large: () =>
    new Conflict({
      error: "Too many files have changed to list them. Add generated files to .gitignore.",
      code: "workspace_too_large",
    }),
  workspace_unreadable: () =>
    new Conflict({
      error: "Git cannot read the repository in the workspace. The agent may have changed or removed it.",
      code: "workspace_unreadable",
    }),
  runtime_not_ready: () => sandboxAway(),
};

/** Says where the work of a session without a sandbox is. */
const notRunning = ({ id, saved }: Session) => {
  const wip = saved?.wip != null || saved?.node != null ? ` Unpushed work was saved as refs/wip/${id}.` : "";
  return new Conflict({
    error: `The session is not running, so it has no workspace. Pushed work is on its branch ${id}.${wip}`,
    code: "session_not_running",
  });
};

/** The running session's daemon. */
const findDaemon = Effect.fnUntraced(function* (params: SessionPath) {
  const session = yield* sessionFor(yield* Caller, params);
  const sandbox = yield* (yield* Sandboxes).newest(session.id);
  if (session.status !== "running" || sandbox?.status !== "active") return yield* notRunning(session);
  const { workspace } = yield* DaemonClient;
  const link = yield* withLink(yield* SandboxProvider, sandbox.id);
  const context = yield* (yield* serviceContext)(sandbox.id, session.id);
  return { workspace, link, context };
});

const refuse = ({ code }: WorkspaceRefused) => Effect.fail(REFUSALS[code]());

const compareLive = Effect.fnUntraced(function* (params: SessionPath) {
  const daemon = yield* findDaemon(params);
  const sides = yield* workspaceSides(params);
  if (sides === null) return yield* REFUSALS.workspace_unreadable();
  return { ...daemon, sides };
});

const FAULTS = {
  WorkspaceRefused: refuse,
  DaemonUnreachable: () => Effect.fail(sandboxAway()),
  SandboxError: () => Effect.fail(sandboxAway()),
};

/** `GET …/sessions/{sid}/workspace/changes` */
export const readWorkspaceChanges = Effect.fnUntraced(function* (params: SessionPath) {
  const { workspace, link, context, sides } = yield* compareLive(params);
  return yield* workspace.changes(link, context, sides);
}, Effect.catchTags(FAULTS));

/** `GET …/sessions/{sid}/workspace/diff`, of one file if `query` names its path. */
export const readWorkspaceDiff = Effect.fnUntraced(function* (
  params: SessionPath,
  { path = null }: { readonly path?: string | null },
) {
  const { workspace, link, context, sides } = yield* compareLive(params);
  return yield* workspace.diff(link, context, { ...sides, path });
}, Effect.catchTags(FAULTS));

/** `GET …/sessions/{sid}/workspace/files`: a directory, or a file. */
export const readWorkspaceFiles = Effect.fnUntraced(function* (
  params: SessionPath,
  { path = "" }: { readonly path?: string },
) {
  const { workspace, link, context } = yield* findDaemon(params);
  return yield* workspace.files(link, context, path);
}, Effect.catchTags(FAULTS));

/** How a project is deleted, and how a deleted one comes back. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { deletionAt } from "../../../domain/project/deletion.ts";
import { stopDeleted } from "../../../duties/deletions.ts";
import { withAudit } from "../../../services/audit.ts";
import { Directory } from "../../../services/directory.ts";
import { Manifests } from "../../../services/projects/manifests.ts";
import { ProjectDeletions } from "../../../store/ports/projects/project-deletions.ts";
import { Caller } from "../../api/access.ts";
import { Conflict, notFound } from "../../api/errors.ts";
import { projectFor } from "../answers.ts";
import { instant, projectWire } from "../wire.ts";

/** Deletes the project, and has its sessions stop. One that is deleted keeps its instant. */
export const deleteProject = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const now = yield* Clock.currentTimeMillis;
  const deletesAt = deletionAt(project, now);
  const result = yield* (yield* ProjectDeletions).begin(pid, { now, deletesAt }).pipe(
    withAudit((change) =>
      change?.deletesAt === deletesAt && project.status !== "deleted"
        ? {
            action: "project.deleted",
            target: pid,
            changes: { name: project.name, deletes_at: instant(deletesAt) },
          }
        : null,
    ),
  );
  if (result === null) return yield* notFound("project");
  yield* (yield* Directory).refresh(pid);
  yield* stopDeleted;
  return projectWire(result);
});

const notDeleted = () => new Conflict({ error: "The project is not deleted.", code: "not_deleted" });

const isGoing = () =>
  new Conflict({
    error: "The project can no longer be restored: it is being removed.",
    code: "being_removed",
  });

/** Makes a deleted project what it was before. */
export const restoreProject = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const now = yield* Clock.currentTimeMillis;
  const result = yield* (yield* ProjectDeletions).restore(pid, now).pipe(
    withAudit((change) =>
      change === null
        ? null
        : {
            action: "project.restored",
            target: pid,
            changes: { name: change.name, status: change.status },
          },
    ),
  );
  if (result === null) return yield* project.status === "deleted" ? isGoing() : notDeleted();
  yield* (yield* Manifests).sync(result);
  return projectWire(result);
});

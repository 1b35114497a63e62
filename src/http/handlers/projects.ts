/** Handlers of api/projects.ts. */
import { realpath } from "node:fs/promises";
import path from "node:path";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import { withAudit, auditedChange, unlessSame } from "../../services/audit.ts";
import { newUuid } from "../../services/entropy.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { Creations } from "../../duties/unclaimed.ts";
import { parseDefaultBranch } from "../../domain/repository/git-ref.ts";
import {
  parseImportSource,
  repositorySource,
  type RepositoryRequest,
} from "../../domain/repository/repository.ts";
import { requestedCredential } from "../../domain/repository/repository-credential.ts";
import { GitBackend, type GitError } from "../../git/port.ts";
import type { Taken } from "../../store/ports/errors.ts";
import { Projects, type Project } from "../../store/ports/projects/projects.ts";
import { Caller } from "../api/access.ts";
import { BadRequest, badRequest, Conflict, Forbidden, notFound, Unprocessable } from "../api/errors.ts";
import { withApiErrors, projectFor, projectPage } from "../steps/answers.ts";
import { ImportPolicy } from "../limits.ts";
import { deleteProject, restoreProject } from "../steps/projects/deleting.ts";
import { projectPaths } from "../steps/projects/project-paths.ts";
import { projectSetup } from "../steps/projects/project-setup.ts";
import { listSessionOptions } from "../steps/sessions/session-options.ts";
import { projectUsage } from "../steps/projects/project-usage.ts";
import { checkConnection, checkRepository } from "../steps/projects/repository-check.ts";
import {
  removeCredential,
  replaceCredential,
  sealedCredential,
} from "../steps/projects/repository-credential.ts";
import { gitFailed, projectInactive } from "../answers/refusals.ts";
import { triggerListing } from "../steps/projects/trigger-listing.ts";
import { projectWire } from "../steps/wire.ts";
import {
  type CheckRepository,
  type CreateProject,
  type PatchProject,
  ProjectsGroup,
} from "../api/projects.ts";
import { Platform } from "../api/platform.ts";

const create = Effect.fnUntraced(function* (request: typeof CreateProject.Type) {
  const caller = yield* Caller;
  const { repository } = request;
  const defaultBranch = yield* checkedBranch(request.default_branch ?? null);
  const importFrom =
    repository.kind === "hosted" ? yield* checkedImport(repository.import_from ?? null) : null;
  const credential = yield* checkedCredential(repository);
  const id = yield* newUuid;
  const source = repositorySource(repository);
  const external = source.kind === "hosted" ? {} : { upstream: { source, credential } };
  const git = yield* GitBackend;
  const making = Effect.gen(function* () {
    const creation = yield* git
      .create({ projectId: id, importFrom, defaultBranch, ...external })
      .pipe(Effect.catchTag("GitError", (error) => Effect.fail(notMade(error))));
    const sealed = credential === null ? {} : { credential: yield* sealedCredential(id, credential) };
    const now = yield* Clock.currentTimeMillis;
    const project = (yield* Projects).create({
      id,
      accountId: caller.accountId,
      name: request.name,
      repository: source,
      defaultBranch: creation.defaultBranch,
      ...(creation.nodeId === undefined ? {} : { nodeId: creation.nodeId }),
      createdBy: caller.user.id,
      isGranted: caller.accountRole !== "owner",
      now,
      ...sealed,
    });
    const changes = { name: request.name, repository: source.kind, default_branch: creation.defaultBranch };
    const row = { action: "project.created", target: id, projectId: id, changes } as const;
    return yield* project.pipe(
      withAudit(() => row),
      Effect.catchTag("Taken", nameTaken),
    );
  });
  const project = yield* (yield* Creations).during(id, making);
  yield* (yield* Manifests).sync(project);
  const read = yield* (yield* Projects).get(id);
  return projectWire(read ?? project);
});

const check = Effect.fnUntraced(function* ({ repository, default_branch }: typeof CheckRepository.Type) {
  const branch = yield* checkedBranch(default_branch ?? null);
  if (repository.kind === "hosted") yield* checkedImport(repository.import_from ?? null);
  return yield* checkRepository(repository, yield* checkedCredential(repository), branch);
});

const notMade = (failure: GitError) => {
  const { code, message } = failure;
  if (code === "disk_full") return gitFailed(failure);
  const errorCode = code === "unavailable" || code === "refused" ? `repository_${code}` : "import_failed";
  return new Unprocessable({
    error: `The repository could not be created: ${message}`,
    code: code === "reserved_branch" ? code : errorCode,
  });
};

const checkedCredential = Effect.fnUntraced(function* (repository: RepositoryRequest) {
  const { allowHosts } = yield* ImportPolicy;
  const credential = requestedCredential(repository, new Set(allowHosts));
  return Result.isSuccess(credential)
    ? credential.success
    : yield* badRequest(`repository.${credential.failure.path}`, credential.failure.message);
});

const checkedBranch = (name: string | null) => {
  if (name === null) return Effect.succeed(null);
  const branch = parseDefaultBranch(name);
  if (Result.isSuccess(branch)) return Effect.succeed(branch.success);
  const { code, message } = branch.failure;
  return Effect.fail(
    code === "session_branch"
      ? new Unprocessable({ error: message, code: "reserved_branch" })
      : badRequest("default_branch", message),
  );
};

/** A local path is accepted only below PLATFORM_IMPORT_ROOTS, by its real path, and never from the data directory. */
const checkedImport = Effect.fnUntraced(function* (value: string | null) {
  if (value === null) return null;
  const policy = yield* ImportPolicy;
  const source = parseImportSource(value, new Set(policy.allowHosts));
  if (Result.isFailure(source)) return yield* badRequest("repository.import_from", source.failure);
  if (source.success.kind === "url") return source.success.url.href;
  if (policy.roots.length === 0) {
    return yield* new BadRequest({
      error:
        "Imports of local paths are disabled. The operator can allow directories with PLATFORM_IMPORT_ROOTS.",
      code: "local_import_disabled",
    });
  }
  const wish = source.success.path;
  const real = yield* Effect.tryPromise(() => realpath(wish)).pipe(Effect.orElseSucceed(() => null));
  const roots = yield* Effect.forEach(policy.roots, (root) =>
    Effect.tryPromise(() => realpath(root)).pipe(Effect.orElseSucceed(() => root)),
  );
  const place = real ?? (yield* Effect.promise(() => nearestReal(wish)));
  if (!roots.some((root) => isBelow(place, root)) || isBelow(place, policy.dataDir)) {
    return yield* badRequest(
      "repository.import_from",
      "The operator has not allowed this directory. PLATFORM_IMPORT_ROOTS lists those that are allowed.",
    );
  }
  // A missing directory is named only below places that the operator has allowed.
  if (real === null)
    return yield* badRequest(
      "repository.import_from",
      "names no directory that the service can read on its machine",
    );
  return real;
});

const isBelow = (file: string, directory: string): boolean => {
  const relative = path.relative(directory, file);
  return relative === "" || (!relative.startsWith("..") && !path.isAbsolute(relative));
};

/** The real path of the nearest directory above that exists. */
const nearestReal = async (file: string): Promise<string> => {
  const above = path.dirname(file);
  return realpath(above).catch(() => nearestReal(above));
};

/** The account has a project of this name. One that is deleted keeps its name until it is gone. */
const nameTaken = ({ what }: Taken) =>
  Effect.fail(
    new Conflict({
      error: `The account has a project with the name ${JSON.stringify(what)} already, which may be archived or deleted. Choose another name.`,
      code: "name_taken",
    }),
  );

/** What people set, by the names of the API. */
const projectSettings = (project: Project) => ({
  name: project.name,
  status: project.status,
  triggers_paused: project.triggersPaused,
  default_branch: project.defaultBranch,
  default_role: project.defaultRole,
  merge_role: project.mergeRole,
  approvals_required: project.approvalsRequired,
});

export const update = Effect.fnUntraced(function* (pid: string, patch: typeof PatchProject.Type) {
  const caller = yield* Caller;
  const project = yield* projectFor(caller, pid);
  if (patch.status !== undefined && project.status === "deleted") return yield* projectInactive(project);
  if (patch.default_branch !== undefined)
    yield* moveDefaultBranch(caller.projectId, project.id, patch.default_branch);
  const change = {
    ...(patch.name === undefined ? {} : { name: patch.name }),
    ...(patch.status === undefined ? {} : { status: patch.status }),
    ...(patch.triggers_paused === undefined ? {} : { triggersPaused: patch.triggers_paused }),
    ...(patch.default_branch === undefined ? {} : { defaultBranch: patch.default_branch }),
    ...(patch.default_role === undefined ? {} : { defaultRole: patch.default_role }),
    ...(patch.merge_role === undefined ? {} : { mergeRole: patch.merge_role }),
    ...(patch.approvals_required === undefined ? {} : { approvalsRequired: patch.approvals_required }),
  };
  const projects = yield* Projects;
  const result = yield* projects.update(project.id, change, yield* Clock.currentTimeMillis).pipe(
    auditedChange({
      target: project.id,
      read: Effect.map(projects.get(project.id), (row) => row && projectSettings(row)),
      say: (changes) => unlessSame({ action: "project.updated", target: project.id, changes }),
    }),
    Effect.catchTag("Taken", nameTaken),
  );
  if (result === null) return yield* notFound("project");
  yield* (yield* Manifests).sync(result);
  return projectWire(result);
});

/** The default branch is protected from pushes, so only an account-wide token may change it (api.md 2). */
const moveDefaultBranch = Effect.fnUntraced(function* (
  boundTo: string | null,
  projectId: string,
  name: string,
) {
  if (boundTo !== null) {
    return yield* new Forbidden({
      error: "Only an account-wide token can change the default branch.",
      code: "forbidden",
    });
  }
  const branch = yield* checkedBranch(name);
  const git = yield* GitBackend;
  yield* git
    .setDefaultBranch({ projectId }, branch ?? name)
    .pipe(
      Effect.catchTag("GitError", (error) =>
        Effect.fail(
          error.code === "away" || error.code === "disk_full"
            ? gitFailed(error)
            : new Unprocessable({ error: error.message, code: "unknown_branch" }),
        ),
      ),
    );
});

export const projectsHandlers = HttpApiBuilder.group(Platform.add(ProjectsGroup), "projects", (handlers) =>
  handlers
    .handle("list", ({ query }) =>
      withApiErrors(
        Effect.gen(function* () {
          const { items, nextCursor } = yield* projectPage(yield* Caller, query);
          return { projects: items.map(projectWire), next_cursor: nextCursor };
        }),
      ),
    )
    .handle("create", ({ payload }) => withApiErrors(create(payload)))
    .handle("get", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          return projectWire(yield* projectFor(yield* Caller, params.pid));
        }),
      ),
    )
    .handle("setup", ({ params }) => withApiErrors(projectSetup(params.pid)))
    .handle("sessionOptions", ({ params }) => withApiErrors(listSessionOptions(params.pid)))
    .handle("paths", ({ params, query }) => withApiErrors(projectPaths(params.pid, query)))
    .handle("usage", ({ params, query }) => withApiErrors(projectUsage(params.pid, query)))
    .handle("checkRepository", ({ payload }) => withApiErrors(check(payload)))
    .handle("checkConnection", ({ params }) => withApiErrors(checkConnection(params.pid)))
    .handle("update", ({ params, payload }) => withApiErrors(update(params.pid, payload)))
    .handle("delete", ({ params }) => withApiErrors(deleteProject(params.pid)))
    .handle("restore", ({ params }) => withApiErrors(restoreProject(params.pid)))
    .handle("replaceCredential", ({ params, payload }) =>
      withApiErrors(replaceCredential(params.pid, payload)),
    )
    .handle("removeCredential", ({ params }) => withApiErrors(removeCredential(params.pid)))
    .handle("sync", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          const project = yield* projectFor(yield* Caller, params.pid);
          yield* (yield* Manifests).sync(project);
          return yield* triggerListing(project);
        }),
      ),
    ),
);

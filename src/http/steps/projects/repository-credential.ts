/**
 * Seals, replaces and removes the credential of a project's repository at another server. A new one replaces the former
 * only after the server has accepted it. Backends read it for each use, on every node, so it is in force as soon as the
 * answer is sent. No answer, log or error contains any part of either (threats.md S06).
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { withAudit } from "../../../services/audit.ts";
import { Entropy } from "../../../services/entropy.ts";
import { Keyring } from "../../../services/keyring.ts";
import { Manifests } from "../../../services/projects/manifests.ts";
import type { CredentialRequest } from "../../../domain/repository/repository.ts";
import {
  credentialPlace,
  encodeCredential,
  type ExternalSource,
  opensWithout,
  replacingCredential,
  type RepositoryCredential,
} from "../../../domain/repository/repository-credential.ts";
import { NONCE_BYTES, sealSecret } from "../../../domain/secret/secret.ts";
import { GitBackend, type GitError } from "../../../git/port.ts";
import { Projects, type Project } from "../../../store/ports/projects/projects.ts";
import { Caller } from "../../api/access.ts";
import { badRequest, Conflict, notFound, Unprocessable } from "../../api/errors.ts";
import { projectFor } from "../answers.ts";
import { ImportPolicy } from "../../limits.ts";
import { projectWire } from "../wire.ts";

/** Sealed for the database, like project secrets (api.md 5). */
export const sealedCredential = Effect.fnUntraced(function* (
  projectId: string,
  credential: RepositoryCredential,
) {
  const keyring = yield* Keyring;
  const entropy = yield* Entropy;
  const value = encodeCredential(credential);
  return sealSecret(keyring.secrets, credentialPlace(projectId), { value, nonce: entropy(NONCE_BYTES) });
});

/** The caller's project, and the server of its repository. */
const externalProject = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const source = project.repository;
  if (source.kind !== "hosted") return { project, source };
  return yield* new Conflict({
    error: "This service hosts the project's repository. It needs no repository credential.",
    code: "repository_hosted",
  });
});

const notTaken = ({ code, message }: GitError): Unprocessable => {
  const errorCode = code === "unavailable" || code === "refused" ? `repository_${code}` : "repository_failed";
  return new Unprocessable({
    error: `The repository credential was not changed: ${message}`,
    code: errorCode,
  });
};

/** Replaces the former credential, once the server accepts the new one. Null means anonymous access. */
const put = Effect.fnUntraced(function* (
  project: Project,
  source: ExternalSource,
  credential: RepositoryCredential | null,
) {
  const git = yield* GitBackend;
  yield* git
    .checkUpstream({ source, credential })
    .pipe(Effect.catchTag("GitError", (error) => Effect.fail(notTaken(error))));
  const sealed = credential === null ? null : yield* sealedCredential(project.id, credential);
  const projects = yield* Projects;
  const action = credential === null ? "project.credential_removed" : "project.credential_set";
  const row = { action, target: project.id, changes: { kind: credential?.kind ?? "none" } } as const;
  const change = yield* projects
    .replaceCredential(project.id, sealed, yield* Clock.currentTimeMillis)
    .pipe(withAudit((result) => (result === null ? null : row)));
  if (change === null) return yield* notFound("project");
  const { user } = yield* Caller;
  yield* Effect.logInfo("a repository's credential was replaced", {
    project: project.id,
    by: user.id,
    kind: credential?.kind ?? "none",
  });
  // If the manifest could not be read with the former credential, it is read and in force before the answer.
  yield* (yield* Manifests).sync(change);
  return (yield* projects.get(project.id)) ?? change;
});

export const replaceCredential = Effect.fnUntraced(function* (pid: string, request: CredentialRequest) {
  const { project, source } = yield* externalProject(pid);
  const { allowHosts } = yield* ImportPolicy;
  const credential = replacingCredential(source, request, new Set(allowHosts));
  if (Result.isFailure(credential))
    return yield* badRequest(credential.failure.path, credential.failure.message);
  return projectWire(yield* put(project, source, credential.success));
});

export const removeCredential = Effect.fnUntraced(function* (pid: string) {
  const { project, source } = yield* externalProject(pid);
  if (!opensWithout(source)) {
    return yield* new Conflict({
      error: "This repository cannot be read without a credential. Replace the credential instead.",
      code: "credential_required",
    });
  }
  if ((yield* (yield* Projects).credential(project.id)) === null) return yield* notFound("credential");
  yield* put(project, source, null);
});

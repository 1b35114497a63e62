/** Opens the stored access to repositories at other servers, for the git backends. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import { BoundedMap } from "../../ground/bounded-map.ts";
import { credentialPlace, decodeCredential } from "../../domain/repository/repository-credential.ts";
import { unsealSecret } from "../../domain/secret/secret.ts";
import { GitError } from "../../git/port.ts";
import { type RepositoryKind, Upstreams } from "../../git/upstream/upstreams.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { Keyring } from "../keyring.ts";

/** How many kinds are kept in memory. Beyond that, they are looked up again. */
const KINDS_KEPT = 100_000;

/** A database outage is temporary, like an unavailable server. */
const away = (_: StoreError) =>
  new GitError({
    code: "unavailable",
    message: "The service could not look up the project's repository. Try again.",
  });

export const upstreamsLayer: Layer.Layer<Upstreams, never, Projects | Keyring> = Layer.effect(
  Upstreams,
  Effect.gen(function* () {
    const projects = yield* Projects;
    const keyring = yield* Keyring;
    const kinds = new BoundedMap<string, RepositoryKind>(KINDS_KEPT);

    const openEnvelope = (projectId: string, envelope: Uint8Array) => {
      const text = unsealSecret(keyring.secrets, credentialPlace(projectId), envelope);
      return Result.isSuccess(text)
        ? Effect.sync(() => decodeCredential(text.success))
        : Effect.die(
            new Error(`the repository credential of ${projectId} cannot be decrypted: ${text.failure}`),
          );
    };

    const get = (projectId: string) => Effect.mapError(projects.get(projectId), away);

    return Upstreams.of({
      kind: Effect.fnUntraced(function* (projectId: string) {
        const cachedKind = kinds.get(projectId);
        if (cachedKind !== undefined) return cachedKind;
        const project = yield* get(projectId);
        if (project === null) return null;
        kinds.set(projectId, project.repository.kind);
        return project.repository.kind;
      }),
      find: Effect.fnUntraced(function* (projectId: string) {
        const project = yield* get(projectId);
        if (project === null || project.repository.kind === "hosted") return null;
        const envelope = yield* Effect.mapError(projects.credential(projectId), away);
        const credential = envelope === null ? null : yield* openEnvelope(projectId, envelope);
        return { source: project.repository, credential, defaultBranch: project.defaultBranch };
      }),
    });
  }),
);

/**
 * Every project's manifest as it was read last, held in memory: the receiver and the listing ask no repository and no
 * database for a trigger. A manifest that does not parse leaves the last good one in force, marked stale (api.md 4).
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as RcMap from "effect/RcMap";
import * as Semaphore from "effect/Semaphore";
import { agentFile, DEFAULT_AGENT } from "../domain/agent.ts";
import { parseManifest, withAgentFiles, type Manifest, type ManifestError } from "../domain/manifest.ts";
import type { TriggerDefinition } from "../domain/trigger.ts";
import { GitBackend, type GitError, type Repository } from "../git/port.ts";
import type { StoreError } from "../store/journal.ts";
import { Projects } from "../store/port.ts";
import type { Project } from "../store/records.ts";
import { hasAgentFile, manifestText } from "./repository.ts";

export interface ReadManifest {
  readonly triggers: readonly TriggerDefinition[];
  readonly errors: readonly ManifestError[];
  readonly env: Manifest["env"];
  readonly commit: string | null;
  readonly syncedAt: number | null;
  /** The triggers are those of an earlier commit: the newest manifest does not parse. */
  readonly stale: boolean;
}

export class Manifests extends Context.Service<
  Manifests,
  {
    /** As it was read last; on first use from the last good text in the store. */
    readonly current: (project: Project) => Effect.Effect<ReadManifest, StoreError>;
    /** Reads the default branch's manifest now. What is wrong with it is in the result, not an error. */
    readonly sync: (project: Project) => Effect.Effect<ReadManifest, StoreError>;
    /** Completes when a manifest was read anew; for one waiter, the scheduler. */
    readonly changed: Effect.Effect<void>;
  }
>()("platform/actors/Manifests") {}

export const manifestsLayer: Layer.Layer<Manifests, never, Projects | GitBackend> = Layer.effect(
  Manifests,
  Effect.gen(function* () {
    const projects = yield* Projects;
    const git = yield* GitBackend;
    const held = new Map<string, ReadManifest>();
    const readings = yield* Queue.sliding<void>(1);
    /** One reading of a project at a time: a slow one would end after a newer one, and put what is old in force. */
    const turns = yield* RcMap.make({ lookup: (_projectId: string) => Semaphore.make(1) });
    const inTurn = <A, E>({ id }: Project, reading: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.scoped(Effect.flatMap(RcMap.get(turns, id), (turn) => turn.withPermit(reading)));

    const restore = Effect.fnUntraced(function* (project: Project) {
      const readMeanwhile = held.get(project.id);
      if (readMeanwhile !== undefined) return readMeanwhile;
      const stored = yield* projects.manifest(project.id);
      if (stored === null) return yield* read(project);
      const parsed = parseManifest(Buffer.from(stored.text));
      const manifest = yield* Effect.provideService(
        withKnownAgents({ projectId: project.id }, stored.commit, parsed),
        GitBackend,
        git,
      );
      const restored: ReadManifest = {
        ...manifest,
        commit: stored.commit,
        syncedAt: project.manifest.syncedAt,
        stale: project.manifest.error !== null,
        errors: project.manifest.error === null ? manifest.errors : [wholeFile(project.manifest.error)],
      };
      held.set(project.id, restored);
      return restored;
    });

    const read = Effect.fnUntraced(function* (project: Project) {
      const former = held.get(project.id);
      const now = yield* Clock.currentTimeMillis;
      const reading = yield* readNow(project).pipe(Effect.provideService(GitBackend, git));
      const { commit, text, manifest } = reading;
      const failed = manifest.fatal
        ? (manifest.errors[0] ?? wholeFile("The manifest could not be read."))
        : null;
      yield* projects.recordManifest(project.id, {
        commit,
        text: failed === null ? text : null,
        error: failed === null ? null : failed.message,
        now,
      });
      const result: ReadManifest =
        failed !== null && former !== undefined
          ? { ...former, errors: manifest.errors, syncedAt: now, stale: true }
          : { ...manifest, commit, syncedAt: now, stale: failed !== null };
      held.set(project.id, result);
      yield* Queue.offer(readings, undefined);
      return result;
    });

    return Manifests.of({
      sync: (project) => inTurn(project, read(project)),
      changed: Queue.take(readings),
      current: (project) => {
        const known = held.get(project.id);
        return known === undefined ? inTurn(project, restore(project)) : Effect.succeed(known);
      },
    });
  }),
);

const wholeFile = (message: string): ManifestError => ({
  slug: null,
  index: null,
  path: null,
  message,
  line: null,
});

const noManifest = parseManifest(new Uint8Array());

const unreadable = (message: string): Manifest => ({
  ...noManifest,
  errors: [wholeFile(message)],
  fatal: true,
});

/** The manifest at the default branch's tip, with the agents of its triggers looked up (spec 2.4 `agent`). */
const readNow = Effect.fnUntraced(function* (project: Project) {
  const git = yield* GitBackend;
  const repository = { projectId: project.id };
  const commit = yield* Effect.orElseSucceed(git.branchTip(repository, project.defaultBranch), () => null);
  if (commit === null) {
    return {
      commit,
      text: "",
      manifest: unreadable(`The repository has no branch ${project.defaultBranch}.`),
    };
  }
  const bytes = yield* Effect.result(manifestText(repository, commit));
  if (bytes._tag === "Failure") return { commit, text: "", manifest: unreadable(notReadable(bytes.failure)) };
  if (bytes.success === null) return { commit, text: "", manifest: noManifest };
  const manifest = parseManifest(bytes.success);
  const text = Buffer.from(bytes.success).toString("utf8");
  return { commit, text, manifest: yield* withKnownAgents(repository, commit, manifest) };
});

const notReadable = (error: GitError): string => `platform.toml cannot be read: ${error.message}`;

/** Moves triggers whose agent has no file to the errors. One that cannot be looked up now counts as missing. */
const withKnownAgents = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
  manifest: Manifest,
) {
  const asked = new Set(manifest.triggers.map(({ agent }) => agent));
  asked.delete(DEFAULT_AGENT);
  const found = new Set<string>();
  for (const agent of asked) {
    const path = agentFile(manifest.configDir, agent);
    if (yield* Effect.orElseSucceed(hasAgentFile(repository, commit, path), () => false)) found.add(agent);
  }
  return withAgentFiles(manifest, found);
});

/**
 * Reads manifests from repositories into the store (spec 2.4). The directory decides which manifest is in force: if a
 * manifest cannot be read, the last good one stays in force and is marked stale (api.md 4).
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as RcMap from "effect/RcMap";
import * as Result from "effect/Result";
import * as Semaphore from "effect/Semaphore";
import { needsNoFile, needsPlatformModel } from "../../domain/agents/agents.ts";
import { agentFile } from "../../domain/sandbox/agent.ts";
import { NO_CONNECTORS } from "../../domain/connector/connector.ts";
import { offeredAgents } from "../../domain/manifest/manifest-agents.ts";
import { fatalError, parseManifest } from "../../domain/manifest/manifest.ts";
import { GitBackend, type GitError, type Repository } from "../../git/port.ts";
import { Connectors } from "../../store/ports/connectors/connectors.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import {
  Projects,
  type GoodManifest,
  type ManifestFailure,
  type Project,
} from "../../store/ports/projects/projects.ts";
import { followRepository, hasRepositoryTools } from "../connectors/catalogues.ts";
import { Directory, type ReadManifest } from "../directory.ts";
import { sourceAt } from "../environments/build-sources.ts";
import { Environments } from "../environments/environments.ts";
import { ModelPolicy, repositoryBringsModel } from "./models.ts";
import { Runtimes } from "./runtimes.ts";
import { hasAgentFile, manifestText, noDefaultBranch } from "./repository.ts";
import { dutyPart } from "../duty.ts";

export class Manifests extends Context.Service<
  Manifests,
  {
    /** The last reading. If the project's manifest was never read, it is read now. */
    readonly current: (project: Project) => Effect.Effect<ReadManifest, StoreError>;
    /** Reads the default branch's manifest now. A fault in the manifest is part of the result, not an error. */
    readonly sync: (project: Project) => Effect.Effect<ReadManifest, StoreError>;
    /** Reads the manifests whose default branch has moved since the last reading. */
    readonly reconcile: Effect.Effect<void>;
  }
>()("platform/services/Manifests") {}

const NOTHING: ReadManifest = {
  triggers: [],
  errors: [],
  env: { required: [], optional: [] },
  agents: new Map(),
  executor: NO_CONNECTORS,
  warm: 0,
  commit: null,
  syncedAt: null,
  stale: false,
};

/** How long a reading waits for the tools of connectors. They go on being read, and are seen when they are. */
const TOOLS_WAIT = "2 seconds";

/** How many branch tips are asked for at a time: each is a process of git, or a request to an upstream. */
const RECONCILED_AT_ONCE = 4;

export const manifestsLayer: Layer.Layer<
  Manifests,
  never,
  Projects | GitBackend | Directory | Environments | Connectors
> = Layer.effect(
  Manifests,
  Effect.gen(function* () {
    const projects = yield* Projects;
    const git = yield* GitBackend;
    const directory = yield* Directory;
    const environments = yield* Environments;
    const services = yield* Effect.context<Connectors | GitBackend | Directory>();
    const scope = yield* Effect.scope;
    /**
     * One reading of a project at a time. Otherwise a slow reading could end after a newer one and put an old manifest
     * in force.
     */
    const turns = yield* RcMap.make({ lookup: (_projectId: string) => Semaphore.make(1) });
    const inTurn = <A, E>({ id }: Project, reading: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.scoped(Effect.flatMap(RcMap.get(turns, id), (turn) => turn.withPermit(reading)));

    /** Tools of connectors that come from the repository. A description that takes long delays no merge. */
    const followTools = Effect.fnUntraced(function* (projectId: string) {
      if (!(yield* Effect.provideContext(hasRepositoryTools(projectId), services))) return;
      const following = dutyPart("connectors", followRepository(projectId));
      const fiber = yield* Effect.forkIn(Effect.provideContext(following, services), scope);
      yield* Effect.raceFirst(Fiber.await(fiber), Effect.sleep(TOOLS_WAIT));
    });

    const read = Effect.fnUntraced(function* (project: Project) {
      const reading = yield* readNow(project).pipe(Effect.provideService(GitBackend, git));
      const now = yield* Clock.currentTimeMillis;
      yield* projects.recordManifest(project.id, { ...reading, now });
      if (reading.good !== null) yield* environments.prepare(project.id, reading.good);
      const fresh = yield* directory.refresh(project.id);
      yield* followTools(project.id);
      return fresh?.manifest ?? NOTHING;
    });
    const sync = (project: Project) => inTurn(project, read(project));

    const readBefore = ({ id }: Project): ReadManifest | null => {
      const manifest = directory.known(id)?.manifest;
      return manifest === undefined || manifest.syncedAt === null ? null : manifest;
    };

    const hasMoved = (project: Project) =>
      git.branchTip({ projectId: project.id }, project.defaultBranch).pipe(
        Effect.map((tip) => tip !== project.manifest.commit),
        // A failed question is repeated in the next round. The next reading shows the reason to people.
        Effect.orElseSucceed(() => false),
      );

    return Manifests.of({
      sync,
      current: (project) => {
        const earlier = readBefore(project);
        if (earlier !== null) return Effect.succeed(earlier);
        // The reading that this one waited for may have been the first.
        return inTurn(
          project,
          Effect.suspend(() => {
            const meanwhile = readBefore(project);
            return meanwhile === null ? read(project) : Effect.succeed(meanwhile);
          }),
        );
      },
      reconcile: Effect.suspend(() =>
        Effect.forEach(
          [...directory.all()].filter(({ project }) => project.status === "active"),
          ({ project }) =>
            // Each project by itself: if one crashes or waits for the database, the others go on.
            dutyPart(
              "manifests",
              Effect.flatMap(hasMoved(project), (hasNews) =>
                hasNews ? Effect.asVoid(sync(project)) : Effect.void,
              ),
            ),
          { concurrency: RECONCILED_AT_ONCE, discard: true },
        ),
      ),
    });
  }),
);

interface Reading {
  readonly commit: string | null;
  readonly good: GoodManifest | null;
  readonly failure: ManifestFailure | null;
}

/** Faults of a commit's manifest that never go away. */
const LASTING: ReadonlySet<GitError["code"]> = new Set(["not_a_file", "file_too_large"]);

const failedReading = (commit: string | null, message: string): Reading => ({
  commit,
  good: null,
  failure: { message, path: null, line: null },
});

/** The manifest at the default branch's tip, with the agents of its triggers looked up (spec 2.4 `agent`). */
const readNow = Effect.fnUntraced(function* (project: Project) {
  const git = yield* GitBackend;
  const repository = { projectId: project.id };
  const tip = yield* Effect.result(git.branchTip(repository, project.defaultBranch));
  if (tip._tag === "Failure") return failedReading(null, notReadable(tip.failure));
  const commit = tip.success;
  if (commit === null) return failedReading(null, noDefaultBranch(project.defaultBranch));
  return yield* Effect.catchTag(readAt(repository, commit), "GitError", (error) =>
    // A fault that may pass is read again in the next round: the commit does not count as read.
    Effect.succeed(failedReading(LASTING.has(error.code) ? commit : null, notReadable(error))),
  );
});

const readAt = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
): Effect.fn.Return<Reading, GitError, GitBackend> {
  const bytes = (yield* manifestText(repository, commit)) ?? new Uint8Array();
  const manifest = parseManifest(bytes);
  const fault = fatalError(manifest);
  if (fault !== null) {
    const { message, path, line } = fault;
    return { commit, good: null, failure: { message, path, line } };
  }
  const runtimes = yield* Runtimes;
  const { agents: own } = offeredAgents(manifest.agents, runtimes);
  const agents: string[] = [];
  for (const agent of new Set(manifest.triggers.map((trigger) => trigger.agent))) {
    if (needsNoFile(own, agent)) continue;
    if (yield* hasAgentFile(repository, commit, agentFile(manifest.configDir, agent))) agents.push(agent);
  }
  const text = Buffer.from(bytes).toString("utf8");
  const isNeeded = (yield* ModelPolicy).required && needsPlatformModel(own, runtimes);
  const brings = isNeeded ? yield* repositoryBringsModel(repository, commit, manifest.configDir) : null;
  const source = yield* sourceAt(repository, commit, manifest.environment);
  if (Result.isFailure(source)) {
    const failure = { message: source.failure, path: "environment.devcontainer", line: null };
    return { commit, good: null, failure };
  }
  const good = { commit, text, agents, bringsModel: brings, environment: source.success };
  return { commit, good, failure: null };
});

const notReadable = (error: GitError): string => `platform.toml cannot be read: ${error.message}`;

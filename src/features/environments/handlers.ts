/** Handlers of environments/api.ts. */
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { Actors } from "../../services/actors.ts";
import { type BuildFailure, describeBuildFailure } from "../../domain/environment/build-failure.ts";
import type { BuildSource, DevcontainerSource } from "../../domain/environment/environment-source.ts";
import { parseManifest } from "../../domain/manifest/manifest.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { LIVE_BUILD_STATES } from "../../machines/environment-build.ts";
import { unusedDevcontainer } from "../../services/environments/build-sources.ts";
import { Environments, environmentPlan } from "../../services/environments/environments.ts";
import { WarmPool } from "../../services/sessions/warm-pool.ts";
import { EnvironmentBases } from "../../store/ports/projects/environment-bases.ts";
import { EnvironmentBuilds, type EnvironmentBuild } from "../../store/ports/projects/environment-builds.ts";
import { WarmSandboxes } from "../../store/ports/sessions/warm-sandboxes.ts";
import { Projects, type Project } from "../../store/ports/projects/projects.ts";
import { Caller } from "../../http/api/access.ts";
import { BuildWire, EnvironmentsGroup, LOG_PIECES_DEFAULT } from "./api.ts";
import { Conflict, notFound } from "../../http/api/errors.ts";
import { ThisNode } from "../../http/limits.ts";
import { projectInactive } from "../../http/answers/refusals.ts";
import { withApiErrors, projectFor, requireProject } from "../../http/steps/answers.ts";
import { instantOrNull, pageRequest, wireForm } from "../../http/steps/wire.ts";
import { Platform } from "../../http/api/platform.ts";

/** How many images of a project are looked at for one of the Dockerfile in force (services/environments/environments.ts). */
const READY_LOOKED_AT = 5;

const LIVE: ReadonlySet<string> = new Set(LIVE_BUILD_STATES);

const failureWire = (failure: BuildFailure) => ({
  ...failure,
  message:
    failure.code === "cancelled"
      ? "The build was cancelled."
      : `The build failed: ${describeBuildFailure(failure).replace(/\.$/, "")}.`,
});

const sourceWire = ({ context, target, args, secrets = [], devcontainer, commit, key }: BuildSource) => ({
  context,
  target,
  args,
  secrets,
  devcontainer: devcontainer?.path ?? null,
  base: devcontainer?.image ?? null,
  commit,
  key,
});

/** With a setup command of platform.toml, the file's own commands have no effect. */
const devcontainerWire = (source: DevcontainerSource, hasOwnSetup: boolean) => ({
  path: source.path,
  used: true,
  problem: null,
  variables: source.variables,
  commands: hasOwnSetup ? [] : source.commands,
  ignored: hasOwnSetup ? [...source.ignored, ...source.commands] : source.ignored,
});

/** A devcontainer.json that the manifest does not name. */
const unusedWire = Effect.fnUntraced(function* (projectId: string, commit: string) {
  const devcontainer = yield* unusedDevcontainer({ repository: { projectId }, commit });
  return devcontainer === null
    ? null
    : { ...devcontainer, used: false, variables: {}, commands: [], ignored: [] };
});

const buildForm = wireForm(BuildWire);
const showBuild = ({ source, ...build }: EnvironmentBuild) =>
  buildForm({
    ...build,
    dockerfile: source.dockerfile,
    ...sourceWire(source),
    failure: build.failure && failureWire(build.failure),
  });

/** The manifest in force. One that was never read is read now. */
const findManifest = Effect.fnUntraced(function* (project: Project) {
  yield* (yield* Manifests).current(project);
  const [state] = yield* (yield* Projects).states([project.id]);
  return state?.manifest ?? null;
});

/** The builds of a Dockerfile on this node: the newest, and the one on whose image a sandbox would boot now. */
const findBuilds = Effect.fnUntraced(function* (projectId: string, { key }: BuildSource) {
  const builds = yield* EnvironmentBuilds;
  const { id: nodeId } = yield* ThisNode;
  const current = yield* builds.newest({ projectId, nodeId, key });
  const ready = yield* builds.ready({ projectId, nodeId, limit: READY_LOOKED_AT });
  const image = ready.find(({ source }) => source.key === key) ?? ready[0];
  return {
    current: current && showBuild(current),
    image_of: image === undefined ? null : showBuild(image),
    bases: image === undefined ? [] : yield* findBases(image),
  };
});

/** The tags of a build's base images, with what registries said last. */
const findBases = Effect.fnUntraced(function* ({ bases }: EnvironmentBuild) {
  const references = bases.map(({ reference }) => reference);
  const rows = references.length === 0 ? [] : yield* (yield* EnvironmentBases).get(references);
  return bases.map(({ reference, digest: built }) => {
    const last = rows.find((base) => base.reference === reference);
    return {
      reference,
      built_digest: built,
      digest: last?.digest ?? null,
      looked_up_at: instantOrNull(last?.lookedUpAt ?? null),
      problem: last?.problem ?? null,
      due_at: instantOrNull(last?.dueAt ?? null),
    };
  });
});

const show = Effect.fnUntraced(function* (pid: string) {
  const manifest = yield* findManifest(yield* projectFor(yield* Caller, pid));
  const plan = environmentPlan(manifest);
  const { builder } = yield* Environments;
  const { kind } = plan;
  const own = manifest === null ? null : parseManifest(Buffer.from(manifest.text)).setup;
  const ready = yield* (yield* WarmSandboxes).countReady(pid);
  const nothing = {
    kind,
    image: null,
    setup: own,
    dockerfile: null,
    devcontainer: null,
    builder,
    current: null,
    image_of: null,
    bases: [],
    waiting: {
      wanted: manifest === null ? 0 : parseManifest(Buffer.from(manifest.text)).warm,
      ready: ready.ready,
      for_triggers: ready.forTriggers,
      possible: (yield* WarmPool).places > 0,
    },
  };
  switch (plan.kind) {
    case "machine":
      return manifest === null
        ? nothing
        : { ...nothing, devcontainer: yield* unusedWire(pid, manifest.commit) };
    case "image":
      return { ...nothing, image: plan.image };
    case "dockerfile":
    case "devcontainer": {
      const { source } = plan;
      const { devcontainer } = source;
      const dockerfile = { path: source.dockerfile, ...sourceWire(source) };
      return {
        ...nothing,
        setup: own ?? devcontainer?.setup ?? null,
        dockerfile,
        devcontainer: devcontainer === undefined ? null : devcontainerWire(devcontainer, own !== null),
        ...(yield* findBuilds(pid, source)),
      };
    }
  }
});

/** A person is about to start a session: a sandbox starts for it now. */
const warm = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  if (project.status !== "active") return yield* projectInactive(project);
  return { possible: yield* (yield* WarmPool).wish(pid) };
});

const begin = Effect.fnUntraced(function* (pid: string) {
  const caller = yield* Caller;
  const project = yield* projectFor(caller, pid);
  if (project.status !== "active") return yield* projectInactive(project);
  const plan = environmentPlan(yield* findManifest(project));
  if (plan.kind === "machine" || plan.kind === "image") {
    return yield* new Conflict({
      error:
        plan.kind === "image"
          ? "The file platform.toml names an image, so no Dockerfile is built. Remove `image` from [environment], and merge the change."
          : "The default branch has no Dockerfile. Add .platform/Dockerfile, or name a devcontainer.json in platform.toml, and merge it.",
      code: "no_dockerfile",
    });
  }
  const environments = yield* Environments;
  if (environments.builder === null) {
    return yield* new Conflict({
      error: "This node does not build Dockerfiles (PLATFORM_BUILDER=none).",
      code: "not_built_here",
    });
  }
  const request = { cause: "asked", requestedBy: caller.user.id } as const;
  const build = yield* environments.begin(pid, plan.source, request);
  return build === null ? yield* notFound("project") : showBuild(build);
});

type BuildPath = { readonly pid: string; readonly bid: string };

const findBuild = Effect.fnUntraced(function* ({ pid, bid }: BuildPath) {
  yield* requireProject(yield* Caller, pid);
  const build = yield* (yield* EnvironmentBuilds).get(bid);
  return build === null || build.projectId !== pid ? yield* notFound("build") : build;
});

/** The build is read before its log: whatever a build that was over then has, these pieces have. */
const log = Effect.fnUntraced(function* (
  path: BuildPath,
  { after = 0, limit = LOG_PIECES_DEFAULT }: { readonly after?: number; readonly limit?: number },
) {
  const { id, status } = yield* findBuild(path);
  // One more than asked for tells whether something follows.
  const pieces = yield* (yield* EnvironmentBuilds).log(id, { after, limit: limit + 1 });
  return {
    pieces: pieces.slice(0, limit).map(({ number, text }) => ({ number, text })),
    complete: !LIVE.has(status) && pieces.length <= limit,
  };
});

/** A build that is over stays as it is: its machine ignores the event. */
const cancel = Effect.fnUntraced(function* (path: BuildPath) {
  const { id } = yield* findBuild(path);
  const actors = yield* Actors;
  yield* actors
    .environmentBuild(id, { type: "cancel.requested" })
    .pipe(Effect.catchTag("CapReached", Effect.die));
  return showBuild(yield* findBuild(path));
});

export const environmentsHandlers = HttpApiBuilder.group(
  Platform.add(EnvironmentsGroup),
  "environments",
  (handlers) =>
    handlers
      .handle("get", ({ params }) => withApiErrors(show(params.pid)))
      .handle("warm", ({ params }) => withApiErrors(warm(params.pid)))
      .handle("builds", ({ params, query }) =>
        withApiErrors(
          Effect.gen(function* () {
            yield* requireProject(yield* Caller, params.pid);
            const page = yield* (yield* EnvironmentBuilds).list(params.pid, pageRequest(query));
            return { builds: page.items.map(showBuild), next_cursor: page.nextCursor };
          }),
        ),
      )
      .handle("build", ({ params }) => withApiErrors(begin(params.pid)))
      .handle("getBuild", ({ params }) => withApiErrors(Effect.map(findBuild(params), showBuild)))
      .handle("log", ({ params, query }) => withApiErrors(log(params, query)))
      .handle("cancel", ({ params }) => withApiErrors(cancel(params))),
);

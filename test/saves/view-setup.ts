/** A project's repository, its saves, and git's smart protocol over both, as the service has them. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as ManagedRuntime from "effect/ManagedRuntime";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { GitBackend } from "../../src/git/port.ts";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { existingRepository } from "../../src/git/repository/repository-path.ts";
import { installHooks } from "../../src/git/server/hooks.ts";
import { smartHttp } from "../../src/git/server/smart-http.ts";
import { withSavedWork } from "../../src/saves/views/git-door.ts";
import { gitSaveStore } from "../../src/saves/git-store.ts";
import { makeOldPushes } from "../../src/saves/old/old-pushes.ts";
import type { SavePlace } from "../../src/saves/port.ts";
import { SaveStore } from "../../src/saves/store.ts";
import { makeViews, type Views } from "../../src/saves/views/view.ts";
import { git, gitOk } from "../git/git-client.ts";
import { startGitServer, type GitServer } from "../git/git-server.ts";
import { readerPolicy, sessionPolicy, userPolicy } from "../git/server/policies.ts";

export interface SavedScene {
  readonly root: string;
  /** The repository of the project, and its tip of the session's branch. */
  readonly bare: string;
  readonly base: string;
  readonly place: SavePlace;
  readonly sandboxId: string;
  readonly views: Views;
  readonly server: GitServer;
  readonly run: <A, E>(effect: Effect.Effect<A, E, SaveStore | GitBackend>) => Promise<A>;
}

export const USER = "user";
export const VIEWER = "viewer";
export const SANDBOX = "sandbox";
/** Has the saves of all sessions but the scene's. */
export const OTHER_NODE = "node-two";

const makeScene = async (): Promise<SavedScene & { readonly close: () => Promise<void> }> => {
  const root = mkdtempSync(join(tmpdir(), "views-"));
  const place = { projectId: randomUUID(), sessionId: randomUUID() };
  const sandboxId: string = randomUUID();
  const [hosted, directory, work] = [join(root, "repositories"), join(root, "views"), join(root, "work")];
  const runtime = ManagedRuntime.make(
    Layer.merge(
      hostedBackend({ directory: hosted }),
      gitSaveStore({ directory: join(root, "saves"), projectBytes: 1e9, sessionBytes: 1e9 }),
    ),
  );
  const bare = join(hosted, `${place.projectId}.git`);
  const { store, backend } = await runtime.runPromise(
    Effect.gen(function* () {
      const made = yield* GitBackend;
      yield* made.create({ projectId: place.projectId, importFrom: null, defaultBranch: "main" });
      yield* Effect.promise(async () => mkdirSync(directory));
      yield* installHooks(join(directory, ".hooks"));
      return { store: yield* SaveStore, backend: made };
    }),
  );
  await gitOk(root, "clone", "--quiet", bare, work);
  writeFileSync(join(work, "README.md"), "one\n");
  writeFileSync(join(work, "old.txt"), "old\n");
  await gitOk(work, "add", ".");
  await gitOk(work, "commit", "--quiet", "-m", "First");
  await gitOk(work, "push", "--quiet", "origin", `HEAD:refs/heads/${place.sessionId}`);
  const base = await gitOk(work, "rev-parse", "HEAD");
  const repository = (projectId: string) => existingRepository(hosted, { projectId });
  const views = makeViews({ directory, store, git: backend, repository });
  const viewEndpoint = smartHttp({ directory, areViews: true });
  const oldPushes = makeOldPushes({
    directory,
    store,
    endpoint: viewEndpoint,
    repository,
    findSandbox: () => Effect.succeed(sandboxId),
  });
  const endpoint = withSavedWork(smartHttp({ directory: hosted }), {
    views,
    viewEndpoint,
    oldPushes,
    elsewhere: ({ sessionId }) => Effect.succeed(sessionId === place.sessionId ? null : OTHER_NODE),
  });
  const server = await startGitServer(
    endpoint,
    new Map([
      [USER, userPolicy],
      [VIEWER, readerPolicy],
      [SANDBOX, sessionPolicy(place.sessionId)],
    ]),
  );
  const close = async (): Promise<void> => {
    await server.close();
    await runtime.dispose();
    rmSync(root, { recursive: true, force: true });
  };
  return {
    root,
    bare,
    base,
    place,
    sandboxId,
    views,
    server,
    run: (effect) => runtime.runPromise(effect),
    close,
  };
};

/** One for each file. */
export const useSavedScene = (): { readonly scene: SavedScene } => {
  const made: { scene: SavedScene } = { scene: undefined as never };
  let end: (() => Promise<void>) | null = null;
  beforeAll(async () => {
    const scene = await makeScene();
    made.scene = scene;
    end = scene.close;
  });
  afterAll(() => end?.());
  return made;
};

/** A clone of the project's repository, by a user of the service. */
export const clone = async ({ root, server, place }: SavedScene, password = USER): Promise<string> => {
  const into = join(root, `clone-${randomUUID()}`);
  mkdirSync(into);
  await gitOk(into, "clone", "--quiet", server.url(place.projectId, password), ".");
  return into;
};

/** The fetch of the session's saved work into a clone. */
export const fetchSaved = (into: string, { place }: SavedScene, ...options: readonly string[]) =>
  git(into, ...options, "fetch", "origin", `refs/wip/${place.sessionId}`);

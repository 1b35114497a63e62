/**
 * What the tests of the smart-HTTP endpoint play in: a hosted repository with two commits on `main`, a session's branch
 * at its tip, a server, and a clone on the session's branch. Every test gets a new one; `useScene` registers the hooks.
 */
import * as Effect from "effect/Effect";
import * as ManagedRuntime from "effect/ManagedRuntime";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { GitBackend } from "../../src/git/port.ts";
import type { WritePolicy } from "../../src/git/server/ref-policy.ts";
import { smartHttp } from "../../src/git/server/smart-http.ts";
import { git, gitOk } from "./git-client.ts";
import { type GitServer, startGitServer } from "./git-server.ts";
import { readerPolicy, sessionPolicy, userPolicy } from "./server/policies.ts";

interface Scene {
  /** Everything lies below it. */
  root: string;
  /** Where the hosted repositories lie. */
  directory: string;
  server: GitServer;
  /** Policies by password; a session's password is its id. */
  readonly policies: Map<string, WritePolicy>;
  projectId: string;
  session: string;
  person: string;
  reader: string;
  /** The repository in the data directory. */
  bare: string;
  /** The clone. */
  work: string;
}

const nowhere: GitServer = {
  url: () => "",
  address: "",
  heard: [],
  ends: [],
  close: () => Promise.resolve(),
};

export const scene: Scene = {
  root: "",
  directory: "",
  server: nowhere,
  policies: new Map(),
  projectId: "",
  session: "",
  person: "",
  reader: "",
  bare: "",
  work: "",
};

/** A runtime of the hosted backend over the scene's directory, for as long as a file's tests run. */
const openBackend = () => ManagedRuntime.make(hostedBackend({ directory: scene.directory }));
let runtime: ReturnType<typeof openBackend> | null = null;

/** Asks the hosted backend. */
export const backend = <A, E>(use: (hosted: GitBackend["Service"]) => Effect.Effect<A, E>): Promise<A> =>
  (runtime ??= openBackend()).runPromise(Effect.flatMap(GitBackend, use));

export const freshDirectory = (name: string): string => {
  const path = join(scene.root, `${name}-${randomUUID()}`);
  mkdirSync(path);
  return path;
};

/** The repository's address with a password in it. */
export const url = (password: string): string => scene.server.url(scene.projectId, password);

/** The commit of a ref of the repository; empty if it does not exist. */
export const tip = (ref: string): Promise<string> =>
  git(scene.bare, "rev-parse", "--verify", "--quiet", ref).then(({ stdout }) => stdout.trim());

/** Numbers and sizes of the objects the repository holds. */
export const objects = (): Promise<string> => gitOk(scene.bare, "count-objects", "-v");

/** Commits one file in the clone. @returns the commit. */
export const commit = async (name: string, text = `${name}\n`): Promise<string> => {
  writeFileSync(join(scene.work, name), text);
  await gitOk(scene.work, "add", name);
  await gitOk(scene.work, "commit", "--quiet", "-m", `Write ${name}`);
  return gitOk(scene.work, "rev-parse", "HEAD");
};

const setUp = async (): Promise<void> => {
  const [projectId, session] = [randomUUID(), randomUUID()];
  const [person, reader] = [`user-${projectId}`, `reader-${projectId}`];
  scene.policies.set(session, sessionPolicy(session));
  scene.policies.set(person, userPolicy);
  scene.policies.set(reader, readerPolicy);
  await backend((hosted) => hosted.create({ projectId, importFrom: null, defaultBranch: "main" }));
  const bare = join(scene.directory, `${projectId}.git`);
  Object.assign(scene, { projectId, session, person, reader, bare, work: freshDirectory("work") });
  await gitOk(scene.work, "clone", "--quiet", url(session), ".");
  const first = await commit("README.md", "one\ntwo\nthree\n");
  await gitOk(scene.work, "push", "--quiet", bare, "HEAD:refs/heads/main");
  await backend((hosted) => hosted.createBranch({ projectId }, { branch: session, commit: first }));
  await gitOk(scene.work, "fetch", "--quiet", "origin");
  await gitOk(scene.work, "checkout", "--quiet", "-B", session, `origin/${session}`);
};

/** Makes a new scene before each test of the file. */
export const useScene = (): void => {
  beforeAll(async () => {
    scene.root = mkdtempSync(join(tmpdir(), "smart-http-"));
    scene.directory = join(scene.root, "repositories");
    await backend(() => Effect.void); // installs the hooks
    scene.server = await startGitServer(smartHttp({ directory: scene.directory }), scene.policies);
  });
  beforeEach(setUp);
  afterAll(async () => {
    await scene.server.close();
    await runtime?.dispose();
    runtime = null;
    rmSync(scene.root, { recursive: true, force: true });
  });
};

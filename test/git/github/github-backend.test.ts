/** The promises of the `github` backend beyond those of every backend (src/git/github/backend.ts). */
import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { openExternal } from "../../../src/git/upstream/external.ts";
import { githubRepositories } from "../../../src/git/github/backend.ts";
import type { GitError } from "../../../src/git/port.ts";
import type { GitCall } from "../../../src/git/server/smart-http.ts";
import type { Upstream } from "../../../src/domain/repository/repository-credential.ts";
import type { Upstreams } from "../../../src/git/upstream/upstreams.ts";
import { git, gitOk } from "../git-client.ts";
import { OWNER } from "./github-host-pulls.ts";
import { asApp, makeGithubWorld } from "./github-setup.ts";
import { readerPolicy } from "../server/policies.ts";

const scope = Effect.runSync(Scope.make());
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));
const world = await Effect.runPromise(Scope.provide(makeGithubWorld(), scope));
const { backend, host } = world;

const run = <A>(effect: Effect.Effect<A, GitError>): Promise<A> => Effect.runPromise(effect);
const failure = <A>(effect: Effect.Effect<A, GitError>): Promise<GitError> =>
  Effect.runPromise(Effect.flip(effect));

let repository = { projectId: "" };
/** The repository at the host, and its mirror. */
let bare = "";
let mirror = "";
let base = "";
beforeEach(async () => {
  Object.assign(host, { fault: () => null, mayPush: () => true, servesGit: true });
  world.credential = asApp(host);
  repository = { projectId: randomUUID() };
  await run(backend.create({ ...repository, importFrom: null, defaultBranch: "main" }));
  bare = join(world.upstreams, `${repository.projectId}.git`);
  mirror = join(world.mirrors, `${repository.projectId}.git`);
  base = await gitOk(bare, "rev-parse", "main");
  Object.assign(host, { gitKnocks: 0 });
  host.heard.length = 0;
});

const api = (method: string, rest = ""): string => `${method} /repos/${OWNER}/${repository.projectId}${rest}`;
const tip = async (directory: string, branch: string): Promise<string> =>
  (await git(directory, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`)).stdout.trim();

/** A client that begins to fetch. */
const fetching = (): GitCall => ({
  repository,
  service: "git-upload-pack",
  policy: readerPolicy,
  protocol: "version=2",
  disconnect: Effect.void,
});

/** A branch at the host with one commit over the default branch's. @returns the commit. */
const branchAtHost = async (branch: string): Promise<string> => {
  const commit = await gitOk(bare, "commit-tree", "-p", base, "-m", `On ${branch}`, `${base}^{tree}`);
  await gitOk(bare, "update-ref", `refs/heads/${branch}`, commit);
  return commit;
};

describe("a token", () => {
  it("is refused at once if it may only read, also for an app that does not report it", async () => {
    host.mayPush = () => false;
    const request = (credential: Upstream["credential"]) => ({
      projectId: randomUUID(),
      importFrom: null,
      defaultBranch: null,
      upstream: { ...world.upstreamOf(repository.projectId), credential },
    });
    const error = await failure(world.bare.create(request({ kind: "token", token: host.token() })));
    expect([error.code, error.message]).toEqual([
      "refused",
      expect.stringContaining("can read the repository but not write to it"),
    ]);
    expect(await run(world.bare.create(request(asApp(host))))).toEqual({ defaultBranch: "main" });
  });

  it("that git is refused with is not tried again if no other one is available", async () => {
    world.credential = { kind: "token", token: host.token() };
    host.tokens.delete((world.credential as { token: string }).token);
    const error = await failure(backend.compare(repository, { base: "main", head: "main" }));
    expect(error.code).toBe("refused");
    // Without a password, as git begins, and with it.
    expect(host.gitKnocks).toBe(2);
  });

  it("is not renewed after an unrelated failure", async () => {
    const asked = { commit: "e".repeat(40), path: "a", maxBytes: 10 };
    expect((await failure(backend.readFile(repository, asked))).code).toBe("git_failed");
    expect(host.heard).toEqual([]);
  });

  it("that the host no longer accepts is renewed for a client's fetch", async () => {
    host.tokens.delete(host.minted.at(-1) ?? "");
    // A fetch of a moment ago would be fresh enough for a client.
    rmSync(mirror, { recursive: true });
    const answer = await run(world.endpoint.advertise(fetching()));
    expect([answer.status, existsSync(mirror)]).toEqual([200, true]);
    // A fetch that is let in asks the API for nothing.
    host.heard.length = 0;
    expect((await run(world.endpoint.advertise(fetching()))).status).toBe(200);
    expect(host.heard).toEqual([]);
  });
});

describe("a branch that the host has created", () => {
  it("reaches the mirror before any caller gets the answer", async () => {
    await run(backend.createBranch(repository, { branch: "made", commit: base }));
    expect(await tip(mirror, "made")).toBe(base);
  });

  it("counts as made, whether or not the mirror could follow", async () => {
    host.servesGit = false;
    await run(backend.createBranch(repository, { branch: "alone", commit: base }));
    expect([await tip(bare, "alone"), await tip(mirror, "alone")]).toEqual([base, ""]);
  });
});

const open = (headRef: string, baseRef: string) =>
  run(world.pulls.create(repository, { headRef, baseRef, title: headRef, body: "" }));
const merge = (head: string) => backend.merge(repository, { branch: "main", head, message: "Merge", at: 0 });

describe("a merge that the host's rules refuse to a push", () => {
  beforeEach(() => {
    mkdirSync(join(bare, "hooks"), { recursive: true });
    const hook = join(bare, "hooks/update");
    writeFileSync(hook, '#!/bin/sh\n[ "$1" != refs/heads/main ] || { echo "use a pull request"; exit 1; }\n');
    chmodSync(hook, 0o755);
  });

  it("is made by the open pull request of that commit into that branch", async () => {
    const [other, head] = [await branchAtHost("other"), await branchAtHost("work")];
    await gitOk(bare, "update-ref", "refs/heads/side", base);
    for (const [from, into] of [
      ["other", "main"],
      ["work", "side"],
      ["work", "main"],
    ] as const)
      await open(from, into);
    const merged = await run(merge(head));
    const commit = await tip(bare, "main");
    expect(merged).toEqual({ outcome: "merged", base, commit });
    expect(await gitOk(bare, "log", "-1", "--format=%P", "main")).toBe(`${base} ${head}`);
    expect([await tip(bare, "side"), await tip(mirror, "main")]).toEqual([base, commit]);
    expect(other).not.toBe(head);
  });

  it("is refused in the host's words if no pull request is open", async () => {
    const error = await failure(merge(await branchAtHost("work")));
    expect([error.code, error.message]).toEqual(["refused", expect.stringContaining("use a pull request")]);
    expect(await tip(bare, "main")).toBe(base);
  });

  it("is the only merge that uses pull requests", async () => {
    expect((await failure(merge("e".repeat(40)))).code).toBe("unknown_ref");
    expect(host.calls(api("GET", "/pulls"))).toEqual([]);
  });
});

describe("a project of another kind", () => {
  const url = `${host.origin}/${OWNER}/other.git`;
  const upstream: Upstream = { source: { kind: "git", url }, credential: null };
  const known: Upstreams["Service"] = {
    kind: () => Effect.succeed("git"),
    find: () => Effect.succeed({ ...upstream, defaultBranch: "main" }),
  };

  it("is not one of the backend's repositories, and the host gets no request", async () => {
    const allowHosts = ["127.0.0.1"];
    const directory = join(world.root, "others");
    const opened = githubRepositories({
      upstreams: known,
      allowHosts,
      mirrored: (findRemote) => openExternal({ directory, allowHosts, upstreams: known, findRemote }),
    });
    const { backend: others, endpoint } = await run(Scope.provide(opened, scope));
    const request = { ...repository, importFrom: null, defaultBranch: null, upstream };
    const answers = [
      others.create(request),
      others.branchTip(repository, "main"),
      others.compare(repository, { base: "main", head: "main" }),
      endpoint.advertise(fetching()),
    ].map((asked) => failure<unknown>(asked));
    expect((await Promise.all(answers)).map(({ code }) => code)).toEqual(
      answers.map(() => "unknown_repository"),
    );
    expect([host.heard, host.gitKnocks]).toEqual([[], 0]);
  });
});

/** The `git` backend over ssh with a real sshd, both keys OpenSSH's own. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RepositoryCredential } from "../../../src/domain/repository/repository-credential.ts";
import type { GitError } from "../../../src/git/port.ts";
import { type ExternalWorld, makeExternalWorld } from "./external-setup.ts";
import { gitOk } from "../git-client.ts";
import { hasSshd, type Sshd, startSshd } from "./sshd.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const scope = Effect.runSync(Scope.make());
const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect);

describe.skipIf(!hasSshd)("a repository over ssh", () => {
  let directory = "";
  let sshd: Sshd | undefined;
  let world: ExternalWorld;
  let credential: Extract<RepositoryCredential, { kind: "ssh_key" }>;

  const address = (): Sshd => {
    if (sshd === undefined) throw new Error("no sshd runs");
    return sshd;
  };
  /** Where the server keeps the repository, as its upstream's address names it. */
  const pathOf = (url: string): string => join(world.upstreams, basename(url));

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "sshd-"));
    sshd = await startSshd(directory);
    const { privateKey, knownHosts } = sshd;
    credential = { kind: "ssh_key", privateKey, knownHosts };
    const findRemote = ({ source }: ReturnType<ExternalWorld["upstreamOf"]>) =>
      Effect.sync(() => ({
        url: address().urlOf(pathOf(source.kind === "git" ? source.url : "")),
        credential,
      }));
    world = await run(Scope.provide(makeExternalWorld({ findRemote }), scope));
  });
  afterAll(async () => {
    await run(Scope.close(scope, Exit.void));
    await sshd?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const created = async () => {
    const project = { projectId: randomUUID() };
    await run(world.backend.create({ ...project, importFrom: null, defaultBranch: "main" }));
    return project;
  };

  it("creates, moves and merges branches on the server", async () => {
    const project = await created();
    const at = join(world.upstreams, `${project.projectId}.git`);
    const base = await run(world.backend.resolveBase(project, "main"));
    const branch = randomUUID();
    await run(world.backend.createBranch(project, { branch, commit: base }));
    expect(await gitOk(at, "rev-parse", `refs/heads/${branch}`)).toBe(base);
    const work = await gitOk(at, "commit-tree", "-p", base, "-m", "Work", `${base}^{tree}`);
    await gitOk(at, "update-ref", `refs/heads/${branch}`, work);
    expect(await run(world.backend.branchTip(project, branch))).toBe(work);
    const merge = { branch: "main", head: work, message: "Merge", at: 0 };
    expect(await run(world.backend.merge(project, merge))).toMatchObject({ outcome: "merged", commit: work });
    expect(await gitOk(at, "rev-parse", "refs/heads/main")).toBe(work);
  });

  deepTest("accepts a key that lost its final line break", async () => {
    const whole = credential;
    credential = {
      kind: "ssh_key",
      privateKey: address().privateKey.trimEnd(),
      knownHosts: address().knownHosts,
    };
    const project = await created();
    expect(await run(world.backend.branchTip(project, "main"))).not.toBeNull();
    await run(world.backend.checkUpstream(world.upstreamOf(project.projectId)));
    credential = whole;
  });

  onlyDeep(() => {
    it.each([
      [
        "is refused to a key that its server does not know",
        ({ strangersKey, knownHosts }: Sshd) => ({ privateKey: strangersKey, knownHosts }),
        /Permission denied/,
      ],
      [
        "is not spoken to where its server has another key than the known one",
        ({ privateKey, knownHosts }: Sshd) => ({
          privateKey,
          knownHosts: knownHosts.replace(
            /AAAA\S+/,
            "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
          ),
        }),
        /[Hh]ost key/,
      ],
      [
        "is not contacted if its server's key is unknown",
        ({ privateKey }: Sshd) => ({ privateKey, knownHosts: "[127.0.0.2]:22 ssh-ed25519 AAAA\n" }),
        /[Hh]ost key/,
      ],
    ])("%s", async (_name, keys, message) => {
      const whole = credential;
      credential = { kind: "ssh_key", ...keys(address()) };
      const project = { projectId: randomUUID() };
      for (const asked of [
        world.backend.create({ ...project, importFrom: null, defaultBranch: "main" }),
        world.backend.checkUpstream(world.upstreamOf(project.projectId)),
      ]) {
        expect(await run(Effect.flip<unknown, GitError, never>(asked))).toMatchObject({
          code: "refused",
          message: expect.stringMatching(message) as string,
        });
      }
      credential = whole;
    });
  });
});

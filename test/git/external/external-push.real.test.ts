/** Native git against the endpoint over mirrors: what is pushed is at the repository's server, or nowhere. */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { randomUUID } from "node:crypto";
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { plainRemote } from "../../../src/git/upstream/external.ts";
import type { WritePolicy } from "../../../src/git/server/ref-policy.ts";
import { type ExternalWorld, makeExternalWorld } from "./external-setup.ts";
import { git, gitOk } from "../git-client.ts";
import { type GitServer, startGitServer } from "../git-server.ts";
import { sessionPolicy, userPolicy } from "../server/policies.ts";
import { beginPush } from "../server/slow-push.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const scope = Effect.runSync(Scope.make());
const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect);
const policies = new Map<string, WritePolicy>();
let world: ExternalWorld;
let endpoint: GitServer;

beforeAll(async () => {
  world = await run(Scope.provide(makeExternalWorld({ freshMs: 0, stallMs: 2_500 }), scope));
  endpoint = await startGitServer(world.endpoint, policies);
});
afterAll(async () => {
  await endpoint.close();
  await run(Scope.close(scope, Exit.void));
});
afterEach(() => {
  world.server.fault = () => null;
});

let projectId = "";
let session = "";
let person = "";
/** The repository at its server, its mirror here, and a clone of the endpoint's on the session's branch. */
let there = "";
let mirror = "";
let work = "";

const url = (password: string): string => endpoint.url(projectId, password);
const tip = async (bare: string, ref: string): Promise<string> =>
  (await git(bare, "rev-parse", "--verify", "--quiet", ref)).stdout.trim();
const objects = (): Promise<string> => gitOk(mirror, "count-objects", "-v");
const quarantines = (): string[] =>
  readdirSync(join(mirror, "objects")).filter((name) => name.startsWith("tmp_objdir"));

const commit = async (name: string): Promise<string> => {
  writeFileSync(join(work, name), `${name} ${randomUUID()}\n`);
  await gitOk(work, "add", name);
  await gitOk(work, "commit", "--quiet", "-m", `Write ${name}`);
  return gitOk(work, "rev-parse", "HEAD");
};

const everyRef = (bare: string) =>
  execFileSync("git", ["for-each-ref", "refs/heads", "refs/tags"], { cwd: bare, encoding: "latin1" });

/** A hook of the server's repository. */
const hook = (name: string, script: string): void => {
  mkdirSync(join(there, "hooks"), { recursive: true });
  writeFileSync(join(there, "hooks", name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(there, "hooks", name), 0o755);
};

beforeEach(async () => {
  [projectId, session] = [randomUUID(), randomUUID()];
  person = `user-${projectId}`;
  policies.set(session, sessionPolicy(session));
  policies.set(person, userPolicy);
  await run(world.backend.create({ projectId, importFrom: null, defaultBranch: "main" }));
  there = join(world.upstreams, `${projectId}.git`);
  mirror = join(world.mirrors, `${projectId}.git`);
  const base = await run(world.backend.resolveBase({ projectId }, "main"));
  await run(world.backend.createBranch({ projectId }, { branch: session, commit: base }));
  work = join(world.root, `work-${projectId}`);
  mkdirSync(work);
  await gitOk(work, "clone", "--quiet", "--branch", session, url(session), ".");
});

describe("a push", () => {
  it("is on the server and in the mirror when it is acknowledged", async () => {
    const head = await commit("change.txt");
    await gitOk(work, "push", "--quiet", "origin", "HEAD");
    expect(await tip(there, `refs/heads/${session}`)).toBe(head);
    expect(await tip(mirror, `refs/heads/${session}`)).toBe(head);
  });

  it("is checked by the ref policy before the server hears of it [G09]", async () => {
    await commit("change.txt");
    const heard = world.server.heard.length;
    const before = await objects();
    const pushed = await git(work, "push", "origin", "HEAD:refs/heads/main", "HEAD:refs/tags/v1");
    expect(pushed.stderr).toContain(`This session can push only to its own branch ${session}`);
    // The reading of refs before a push is all that was asked.
    expect(world.server.heard.slice(heard).filter((target) => target.includes("receive-pack"))).toEqual([]);
    expect(await objects()).toBe(before);
  });

  deepTest(
    "of several refs is refused for those that the server refuses, with the server's words",
    async () => {
      hook("update", 'case "$1" in */no*) echo "not on my watch"; exit 1 ;; esac');
      const head = await commit("change.txt");
      const pushed = await git(work, "push", url(person), "HEAD:refs/heads/yes", "HEAD:refs/heads/no");
      expect(pushed.code).not.toBe(0);
      expect(pushed.stderr).toContain("remote: not on my watch");
      expect(pushed.stderr).toMatch(/\[remote rejected\] HEAD -> no/);
      expect(pushed.stderr).toMatch(/\[new branch\]\s+HEAD -> yes/);
      for (const bare of [there, mirror]) {
        expect([await tip(bare, "yes"), await tip(bare, "no")]).toEqual([head, ""]);
      }
    },
  );

  it("that the server refuses leaves no object in the mirror", async () => {
    hook("pre-receive", "echo closed for today; exit 1");
    await commit("change.txt");
    const before = await objects();
    const pushed = await git(work, "push", "origin", "HEAD");
    expect(pushed.code).not.toBe(0);
    expect(pushed.stderr).toContain("remote: closed for today");
    expect(await objects()).toBe(before);
    expect(quarantines()).toEqual([]);
  });

  deepTest("that is atomic is applied at the server as a whole or not at all", async () => {
    hook("update", 'case "$1" in */no*) exit 1 ;; esac');
    const head = await commit("change.txt");
    const refs = ["HEAD:refs/heads/yes", "HEAD:refs/heads/no"];
    expect((await git(work, "push", "--atomic", url(person), ...refs)).code).not.toBe(0);
    expect(
      (await git(work, "push", "--atomic", url(person), "HEAD:refs/heads/yes", "HEAD:main")).code,
    ).not.toBe(0);
    for (const bare of [there, mirror]) expect(await tip(bare, "yes")).toBe("");
    await gitOk(work, "push", "--quiet", "--atomic", url(person), "HEAD:refs/heads/a", "HEAD:refs/heads/b");
    expect([await tip(there, "a"), await tip(there, "b")]).toEqual([head, head]);
  });

  deepTest("may delete and rewind the refs that the policy lets a user delete and rewind", async () => {
    await commit("change.txt");
    await gitOk(work, "push", "--quiet", url(person), "HEAD:refs/heads/topic");
    await gitOk(work, "push", "--quiet", "--force", url(person), "HEAD~1:refs/heads/topic");
    expect(await tip(there, "topic")).toBe(await gitOk(work, "rev-parse", "HEAD~1"));
    await gitOk(work, "push", "--quiet", url(person), ":refs/heads/topic");
    for (const bare of [there, mirror]) expect(await tip(bare, "topic")).toBe("");
  });

  deepTest("from a tip that the branch no longer has is told to fetch", async () => {
    const head = await commit("change.txt");
    const aside = await gitOk(work, "commit-tree", "-m", "Aside", "-p", "HEAD~1", "HEAD~1^{tree}");
    await gitOk(work, "push", "--quiet", there, `${aside}:refs/heads/elsewhere`);
    // The branch moves at its server after the client was told its refs.
    world.server.fault = (target) => {
      if (target.includes("service=git-receive-pack"))
        writeFileSync(join(there, "refs/heads", session), `${aside}\n`);
      return null;
    };
    const pushed = await git(work, "push", "origin", "HEAD");
    expect(pushed.stderr).toContain("changed on the repository's server. Fetch, then push again");
    expect(await tip(there, `refs/heads/${session}`)).toBe(aside);
    expect(head).not.toBe(aside);
  });

  deepTest("is not overtaken by a fetch that sees it at the server first", async () => {
    const [taken, go] = [join(there, "taken"), join(there, "go")];
    hook("post-receive", `touch '${taken}'; while [ ! -e '${go}' ]; do sleep 0.05; done`);
    const head = await commit("change.txt");
    const pushing = git(work, "push", "origin", "HEAD");
    await vi.waitFor(() => expect(existsSync(taken)).toBe(true), { timeout: WAIT_MS, interval: 20 });
    // A question that is asked of the server while it has the push and the client does not know.
    await run(world.backend.branchTip({ projectId }, "main"));
    writeFileSync(go, "");
    expect((await pushing).stderr).toMatch(/HEAD -> /);
    expect((await pushing).code).toBe(0);
    for (const bare of [there, mirror]) expect(await tip(bare, `refs/heads/${session}`)).toBe(head);
  });

  onlyDeep(() => {
    it.each<[string, string | Uint8Array]>([
      ["is not UTF-8", Buffer.from("refs/heads/\xff\xfe", "latin1")],
      ["holds a zero-width character", "refs/heads/main\u200b"],
      ["is a ref's own path", "refs/tags/refs/heads/main"],
    ])("of a name that %s is neither passed on nor acknowledged [G01] [G12]", async (_, ref) => {
      const to = await commit("change.txt");
      const before = await gitOk(there, "show-ref");
      const commands = [{ from: "0".repeat(40), to, ref }];
      expect(await beginPush({ commands, work, url: url(person) })()).toMatch(/ng refs\/(?:heads|tags)\//);
      for (const bare of [there, mirror]) expect(await gitOk(bare, "show-ref")).toBe(before);
    });
  });

  deepTest("and a fetch leave refs alone whose names this service does not accept [G01]", async () => {
    const head = await gitOk(there, "rev-parse", "main");
    const names = [
      "refs/heads/\xff\xfe",
      "refs/tags/refs/heads/main",
      "refs/tags/main",
      "refs/heads/z\xe2\x80\x8b",
    ];
    execFileSync("git", ["update-ref", "--stdin"], {
      cwd: there,
      input: Buffer.from(names.map((name) => `create ${name} ${head}\n`).join(""), "latin1"),
    });
    const kept = everyRef(there);
    for (const name of names) expect(kept).toContain(name);
    expect(await run(world.backend.resolveBase({ projectId }, "main"))).toBe(head);
    expect(everyRef(mirror)).toBe(kept);
    await commit("change.txt");
    await gitOk(work, "push", "--quiet", "origin", "HEAD");
    const { stdout: seen } = await promisify(execFile)("git", ["ls-remote", "origin"], {
      cwd: work,
      encoding: "latin1",
    });
    for (const name of names) expect(seen).toContain(name);
    expect(
      await run(
        world.backend.create({
          projectId,
          importFrom: null,
          defaultBranch: null,
          upstream: world.upstreamOf(projectId),
        }),
      ),
    ).toEqual({ defaultBranch: "main" });
  });

  deepTest("is not passed on if a ref's name means something on a command line", async () => {
    const to = await commit("change.txt");
    const commands = [{ from: "0".repeat(40), to, ref: "refs/tags/x:refs/heads/main" }];
    expect(await beginPush({ commands, work, url: url(person) })()).toContain(
      "ng refs/tags/x:refs/heads/main",
    );
    expect(await tip(there, "main")).not.toBe(to);
  });
});

const isPush = (target: string): boolean => target.endsWith("/git-receive-pack");
const attempt = async () => {
  const head = await commit("change.txt");
  const before = await objects();
  const { code, stderr } = await git(work, "push", "origin", "HEAD");
  return { code, stderr, head, before };
};

onlyDeep(() => {
  describe("a server that fails during a push", () => {
    it("after it accepted the push is asked again: the push is acknowledged [G12]", async () => {
      world.server.fault = (target) => (isPush(target) ? { kind: "mute" } : null);
      const { code, head } = await attempt();
      expect(code).toBe(0);
      for (const bare of [there, mirror]) expect(await tip(bare, `refs/heads/${session}`)).toBe(head);
    });

    it.each<[string, Parameters<typeof Object>[0]]>([
      ["dies in the middle", { kind: "die", afterBytes: 100 }],
      ["says 500", { kind: "status", status: 500 }],
      ["never answers", { kind: "hang" }],
    ])("and %s does not have the push: it is refused, and no object stays here [G12]", async (_, fault) => {
      world.server.fault = (target) => (isPush(target) ? fault : null);
      const { code, stderr, head, before } = await attempt();
      expect(code).not.toBe(0);
      expect(stderr).toMatch(/remote: .* was not pushed\. The repository's server could not be reached/);
      expect(await objects()).toBe(before);
      expect(quarantines()).toEqual([]);
      world.server.fault = () => null;
      await gitOk(work, "push", "--quiet", "origin", "HEAD");
      expect(await tip(there, `refs/heads/${session}`)).toBe(head);
    });

    it("and stays away leaves the result open: the push is reported neither as done nor as failed", async () => {
      let pushing = false;
      world.server.fault = (target) => {
        pushing ||= isPush(target);
        return pushing ? { kind: "die", afterBytes: 0 } : null;
      };
      const { code, stderr } = await attempt();
      expect(code).not.toBe(0);
      expect(stderr).toContain("It is not known whether");
    });
  });
});

describe("a clone", () => {
  it("sees at once the commits that others pushed to the server", async () => {
    const head = await commit("change.txt");
    await gitOk(work, "push", "--quiet", there, "HEAD:refs/heads/others");
    await gitOk(work, "fetch", "--quiet", "origin");
    expect(await gitOk(work, "rev-parse", "origin/others")).toBe(head);
    await gitOk(there, "update-ref", "-d", "refs/heads/others");
    await gitOk(work, "fetch", "--quiet", "--prune", "origin");
    expect((await git(work, "rev-parse", "--verify", "origin/others")).code).not.toBe(0);
  });

  deepTest(
    "sees a session branch that another node just created, even if the local mirror is fresh",
    async () => {
      const nodeScope = Effect.runSync(Scope.make());
      const node = makeExternalWorld({
        upstreams: world.known,
        findRemote: () => plainRemote(world.upstreamOf(projectId)),
        freshMs: 600_000,
      });
      const elsewhere = await startGitServer((await run(Scope.provide(node, nodeScope))).endpoint, policies);
      try {
        await gitOk(world.root, "ls-remote", elsewhere.url(projectId, session));
        const next = randomUUID();
        policies.set(next, sessionPolicy(next));
        const base = await run(world.backend.resolveBase({ projectId }, "main"));
        await run(world.backend.createBranch({ projectId }, { branch: next, commit: base }));
        const listed = await gitOk(world.root, "ls-remote", "--heads", elsewhere.url(projectId, next), next);
        expect(listed).toContain(base);
      } finally {
        await elsewhere.close();
        await run(Scope.close(nodeScope, Exit.void));
      }
    },
  );

  deepTest("costs the server one or two transfers, even with many clones at once", async () => {
    await commit("change.txt");
    await gitOk(work, "push", "--quiet", there, "HEAD:refs/heads/others");
    const heard = world.server.heard.length;
    const clones = Array.from({ length: 6 }, (_, n) =>
      git(world.root, "clone", "--quiet", url(session), `c${projectId}-${n}`),
    );
    for (const { code } of await Promise.all(clones)) expect(code).toBe(0);
    const packs = world.server.heard.slice(heard).filter((target) => target.endsWith("/git-upload-pack"));
    expect(packs.length).toBeLessThan(12);
  });

  it("is refused with 503 and a message if the server is unreachable", async () => {
    world.server.fault = () => ({ kind: "status", status: 500 });
    const { code, stderr } = await git(work, "fetch", "origin");
    expect(code).not.toBe(0);
    expect(stderr).toContain("remote: The repository's server could not be reached");
    expect(stderr).toContain("503");
  });

  deepTest("restores the mirror if it was lost", async () => {
    rmSync(mirror, { recursive: true });
    await gitOk(work, "fetch", "--quiet", "origin");
    expect(await tip(mirror, `refs/heads/${session}`)).not.toBe("");
  });
});

/** Native git pushes through the smart-HTTP functions, over a real server. */
import { randomUUID } from "node:crypto";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { absent } from "../../../src/git/server/ref-policy.ts";
import { smartHttp } from "../../../src/git/server/smart-http.ts";
import { git, gitOk } from "../git-client.ts";
import { startGitServer } from "../git-server.ts";
import { policyOf, sessionPolicy } from "./policies.ts";
import { backend, commit, freshDirectory, objects, scene, tip, url, useScene } from "../scene.ts";
import { beginPush } from "./slow-push.ts";

useScene();

/** A commit of exactly this text, which git itself would not make. */
const commitText = async (text: string): Promise<string> => {
  writeFileSync(join(scene.work, ".git", "text"), text);
  return gitOk(scene.work, "hash-object", "--literally", "-w", "-t", "commit", ".git/text");
};

describe("a write", () => {
  it.each([
    ["refs/heads/a", "refs/heads/b"],
    ["--atomic", "refs/heads/a", "refs/heads/b"],
  ])(
    "moves no ref after its credential ended, even if the whole push has arrived: %s [T03]",
    async (...args) => {
      const refs = args.filter((arg) => arg.startsWith("refs/"));
      const http = smartHttp({ directory: scene.directory });
      const asked: string[] = [];
      const answers = [true, true, false];
      const standing = {
        ended: Deferred.makeUnsafe<void>(),
        // It stands for the push as a whole and for the first of its refs.
        holds: Effect.sync(() => {
          asked.push("asked");
          return answers.shift() ?? false;
        }),
      };
      const server = await startGitServer(
        { advertise: http.advertise, serve: (call) => http.serve({ ...call, standing }) },
        scene.policies,
      );
      const head = await commit("change.txt");
      const pushed = await git(
        scene.work,
        "push",
        ...args.filter((arg) => arg.startsWith("--")),
        server.url(scene.projectId, scene.person),
        ...refs.map((ref) => `HEAD:${ref}`),
      );
      await server.close();
      expect(pushed.code).not.toBe(0);
      expect(pushed.stderr).toContain("The credential of this push has expired");
      expect(asked).toHaveLength(3);
      const isAtomic = args.length > refs.length;
      expect(await Promise.all(refs.map(tip))).toEqual([isAtomic ? "" : head, ""]);
    },
  );

  it("of a sandbox's own token into its branch is refused [S13]", async () => {
    const token = `platform_pat_${"t".repeat(43)}`;
    scene.policies.set(scene.session, { ...sessionPolicy(scene.session), ownTokens: [token] });
    writeFileSync(join(scene.work, "env.txt"), `A=1\nPLATFORM_CLI_TOKEN=${token}\n`);
    await gitOk(scene.work, "add", "env.txt");
    const head = await commit("change.txt");
    const before = await tip(`refs/heads/${scene.session}`);
    const pushed = await git(scene.work, "push", "origin", `HEAD:refs/heads/${scene.session}`);
    expect(pushed.stderr).toContain("remote: The push contains this sandbox's own token");
    expect(await tip(`refs/heads/${scene.session}`)).toBe(before);
    scene.policies.set(scene.session, {
      ...sessionPolicy(scene.session),
      ownTokens: [`${token.slice(0, -1)}u`],
    });
    await gitOk(scene.work, "push", "--quiet", "origin", `HEAD:refs/heads/${scene.session}`);
    expect(await tip(`refs/heads/${scene.session}`)).toBe(head);
  });

  it("tells git why a ref was refused [G09]", async () => {
    await commit("change.txt");
    const pushed = await git(scene.work, "push", "origin", "HEAD:refs/heads/main");
    expect(pushed.stderr).toContain(`remote: This session can push only to its own branch ${scene.session}`);
  });

  it("refuses the forbidden refs of a push and accepts the others [G09]", async () => {
    const head = await commit("change.txt");
    const pushed = await git(
      scene.work,
      "push",
      "origin",
      `HEAD:refs/heads/${scene.session}`,
      "HEAD:refs/heads/main",
      "HEAD:refs/tags/v1",
    );
    expect(pushed.code).not.toBe(0);
    expect(await tip(`refs/heads/${scene.session}`)).toBe(head);
    expect(await tip("refs/heads/main")).not.toBe(head);
    expect(await tip("refs/tags/v1")).toBe("");
    expect(pushed.stderr).toMatch(/\[remote rejected\] HEAD -> main \(hook declined\)/);
  });

  it("accepts no ref of an atomic push with a forbidden ref", async () => {
    const before = await tip(`refs/heads/${scene.session}`);
    await commit("change.txt");
    const pushed = await git(
      scene.work,
      "push",
      "--atomic",
      "origin",
      `HEAD:refs/heads/${scene.session}`,
      "HEAD:refs/heads/main",
    );
    expect(pushed.code).not.toBe(0);
    expect(await tip(`refs/heads/${scene.session}`)).toBe(before);
  });

  it("accepts an atomic push of several allowed refs", async () => {
    const head = await commit("change.txt");
    await gitOk(
      scene.work,
      "push",
      "--quiet",
      "--atomic",
      url(scene.person),
      "HEAD:refs/heads/a",
      "HEAD:refs/heads/b",
      "HEAD:refs/tags/t",
    );
    expect(await Promise.all([tip("refs/heads/a"), tip("refs/heads/b"), tip("refs/tags/t")])).toEqual([
      head,
      head,
      head,
    ]);
  });

  it("accepts from a mirror push the refs that a user may write, and deletes no session branch [G09]", async () => {
    await gitOk(scene.work, "branch", "feature");
    const [main, branch] = await Promise.all([tip("refs/heads/main"), tip(`refs/heads/${scene.session}`)]);
    const stranger = freshDirectory("stranger");
    await gitOk(stranger, "init", "--quiet");
    await gitOk(stranger, "commit", "--quiet", "--allow-empty", "-m", "Alien");
    await gitOk(stranger, "branch", "--move", "alien");
    const pushed = await git(stranger, "push", "--mirror", url(scene.person));
    expect(pushed.code).not.toBe(0);
    expect(await tip("refs/heads/alien")).not.toBe("");
    expect([await tip("refs/heads/main"), await tip(`refs/heads/${scene.session}`)]).toEqual([main, branch]);
  });

  it("takes no saved work into the repository", async () => {
    const pushed = await git(scene.work, "push", "origin", `HEAD:refs/wip/${scene.session}`);
    expect(pushed.stderr).toContain("deny updating a hidden ref");
    expect(await git(scene.bare, "rev-parse", "--verify", `refs/wip/${scene.session}`)).toMatchObject({
      code: 128,
    });
  });

  it("pushes from a shallow clone", async () => {
    const shallow = freshDirectory("shallow");
    await gitOk(
      shallow,
      "clone",
      "--quiet",
      "--depth",
      "1",
      "--branch",
      scene.session,
      url(scene.session),
      ".",
    );
    await gitOk(shallow, "commit", "--quiet", "--allow-empty", "-m", "From a shallow clone");
    await gitOk(shallow, "push", "--quiet", "origin", "HEAD");
    expect(await tip(`refs/heads/${scene.session}`)).toBe(await gitOk(shallow, "rev-parse", "HEAD"));
  });

  it("accepts a push of several megabytes", async () => {
    const noise = Array.from(
      { length: 200_000 },
      (_, n) => `${n} ${(n * 2_654_435_761) % 4_294_967_296}\n`,
    ).join("");
    await commit("noise.txt", noise);
    await gitOk(scene.work, "push", "--quiet", "origin", "HEAD");
    expect(await gitOk(scene.bare, "cat-file", "-s", `${scene.session}:noise.txt`)).toBe(
      String(noise.length),
    );
  });

  it("lets the first commit of a new repository be replaced once if this is allowed", async () => {
    const fresh = randomUUID();
    await backend((hosted) => hosted.create({ projectId: fresh, importFrom: null, defaultBranch: "main" }));
    const address = scene.server.url(fresh, scene.person);
    const refused = await git(scene.work, "push", "--force", address, "HEAD:refs/heads/main");
    expect(refused.stderr).toContain("cannot push to the default branch main");
    scene.policies.set(scene.person, policyOf({ kind: "user" }, { mayReplaceInitialCommit: true }));
    const lone = await gitOk(scene.work, "commit-tree", "-m", "Alone", await gitOk(scene.work, "write-tree"));
    await gitOk(scene.work, "push", "--quiet", "--force", address, `${lone}:refs/heads/main`);
    const again = await git(scene.work, "push", "--force", address, "HEAD:refs/heads/main");
    expect(again.stderr).toContain("cannot push to the default branch main");
  });

  it.each<[string, string | Uint8Array]>([
    ["bytes that are not UTF-8", Buffer.from("refs/heads/\xff\xfe", "latin1")],
    ["a tag of such bytes", Buffer.from("refs/tags/\xff", "latin1")],
    ["a zero-width character", "refs/heads/main\u200b"],
    ["a direction mark", "refs/tags/v1\u202e"],
    ["another form of a name", "refs/heads/cafe\u0301"],
    ["a tag that is named like a branch", "refs/tags/refs/heads/main"],
    ["a branch that is named like a ref", "refs/heads/refs/heads/main"],
    ["a tag that is named like HEAD", "refs/tags/HEAD"],
    ["a branch that is named @", "refs/heads/@"],
  ])("creates no ref of %s [G01]", async (_, ref) => {
    const to = await commit("change.txt");
    const push = { commands: [{ from: absent, to, ref }], work: scene.work, url: url(scene.person) };
    const before = await gitOk(scene.bare, "show-ref");
    expect(await beginPush(push)()).toMatch(/ng refs\/(?:heads|tags)\//);
    expect(await gitOk(scene.bare, "show-ref")).toBe(before);
  });

  it("refuses damaged objects and stores none [G06]", async () => {
    const stored = await objects();
    const tree = await gitOk(scene.work, "write-tree");
    const bad = await commitText(`tree ${tree}\n\nbad\n`);
    const pushed = await git(scene.work, "push", url(scene.person), `${bad}:refs/heads/bad`);
    expect(pushed.code).not.toBe(0);
    expect(pushed.stderr).toMatch(new RegExp(`object ${bad}: missingAuthor`));
    expect(await objects()).toBe(stored);
  });

  it.each([
    ["badTimezone", "A <a@b> 1 +051800"],
    ["missingSpaceBeforeDate", "A <a@b>1 +0000"],
    ["missingEmail", "A 1 +0000"],
    ["missingSpaceBeforeEmail", "A<a@b> 1 +0000"],
    ["missingNameBeforeEmail", "<a@b> 1 +0000"],
    ["badEmail", "A <a<b> 1 +0000"],
    ["badDate", "A <a@b> x +0000"],
    ["badDateOverflow", "A <a@b> 99999999999999999999 +0000"],
    ["zeroPaddedDate", "A <a@b> 01 +0000"],
  ])("accepts an old tool's commit that git's check names %s", async (_, person) => {
    const tree = await gitOk(scene.work, "write-tree");
    const old = await commitText(`tree ${tree}\nauthor ${person}\ncommitter ${person}\n\nold\n`);
    const pushed = await git(scene.work, "push", "--force", url(scene.person), `${old}:refs/heads/old`);
    expect(pushed.code, pushed.stderr).toBe(0);
  });

  it("refuses a pack beyond the limit [G08]", async () => {
    const small = await startGitServer(
      smartHttp({ directory: scene.directory, maxPackBytes: 2048 }),
      scene.policies,
    );
    try {
      await commit(
        "noise.txt",
        Array.from({ length: 2000 }, (_, n) => `${(n * 2_654_435_761) % 4_294_967_296}\n`).join(""),
      );
      const stored = await objects();
      const pushed = await git(scene.work, "push", small.url(scene.projectId, scene.session), "HEAD");
      expect(pushed.code).not.toBe(0);
      expect(await objects()).toBe(stored);
    } finally {
      await small.close();
    }
  });

  it("accepts no push while its hooks cannot run", async () => {
    const elsewhere = join(scene.root, randomUUID());
    mkdirSync(elsewhere);
    await gitOk(
      scene.root,
      "clone",
      "--quiet",
      "--bare",
      scene.bare,
      join(elsewhere, `${scene.projectId}.git`),
    );
    const bareless = await startGitServer(smartHttp({ directory: elsewhere }), scene.policies);
    try {
      await commit("change.txt");
      const pushed = await git(
        scene.work,
        "push",
        bareless.url(scene.projectId, scene.person),
        "HEAD:refs/heads/feature",
      );
      expect(pushed.code).not.toBe(0);
      expect(existsSync(join(elsewhere, `${scene.projectId}.git`, "refs/heads/feature"))).toBe(false);
    } finally {
      await bareless.close();
    }
  });
});

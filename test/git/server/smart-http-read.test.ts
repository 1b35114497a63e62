/** Native git reads through the smart-HTTP functions, over a real server. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseGitPath } from "../../../src/git/server/smart-http.ts";
import { git, gitOk } from "../git-client.ts";
import { commit, freshDirectory, scene, url, useScene } from "../scene.ts";

useScene();

const probe = async (target: string): Promise<number> => {
  const authorization = `Basic ${Buffer.from(`git:${scene.session}`).toString("base64")}`;
  // oxlint-disable-next-line no-restricted-globals -- the test's own client
  const answer = await fetch(`http://${scene.server.address}${target}`, { headers: { authorization } });
  return answer.status;
};

describe("a read", () => {
  it.each([["0"], ["1"], ["2"]])("clones with protocol version %s", async (version) => {
    const into = freshDirectory("clone");
    await gitOk(into, "-c", `protocol.version=${version}`, "clone", "--quiet", url(scene.session), ".");
    expect(readFileSync(join(into, "README.md"), "utf8")).toBe("one\ntwo\nthree\n");
    expect(await gitOk(into, "fsck")).toBe("");
  });

  it("clones shallow, without blobs, and one branch", async () => {
    const [shallow, partial] = [freshDirectory("shallow"), freshDirectory("partial")];
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
    expect(await gitOk(shallow, "rev-list", "--count", "HEAD")).toBe("1");
    await gitOk(shallow, "fetch", "--quiet", "--unshallow");
    expect(await gitOk(shallow, "rev-list", "--count", "HEAD")).toBe("2");
    await gitOk(partial, "clone", "--quiet", "--filter=blob:none", url(scene.session), ".");
    expect(readFileSync(join(partial, "README.md"), "utf8")).toBe("one\ntwo\nthree\n");
  });

  it("fetches with a request so long that git packs it with gzip", async () => {
    const stale = freshDirectory("stale");
    await gitOk(stale, "clone", "--quiet", url(scene.session), ".");
    const tree = await gitOk(scene.work, "write-tree");
    const lone = await Promise.all(
      Array.from({ length: 40 }, (_, n) => gitOk(scene.work, "commit-tree", "-m", `lone ${n}`, tree)),
    );
    const refs = lone.map((id, n) => `${id}:refs/heads/lone-${n}`);
    await gitOk(scene.work, "push", "--quiet", scene.bare, ...refs);
    await gitOk(stale, "fetch", "--quiet", "origin");
    expect(await gitOk(stale, "rev-parse", "origin/lone-39")).toBe(lone[39]);
    expect(scene.server.heard.some(({ encoding }) => encoding === "gzip")).toBe(true);
  });

  it("lets a reader clone but not push, and says why", async () => {
    await gitOk(freshDirectory("reader"), "clone", "--quiet", url(scene.reader), ".");
    await commit("x");
    const pushed = await git(scene.work, "push", url(scene.reader), "HEAD");
    expect(pushed.code).not.toBe(0);
    expect(pushed.stderr).toContain("This credential can read but cannot push.");
  });

  it("finds no repository of another name and serves no file over plain HTTP", async () => {
    const base = `/v1/git/${scene.projectId}.git`;
    expect(await probe(`/v1/git/${randomUUID()}.git/info/refs?service=git-upload-pack`)).toBe(404);
    expect(await probe(`${base}/info/refs`)).toBe(403);
    const paths = ["/HEAD", "/objects/info/packs", "/config", "/info/refs/", "/../x", ""];
    const answers = await Promise.all(paths.map((path) => probe(`${base}${path}`)));
    expect(answers).toEqual(paths.map(() => 404));
  });
});

describe("the path of a request", () => {
  const pid = "0190a5a0-0000-7000-8000-000000000001";

  it("is one of the smart protocol's three, one of the file protocol's, or unknown", () => {
    const advertise = { projectId: pid, kind: "advertise" };
    expect(parseGitPath(`/v1/git/${pid}.git/info/refs?service=git-upload-pack`)).toEqual({
      ...advertise,
      service: "git-upload-pack",
    });
    expect(parseGitPath(`/v1/git/${pid}.git/git-receive-pack`)).toEqual({
      projectId: pid,
      kind: "serve",
      service: "git-receive-pack",
    });
    for (const query of [
      "",
      "?",
      "?service=",
      "?service=git-upload-archive",
      "?service=git-upload-pack&service=x",
    ]) {
      expect(parseGitPath(`/v1/git/${pid}.git/info/refs${query}`), query).toEqual({
        ...advertise,
        service: null,
      });
    }
  });

  it.each([
    [`/v1/git/${pid}/info/refs?service=git-upload-pack`],
    [`/v1/git/${pid.toUpperCase()}.git/git-upload-pack`],
    [`/v1/git/${pid}.git/../${pid}.git/git-upload-pack`],
    [`/v1/git/${pid}.git//git-upload-pack`],
    [`/v1/git/${pid}.git/git-upload-pack/`],
    [`/v1/git/${pid}.git/git-upload-archive`],
    [`/v1/git/..%2f${pid}.git/git-upload-pack`],
    [`/v1/git/../../etc.git/git-upload-pack`],
    [`/v1/git/${pid}.git/HEAD`],
    [`http://other/v1/git/${pid}.git/git-upload-pack`],
    [""],
  ])("is refused when it is %s", (target) => {
    expect(parseGitPath(target)).toBeNull();
  });
});

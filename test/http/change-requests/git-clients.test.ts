/** Clients of git's HTTP as they come: another implementation than git's own, and git in its less usual ways. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import fs from "node:fs";
import path from "node:path";
import * as isomorphic from "isomorphic-git";
import http from "isomorphic-git/http/node";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { git, gitOk } from "../../git/git-client.ts";
import { gitStandIn } from "../../git/git-stand-in.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  expectStatus,
  fields,
  makeProject,
  mintPassword,
  commitTo,
  runSession,
  stopSession,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
let bare = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, { files: { "docs/guide.md": "guide\n" } });
  bare = path.join(service.dataDir, "repositories", `${pid}.git`);
});
afterEach(() => void vi.unstubAllEnvs());
afterAll(() => service.close());

const place = (): string => mkdtempSync(path.join(service.importRoot, "client-"));
const remote = (password: string): string =>
  `http://x:${password}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
const tip = (ref: string): Promise<string> => gitOk(bare, "rev-parse", ref);

const author = { name: "Tester", email: "tester@example.org" };

/** A clone on a branch, by another client than git; `ask` counts how often it wanted a password. */
const cloned = async (password: string, ref: string, more: { readonly depth?: number } = {}) => {
  const dir = place();
  const asked = { times: 0 };
  const onAuth = () => {
    asked.times += 1;
    return { username: "session", password };
  };
  const url = `http://127.0.0.1:${service.port}/v1/git/${pid}.git`;
  await isomorphic.clone({ fs, http, dir, url, ref, singleBranch: true, onAuth, ...more });
  return { dir, onAuth, asked };
};
const commit = async (dir: string, name: string): Promise<string> => {
  writeFileSync(path.join(dir, name), `${name}\n`);
  await isomorphic.add({ fs, dir, filepath: name });
  return isomorphic.commit({ fs, dir, author, message: `Write ${name}` });
};
/** Leaves it at one answer: a client that is told 401 with its password asks for another one for ever. */
const onAuthFailure = () => ({ cancel: true });

describe("isomorphic-git", () => {
  it("clones, commits, pushes to its session's branch and fetches, when asked for its password", async () => {
    const sid = await runSession(service, pid);
    const { dir, onAuth, asked } = await cloned(await mintPassword(service, pid, sid), sid);
    expect(readFileSync(path.join(dir, "docs/guide.md"), "utf8")).toBe("guide\n");
    expect(asked.times).toBeGreaterThan(0);
    const head = await commit(dir, "isomorphic.txt");
    const pushed = await isomorphic.push({ fs, http, dir, ref: sid, onAuth });
    expect(pushed).toMatchObject({ ok: true, refs: { [`refs/heads/${sid}`]: { ok: true } } });
    expect(await tip(sid)).toBe(head);
    await commitTo(service, pid, { branch: sid, from: sid, files: { "native.txt": "native\n" } });
    const { fetchHead } = await isomorphic.fetch({ fs, http, dir, ref: sid, singleBranch: true, onAuth });
    expect(fetchHead).toBe(await tip(sid));
    expect(await gitOk(bare, "fsck", "--strict")).toBe("");
  });

  it("clones without the history", async () => {
    const { dir } = await cloned(service.token, "feature", { depth: 1 });
    expect(await isomorphic.log({ fs, dir })).toHaveLength(1);
    expect(existsSync(path.join(dir, "feature.txt"))).toBe(true);
  });

  it("is refused in the same cases as git, with the same words", async () => {
    const sid = await runSession(service, pid);
    const { dir, onAuth } = await cloned(await mintPassword(service, pid, sid), sid);
    await commit(dir, "refused.txt");
    const [main, branch] = [await tip("main"), await tip(sid)];
    const refused = async (wish: Partial<Parameters<typeof isomorphic.push>[0]>): Promise<string> => {
      const said: string[] = [];
      const onMessage = (message: string) => void said.push(message);
      await expect(
        isomorphic.push({ fs, http, dir, onAuth, onMessage, ref: sid, ...wish }),
      ).rejects.toThrow();
      return said.join("");
    };
    const words = `This session can push only to its own branch ${sid}`;
    expect(await refused({ remoteRef: "refs/heads/main", force: true })).toContain(words);
    expect(await refused({ remoteRef: "refs/tags/v1", force: true })).toContain(words);
    expect(await refused({ remoteRef: `refs/heads/${sid}`, delete: true })).toContain("cannot delete");
    expect([await tip("main"), await tip(sid)]).toEqual([main, branch]);
    await stopSession(service, pid, sid);
    await expect(isomorphic.push({ fs, http, dir, onAuth, onAuthFailure, ref: sid })).rejects.toThrow();
  });
});

describe("git", () => {
  it("makes a mirror, keeps it up to date, and reports removed refs", async () => {
    const mirror = place();
    await commitTo(service, pid, { branch: "passing", files: { "passing.txt": "x\n" } });
    await gitOk(mirror, "clone", "--quiet", "--mirror", remote(service.token), ".");
    const listing = ["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags"];
    expect(await gitOk(mirror, ...listing)).toBe(await gitOk(bare, ...listing));
    await gitOk(mirror, "push", "--quiet", remote(service.token), "--delete", "passing");
    await gitOk(mirror, "remote", "update", "--prune");
    expect(await gitOk(mirror, ...listing)).toBe(await gitOk(bare, ...listing));
    expect(await gitOk(mirror, "branch", "--list", "passing")).toBe("");
  });

  it("deepens a shallow clone step by step", async () => {
    const directory = place();
    for (const n of [1, 2, 3]) {
      const from = n === 1 ? "main" : "deep";
      await commitTo(service, pid, { branch: "deep", from, files: { "deep.txt": `${n}\n` } });
    }
    await gitOk(directory, "clone", "--quiet", "--depth=1", "--branch=deep", remote(service.token), ".");
    const count = () => gitOk(directory, "rev-list", "--count", "HEAD");
    expect(await count()).toBe("1");
    await gitOk(directory, "fetch", "--quiet", "--deepen=1");
    expect(await count()).toBe("2");
    await gitOk(directory, "fetch", "--quiet", "--unshallow");
    expect(await count()).toBe("4");
  });
});

describe("a repository with git-lfs pointers", () => {
  const pointer = [
    "version https://git-lfs.github.com/spec/v1",
    `oid sha256:${"4d".repeat(32)}`,
    "size 123456789",
    "",
  ].join("\n");
  const files = { ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "model.bin": pointer };

  it("has its pointers shown, compared, merged and cloned unchanged, and no filter is run [G06]", async () => {
    const marker = path.join(service.importRoot, "filtered");
    // Every git of the service finds a git-lfs, and only the repository may mention it.
    gitStandIn(
      service.importRoot,
      `mkdir -p "$(dirname "$0")"; printf '#!/bin/sh\\ntouch ${marker}\\n' >"$(dirname "$0")/git-lfs"
       chmod +x "$(dirname "$0")/git-lfs"; exec "$REAL" "$@"`,
      service.dataDir,
    );
    await commitTo(service, pid, { branch: "pointers", files });
    const at = `/v1/projects/${pid}/change-requests`;
    const body = { title: "Large files", head_ref: "pointers" };
    const opened = await service.request("POST", at, { body });
    const number = String(fields(expectStatus(opened, 201))["number"]);
    expect((await service.request("GET", `${at}/${number}/diff`)).text).toContain("+size 123456789");
    // The base moves, so that a merge has to be made of both.
    await commitTo(service, pid, { branch: "beside", files: { "beside.txt": "x\n" } });
    const beside = await service.request("POST", at, { body: { title: "Beside", head_ref: "beside" } });
    for (const one of [fields(beside)["number"], number]) {
      expectStatus(await service.request("POST", `${at}/${String(one)}/merge`, { body: {} }), 200);
    }
    const directory = place();
    await gitOk(directory, "clone", "--quiet", remote(service.token), ".");
    expect(readFileSync(path.join(directory, "model.bin"), "utf8")).toBe(pointer);
    expect(existsSync(marker)).toBe(false);
    expect((await git(directory, "fsck", "--strict")).code).toBe(0);
  });
});

/** A project with a Dockerfile at a real service, as its author works on it. Its base image needs no registry. */
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { copyFile, mkdir } from "node:fs/promises";
import path from "node:path";
import { expect, vi } from "vitest";
import { firstBlockUid } from "../../../src/builder/buildah/layer-stores.ts";
import { findBuildTools } from "../../../src/builder/buildah/requirements.ts";
import { gitOk } from "../../git/git-client.ts";
import { busybox, writeToolImage } from "../machine/image-archives.ts";
import { sandboxesStartHere } from "../requirements.ts";
import { POLL } from "./sessions/live-session.ts";
import { type Installation, type Json, type Life, TOKEN } from "./process-service.ts";

/** What this machine lacks to build a project's environment and to boot on it. Empty if it lacks nothing. */
export const buildLacks = ((): string => {
  const found = findBuildTools(process.env["PATH"] ?? "", firstBlockUid(""));
  if ("problem" in found) return `(${found.problem})`;
  return sandboxesStartHere && busybox !== undefined ? "" : "(needs bubblewrap and busybox-static)";
})();

export class DockerfileProject {
  readonly id: string;
  /** A clone of the repository, in which its author works. Another project can import it. */
  readonly clone: string;
  #life: Life;

  private constructor(life: Life, { id, clone }: { readonly id: string; readonly clone: string }) {
    this.#life = life;
    this.id = id;
    this.clone = clone;
  }

  /** Makes a project. Its clone has the archive `.platform/base.tar` with busybox, which is not committed yet. */
  static async open(life: Life, { sample }: Installation): Promise<DockerfileProject> {
    const id = await life.project(sample);
    const scratch = path.join(path.dirname(sample), `scratch-${id}`);
    const clone = path.join(path.dirname(sample), `clone-${id}`);
    await mkdir(scratch);
    await gitOk(scratch, "clone", "--quiet", findRemote(life, id), clone);
    mkdirSync(path.join(clone, ".platform"), { recursive: true });
    const archive = path.join(scratch, "base.tar");
    await writeToolImage(scratch, archive);
    await copyFile(archive, path.join(clone, ".platform/base.tar"));
    return new DockerfileProject(life, { id, clone });
  }

  /** Goes on with another life of the service. */
  async moveTo(life: Life): Promise<void> {
    this.#life = life;
    await gitOk(this.clone, "remote", "set-url", "origin", findRemote(life, this.id));
  }

  call(method: string, below: string, body?: Json): Promise<Json> {
    return this.#life.call(method, `/v1/projects/${this.id}/${below}`, body);
  }

  /** The newest builds first. */
  async builds(): Promise<readonly Json[]> {
    return (await this.call("GET", "environment/builds"))["builds"] as readonly Json[];
  }

  /** A build's whole log. */
  async log(id: unknown): Promise<string> {
    const { pieces } = await this.call("GET", `environment/builds/${String(id)}/log?limit=200`);
    return (pieces as readonly { text: string }[]).map(({ text }) => text).join("");
  }

  /** Commits files on a branch, and merges it by a change request. */
  async merge(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(this.clone, name)), { recursive: true });
      writeFileSync(path.join(this.clone, name), content);
    }
    const branch = `change-${randomUUID()}`;
    const author = ["-c", "user.name=Mona", "-c", "user.email=mona@localhost"];
    // Fast compression, because the packing is not under test.
    const fast = ["-c", "core.compression=1"];
    await gitOk(this.clone, "add", "--all");
    await gitOk(this.clone, ...author, ...fast, "commit", "-qm", "Change");
    await gitOk(this.clone, ...fast, "push", "--quiet", "origin", `HEAD:refs/heads/${branch}`);
    const { number } = await this.call("POST", "change-requests", { head_ref: branch, title: "Change" });
    await this.call("POST", `change-requests/${String(number)}/merge`, {});
  }

  /** Waits until the newest build has another key than this one, and is over. */
  overAfter(key: unknown): Promise<Json> {
    return vi.waitFor(async () => {
      const [newest = {}] = await this.builds();
      expect(newest["key"]).not.toBe(key);
      expect(newest["status"]).toMatch(/ready|failed|cancelled/);
      return newest;
    }, POLL);
  }
}

const findRemote = (life: Life, id: string): string =>
  `${life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${id}.git`;

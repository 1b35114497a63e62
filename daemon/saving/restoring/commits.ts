/** Unpacks restored commits into the workspace's repository, and into those inside it. */
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { absolute } from "../content.ts";
import type { FrameSource } from "../frame-source.ts";
import { collect, gitDirectory, Repository } from "../repository.ts";
import type { Writer } from "./write.ts";

/** A repository inside the workspace, which is made if it is missing. Null if it cannot be. */
export const openNested = async (
  workspace: string,
  place: string,
  writer: Writer,
): Promise<Repository | null> => {
  const tree = join(workspace, Buffer.from(place, "latin1").toString());
  try {
    writer.makeParents(`${place}/.git`);
    mkdirSync(absolute(workspace, place), { recursive: true });
    const directory = gitDirectory(tree);
    if (directory !== null) return new Repository(tree, directory);
    const repository = new Repository(tree, join(tree, ".git"));
    await repository.read(["init", "--quiet", "--template="]);
    return repository;
  } catch {
    return null;
  }
};

/** Takes one frame as a pack. The frame is read to its end in any case. @returns why it was not taken, or null */
export const takePack = async (
  repository: Repository | null,
  frames: FrameSource,
): Promise<string | null> => {
  if (repository === null) {
    await frames.read(() => undefined);
    return "refused_path";
  }
  const child = repository.start(["index-pack", "--stdin"]);
  const exit = collect(child).catch(() => ({ code: null }));
  let isOpen = true;
  void exit.then(() => (isOpen = false));
  const end = await frames.read(async (chunk) => {
    if (!isOpen || child.stdin?.writable !== true) return;
    if (!child.stdin.write(chunk)) await Promise.race([once(child.stdin, "drain"), exit]);
  });
  // A pack that is cut off is not taken.
  if (end !== "whole") child.kill();
  child.stdin?.end();
  const { code } = await exit;
  if (end !== "whole") return end;
  return code === 0 ? null : "broken_history";
};

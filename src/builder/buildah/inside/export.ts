/**
 * The second phase of a build, in a sandbox without the first one's processes and without a network: copies the files of
 * the image to the output. Left out are device nodes, sockets, FIFOs, set-user-id and set-group-id bits, and extended
 * attributes, and with them file capabilities. Names are bytes: not every name is text.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  constants,
  copyFileSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  type Stats,
  symlinkSync,
} from "node:fs";
import { type Exported, readRequest, report } from "./reports.ts";

/** An exported mode has permissions and the sticky bit. */
const KEPT_MODE = 0o1777;
const SLASH = Buffer.from("/");
const ROOT = Buffer.from("/output/root");

class TooLarge extends Error {
  readonly what: "image" | "files" | "path";
  constructor(what: "image" | "files" | "path") {
    super(what);
    this.what = what;
  }
}

const buildah = (...args: readonly string[]): string => {
  const { status, stdout, stderr } = spawnSync("buildah", ["--storage-driver", "overlay", ...args], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`buildah ${args[0] ?? ""}: ${stderr.slice(-2000)}`);
  return stdout.trim();
};

const { imageBytes, imageFiles } = readRequest();
const totals = { bytes: 0, files: 0 };
/** Files with several names, by device and inode. */
const linkTargets = new Map<string, Buffer>();

const join = (directory: Buffer, name: Buffer): Buffer => Buffer.concat([directory, SLASH, name]);

/** After the content: a copy into a directory would change its times. */
const finish = (path: Buffer, stat: Stats): void => {
  lchownSync(path, stat.uid, stat.gid);
  if (!stat.isSymbolicLink()) chmodSync(path, stat.mode & KEPT_MODE);
  lutimesSync(path, stat.atimeMs / 1000, stat.mtimeMs / 1000);
};

const copyFile = (from: Buffer, to: Buffer, stat: Stats): void => {
  const identity = `${stat.dev}:${stat.ino}`;
  const earlier = stat.nlink > 1 ? linkTargets.get(identity) : undefined;
  if (earlier !== undefined) return linkSync(earlier, to);
  totals.bytes += stat.size;
  if (totals.bytes > imageBytes) throw new TooLarge("image");
  copyFileSync(from, to, constants.COPYFILE_EXCL);
  if (stat.nlink > 1) linkTargets.set(identity, to);
  finish(to, stat);
};

/** Copies one entry. @returns the entry if it is a directory, whose content comes next */
const copyEntry = (from: Buffer, to: Buffer): Stats | null => {
  const stat = lstatSync(from);
  if (!stat.isFile() && !stat.isDirectory() && !stat.isSymbolicLink()) return null;
  totals.files += 1;
  if (totals.files > imageFiles) throw new TooLarge("files");
  if (stat.isFile()) copyFile(from, to, stat);
  else if (stat.isDirectory()) mkdirSync(to, { mode: 0o700 });
  else {
    symlinkSync(readlinkSync(from, "buffer"), to);
    finish(to, stat);
  }
  return stat.isDirectory() ? stat : null;
};

/** Copies a tree without recursion: a hostile one is deeper than the stack. */
const copyTree = (root: Buffer): void => {
  const open: { from: Buffer; to: Buffer; stat: Stats | null; entered: boolean }[] = [
    { from: root, to: ROOT, stat: null, entered: false },
  ];
  for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
    if (top.entered) {
      if (top.stat !== null) finish(top.to, top.stat);
      open.pop();
      continue;
    }
    top.entered = true;
    top.stat = copyEntry(top.from, top.to);
    if (top.stat === null) continue;
    for (const name of readdirSync(top.from, { encoding: "buffer" })) {
      open.push({ from: join(top.from, name), to: join(top.to, name), stat: null, entered: false });
    }
  }
};

interface ImageConfiguration {
  readonly config?: {
    readonly Env?: readonly string[];
    readonly User?: string;
    readonly WorkingDir?: string;
  };
}

const exportImage = (image: string): Exported => {
  const container = buildah(
    "from",
    "--pull-never",
    "--signature-policy",
    "/etc/containers/policy.json",
    image,
  );
  const inspection = JSON.parse(buildah("inspect", "--type", "image", image)) as { readonly Config: string };
  copyTree(Buffer.from(buildah("mount", container)));
  buildah("rm", container);
  const { config } = JSON.parse(inspection.Config) as ImageConfiguration;
  return {
    kind: "exported",
    digest: `sha256:${createHash("sha256").update(inspection.Config).digest("hex")}`,
    env: config?.Env ?? [],
    user: config?.User ?? "",
    workdir: config?.WorkingDir ?? "",
    ...totals,
  };
};

const answer = (image: string): Exported => {
  try {
    return exportImage(image);
  } catch (error) {
    if (error instanceof TooLarge) return { kind: "too_large", what: error.what };
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENAMETOOLONG") return { kind: "too_large", what: "path" };
    return { kind: "failed", problem: String(error).slice(0, 4000) };
  }
};

report("up");
report(JSON.stringify(answer(readFileSync(0, "latin1").trim())));

/**
 * An image of this machine as a registry has it: one layer with all files, a configuration and a manifest. The same image gives the
 * same bytes, so a registry that has it already needs nothing.
 */
import { spawn } from "node:child_process";
import { createHash, type Hash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { lstat, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Image } from "../image.ts";

/** Files of this machine that a registry can have as an image. */
export type Packable = Pick<Image, "digest" | "root" | "env" | "user" | "workdir">;

/** Users of an image. A build's image has them from the first number of the build's own block on. */
const USERS = 65_536;
/** Fast: the network between service and registry is rarely slower. */
const LEVEL = 1;
const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/** A piece of an image by its digest. */
export interface Blob {
  readonly digest: string;
  readonly bytes: number;
  readonly open: () => Readable;
}

export interface PackedImage {
  readonly blobs: readonly Blob[];
  readonly manifest: Buffer;
  readonly manifestDigest: string;
}

export const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip";

const finishDigest = (hash: Hash): string => `sha256:${hash.digest("hex")}`;
const digestOfBytes = (bytes: Buffer): string => finishDigest(createHash("sha256").update(bytes));

const makeBlob = (bytes: Buffer, open: () => Readable): Blob => ({
  digest: digestOfBytes(bytes),
  bytes: bytes.length,
  open,
});

/** Passes bytes on, and hashes them. */
const hashing = (hash: Hash): Transform =>
  new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      hash.update(chunk);
      done(null, chunk);
    },
  });

/** @throws Error with the program's last words */
const succeed = async (name: string, child: ReturnType<typeof spawn>): Promise<void> => {
  let output = "";
  child.stderr?.on("data", (chunk: Buffer) => (output = (output + chunk.toString()).slice(-500)));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${name} failed: ${output.trim() || `exit code ${code}`}`);
};

/** All owners of files below a directory: users, and groups. */
const ownersIn = async (root: string): Promise<readonly [ReadonlySet<number>, ReadonlySet<number>]> => {
  const child = spawn("find", [root, "-printf", "%U %G\n"], {
    env: { PATH },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const end = succeed("find", child);
  const [users, groups] = [new Set<number>(), new Set<number>()];
  for await (const line of createInterface(child.stdout)) {
    const [user = Number.NaN, group = Number.NaN] = line.split(" ").map(Number);
    users.add(user);
    groups.add(group);
  }
  await end;
  return [users, groups];
};

/** tar's map of owners: the image's root belongs to the image's uid 0. Others outside of the image become uid 0, too. */
const ownerMap = (owners: ReadonlySet<number>, first: number): string =>
  [...owners]
    .map((owner) => `+${owner} +${owner >= first && owner < first + USERS ? owner - first : 0}\n`)
    .join("");

/** Writes the layer into a file. @returns the digest of the tar, and of the file */
const writeLayer = async (
  root: string,
  directory: string,
): Promise<{ readonly file: string; readonly plain: string; readonly digest: string }> => {
  const [users, groups] = await ownersIn(root);
  const first = await lstat(root);
  const [owners, ownGroups, file] = ["owners", "groups", "layer"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(owners, ownerMap(users, first.uid));
  await writeFile(ownGroups, ownerMap(groups, first.gid));
  const child = spawn(
    "tar",
    [
      "--create",
      "--file=-",
      `--directory=${root}`,
      "--sort=name",
      "--numeric-owner",
      `--owner-map=${owners}`,
      `--group-map=${ownGroups}`,
      "--format=posix",
      // These differ between two runs.
      "--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f",
      ".",
    ],
    { env: { PATH, LC_ALL: "C" }, stdio: ["ignore", "pipe", "pipe"] },
  );
  const end = succeed("tar", child);
  const [plain, packed] = [createHash("sha256"), createHash("sha256")];
  await Promise.all([
    end,
    pipeline(
      child.stdout,
      hashing(plain),
      createGzip({ level: LEVEL }),
      hashing(packed),
      createWriteStream(file, { mode: 0o600 }),
    ),
  ]);
  return { file, plain: finishDigest(plain), digest: finishDigest(packed) };
};

const makeManifest = (config: Blob, layer: Omit<Blob, "open">): Buffer =>
  Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: { mediaType: CONFIG_TYPE, digest: config.digest, size: config.bytes },
      layers: [{ mediaType: LAYER_TYPE, digest: layer.digest, size: layer.bytes }],
    }),
  );

/** What a container's runtime reads of an image. */
const makeConfig = ({ env, user, workdir }: Packable, plain: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: {
        Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
        ...(user !== "" && { User: user }),
        ...(workdir !== "" && { WorkingDir: workdir }),
      },
      rootfs: { type: "layers", diff_ids: [plain] },
    }),
  );

/**
 * Packs an image for as long as `use` runs.
 * @param scratch a directory on a disk with room for the packed files
 */
export const withPacked = async <A>(
  image: Packable,
  scratch: string,
  use: (packedImage: PackedImage) => Promise<A>,
): Promise<A> => {
  const directory = await mkdtemp(join(scratch, "push-"));
  try {
    const { file, plain, digest } = await writeLayer(image.root, directory);
    const layer: Blob = { digest, bytes: (await stat(file)).size, open: () => createReadStream(file) };
    const bytes = makeConfig(image, plain);
    const config = makeBlob(bytes, () => Readable.from([bytes]));
    const manifest = makeManifest(config, layer);
    return await use({ blobs: [config, layer], manifest, manifestDigest: digestOfBytes(manifest) });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

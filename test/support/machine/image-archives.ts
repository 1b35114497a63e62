/** Archives of images for tests: made here, so that no test needs a registry. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";

/** An entry of a tar. Without content and type it is a directory. */
export interface TarEntry {
  readonly name: string;
  readonly content?: string | Uint8Array;
  readonly type?: "symlink" | "link" | "fifo" | "character-device";
  readonly linkname?: string;
  readonly mode?: number;
  /** Extended attributes. Values are ASCII. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** The extended attribute that gives a program CAP_NET_RAW: `struct vfs_cap_data` of revision 2, permitted and effective. */
export const FILE_CAPABILITY = {
  "security.capability": Buffer.from("0100000200200000000000000000000000000000", "hex").toString("ascii"),
};

/** A tar with these entries, in this order. */
export const tarOf = async (entries: readonly TarEntry[]): Promise<Buffer> => {
  const archive = pack();
  for (const { name, content, type, linkname, mode, attributes = {} } of entries) {
    const kind: Header["type"] = type ?? (content === undefined ? "directory" : "file");
    const pax = Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [`SCHILY.xattr.${key}`, value]),
    );
    archive.entry(
      {
        name,
        type: kind,
        ...(linkname !== undefined && { linkname }),
        ...(mode !== undefined && { mode }),
        ...(Object.keys(pax).length > 0 && { pax }),
      },
      Buffer.from(content ?? ""),
    );
  }
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

export const sha256 = (bytes: Uint8Array): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

const machine = process.arch === "arm64" ? "arm64" : "amd64";

/** What an image's description says besides its layers. */
export interface ImageDescription {
  readonly config?: object;
  readonly architecture?: string;
}

/** An OCI archive of layers, each compressed. */
export const ociArchive = async (
  layers: readonly Uint8Array[],
  { config = {}, architecture = machine }: ImageDescription = {},
): Promise<Buffer> => {
  const blobs = new Map<string, Buffer>();
  const blob = (bytes: Uint8Array): { readonly digest: string; readonly size: number } => {
    blobs.set(sha256(bytes), Buffer.from(bytes));
    return { digest: sha256(bytes), size: bytes.length };
  };
  const json = (value: object) => blob(Buffer.from(JSON.stringify(value)));
  const description = json({ architecture, os: "linux", config });
  const manifest = json({
    schemaVersion: 2,
    config: description,
    layers: layers.map((layer) => blob(gzipSync(layer))),
  });
  const index = {
    schemaVersion: 2,
    manifests: [{ mediaType: "application/vnd.oci.image.manifest.v1+json", ...manifest }],
  };
  return tarOf([
    { name: "oci-layout", content: '{"imageLayoutVersion":"1.0.0"}' },
    { name: "index.json", content: JSON.stringify(index) },
    ...[...blobs].map(([digest, content]) => ({ name: `blobs/${digest.replace(":", "/")}`, content })),
  ]);
};

/** An archive as older versions of `docker save` write it: a repeated layer is a link to the first one. */
export const dockerArchive = async (
  layers: readonly Uint8Array[],
  { config = {}, architecture = machine }: ImageDescription = {},
): Promise<Buffer> => {
  const description = Buffer.from(JSON.stringify({ architecture, os: "linux", config }));
  const name = `${sha256(description).slice("sha256:".length)}.json`;
  const places = new Map<string, string>();
  const entries = layers.map((layer, at): TarEntry => {
    const place = `layer${at}/layer.tar`;
    const earlier = places.get(sha256(layer));
    places.set(sha256(layer), earlier ?? place);
    return earlier === undefined
      ? { name: place, content: layer }
      : { name: place, type: "symlink", linkname: `../${earlier}` };
  });
  const manifest = [{ Config: name, RepoTags: ["x:1"], Layers: entries.map((entry) => entry.name) }];
  return tarOf([
    ...entries,
    { name, content: description },
    { name: "manifest.json", content: JSON.stringify(manifest) },
  ]);
};

const BUSYBOX = ["/bin/busybox", "/usr/bin/busybox"];
const PERL_BASE = "/usr/lib/x86_64-linux-gnu/perl-base";

/** busybox as this machine has it, linked statically. Undefined if it is not installed. */
export const busybox = BUSYBOX.find((file) => existsSync(file));

const LISTED = /=> (\/\S+) \(|^\s*(\/\S+) \(/gm;

/**
 * Writes a tar of a small root file system: busybox with all its programs, and Perl with a glibc of its own, which the
 * probes of the sandboxes' tests use.
 * @param scratch an empty directory
 */
export const writeToolImage = async (scratch: string, file: string): Promise<void> => {
  if (busybox === undefined) throw new Error("busybox is not installed");
  const root = join(scratch, "root");
  mkdirSync(join(root, "bin"), { recursive: true });
  cpSync(busybox, join(root, "bin/busybox"));
  const programs = execFileSync(busybox, ["--list"], { encoding: "utf8" }).split("\n").filter(Boolean);
  for (const name of programs)
    if (name !== "busybox") symlinkSync("busybox", join(root, "bin", basename(name)));
  const libraries = execFileSync("ldd", ["/usr/bin/perl"], { encoding: "utf8" });
  const copied = [
    "/usr/bin/perl",
    ...[...libraries.matchAll(LISTED)].map(([, one, other]) => one ?? other ?? ""),
  ];
  for (const path of copied.filter((place) => place !== "")) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
  cpSync(PERL_BASE, join(root, PERL_BASE), { recursive: true });
  execFileSync("tar", ["-C", root, "-cf", file, "."]);
};

/** Writes an archive. @returns its file */
export const writeArchive = async (directory: string, name: string, content: Uint8Array): Promise<string> => {
  const file = join(directory, name);
  await writeFile(file, content);
  return file;
};

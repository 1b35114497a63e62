/**
 * Reads an image's archive: an OCI archive, an archive of `docker save`, or a plain tar of a root file system, each with
 * or without gzip or zstd. The archive is untrusted, so this runs in a sandbox (../import.ts).
 */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, openSync, readSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { extract, type Header } from "tar-stream";
import { thrownText } from "../../../ground/thrown.ts";
import { UnpackFailure } from "./failure.ts";

/** What an image says about its programs. */
export interface ImageConfig {
  /** Variables by name. */
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  readonly workdir: string;
}

/** An image's parts. Each layer is opened twice: for its removals, then for its files. */
export interface ImageParts {
  readonly digest: string;
  readonly config: ImageConfig;
  readonly layers: readonly (() => Readable)[];
}

/** A file's content. */
export type Bytes = AsyncIterable<Buffer>;

/** Larger descriptions of an image are refused, bytes. */
const DOCUMENT_MAX = 8 * 1024 * 1024;
/** How many files an archive of layers may have. */
const ARCHIVE_ENTRIES_MAX = 20_000;
/** How many links lead to a layer at most: `docker save` writes a repeated layer as a link to the first one. */
const LINKS_MAX = 8;
const NO_CONFIG: ImageConfig = { env: {}, user: "", workdir: "" };
const ARCHITECTURE: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** A file without its compression. @param descriptor stays open */
export const decompress = (descriptor: number): Readable => {
  const head = Buffer.alloc(4);
  readSync(descriptor, head, 0, head.length, 0);
  const stream = createReadStream("", { fd: descriptor, start: 0, autoClose: false, highWaterMark: 1 << 20 });
  const decoder = head.subarray(0, GZIP.length).equals(GZIP)
    ? createGunzip()
    : head.equals(ZSTD)
      ? createZstdDecompress()
      : null;
  if (decoder === null) return stream;
  stream.on("error", (error) => decoder.destroy(error));
  return stream.pipe(decoder);
};

/**
 * Calls `onEntry` for each entry of a tar, one after the other. The rest of an entry is skipped.
 * @throws UnpackFailure if the stream is no tar
 */
export const forEachEntry = async (
  tar: Bytes,
  onEntry: (header: Header, content: Bytes) => Promise<void>,
): Promise<void> => {
  const reader = extract();
  const feeding = pipeline(tar, reader as unknown as Writable);
  // An error ends the loop below, too.
  feeding.catch(() => undefined);
  try {
    for await (const entry of reader) {
      await onEntry(entry.header, entry as AsyncIterable<Buffer>);
      entry.resume();
    }
    await feeding;
  } catch (error) {
    reader.destroy();
    if (error instanceof UnpackFailure || (error as NodeJS.ErrnoException).code !== undefined) throw error;
    throw new UnpackFailure(`the archive is damaged: ${thrownText(error)}`);
  }
};

/**
 * Opens an archive.
 * @param descriptor of the archive, a file
 * @param scratch an empty directory for the archive's layers, and how many bytes may be written there
 * @throws UnpackFailure if it holds no image for this machine, or if a part does not have its digest
 */
export const openArchive = async (descriptor: number, scratch: Scratch): Promise<ImageParts> => {
  const { isLayered, digest } = await survey(decompress(descriptor));
  if (!isLayered) return { digest, config: NO_CONFIG, layers: [() => decompress(descriptor)] };
  const parts = await takeApart(decompress(descriptor), scratch);
  return parts.has("index.json") ? ociImage(parts) : dockerImage(parts);
};

interface Scratch {
  readonly directory: string;
  readonly bytes: number;
}

/** @returns whether the tar holds layers, and its digest */
const survey = async (tar: Readable): Promise<{ readonly isLayered: boolean; readonly digest: string }> => {
  const sum = new Sum();
  const names = new Set<string>();
  let entries = 0;
  await forEachEntry(sum.through(tar), async ({ name }) => {
    entries += 1;
    if (name === "index.json" || name === "manifest.json" || name === "oci-layout") names.add(name);
  });
  if (entries === 0) throw new UnpackFailure("the archive is empty");
  return {
    isLayered: names.has("manifest.json") || (names.has("index.json") && names.has("oci-layout")),
    digest: sum.digest,
  };
};

/** The digest and the size of bytes that pass. */
class Sum {
  readonly #hash = createHash("sha256");
  bytes = 0;

  async *through(content: Bytes): AsyncGenerator<Buffer> {
    for await (const chunk of content) {
      this.bytes += chunk.length;
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** To be read once, at the end. */
  get digest(): string {
    return `sha256:${this.#hash.digest("hex")}`;
  }
}

/** A part of an archive: a file of the scratch directory, or a link to another part. */
type Part =
  | { readonly file: string; readonly digest: string; readonly bytes: number }
  | { readonly link: string };
type Parts = ReadonlyMap<string, Part>;

/** Also parts that the image does not name are written: only its description says which ones it needs. */
const takeApart = async (tar: Bytes, scratch: Scratch): Promise<Parts> => {
  const parts = new Map<string, Part>();
  let writtenBytes = 0;
  const countBytes = async function* (content: Bytes): AsyncGenerator<Buffer> {
    for await (const chunk of content) {
      writtenBytes += chunk.length;
      if (writtenBytes > scratch.bytes)
        throw new UnpackFailure(`the archive's parts have more than ${scratch.bytes} bytes`);
      yield chunk;
    }
  };
  await forEachEntry(tar, async ({ name, type, linkname }, content) => {
    if (parts.size >= ARCHIVE_ENTRIES_MAX)
      throw new UnpackFailure(`the archive has more than ${ARCHIVE_ENTRIES_MAX} files`);
    const place = posix.normalize(name);
    if (type === "symlink") parts.set(place, { link: posix.join(posix.dirname(place), linkname) });
    if (type === "link") parts.set(place, { link: posix.normalize(linkname) });
    if (type !== "file" && type !== "contiguous-file") return;
    // The name in the archive is not used for a path.
    const file = join(scratch.directory, String(parts.size));
    const sum = new Sum();
    await pipeline(sum.through(countBytes(content)), createWriteStream(file, { flags: "wx" }));
    parts.set(place, { file, bytes: sum.bytes, digest: sum.digest });
  });
  return parts;
};

const requirePart = (parts: Parts, name: string): Exclude<Part, { readonly link: string }> => {
  let place = posix.normalize(name);
  for (let links = 0; links <= LINKS_MAX; links += 1) {
    const part = parts.get(place);
    if (part === undefined) throw new UnpackFailure(`the archive lacks its part ${name}`);
    if ("file" in part) return part;
    place = part.link;
  }
  throw new UnpackFailure(`the archive's part ${name} is a link to a link`);
};

const readDocument = async (parts: Parts, name: string): Promise<Json> => {
  const { file, bytes } = requirePart(parts, name);
  if (bytes > DOCUMENT_MAX) throw new UnpackFailure(`the archive's part ${name} is too large`);
  try {
    return json(JSON.parse(await readFile(file, "utf8")) as unknown);
  } catch {
    throw new UnpackFailure(`the archive's part ${name} is not JSON`);
  }
};

/** The part with a digest. Its content is checked. */
const requireBlob = (parts: Parts, descriptor: Json): { readonly name: string; readonly file: string } => {
  const digest = descriptor.field("digest").text();
  const name = `blobs/${digest.replace(":", "/")}`;
  const part = requirePart(parts, name);
  if (part.digest !== digest) throw new UnpackFailure(`the archive's part ${digest} has another content`);
  return { name, file: part.file };
};

const openLayer = (file: string): (() => Readable) => {
  const descriptor = openSync(file, "r");
  return () => decompress(descriptor);
};

const ociImage = async (parts: Parts): Promise<ImageParts> => {
  const manifests = await listManifests(parts, await readDocument(parts, "index.json"));
  const [chosen] = manifests;
  if (chosen === undefined)
    throw new UnpackFailure(
      `the archive has no image for linux/${ARCHITECTURE[process.arch] ?? process.arch}`,
    );
  const manifest = await readDocument(parts, requireBlob(parts, chosen).name);
  const config = await readDocument(parts, requireBlob(parts, manifest.field("config")).name);
  refuseOtherMachine(config);
  return {
    digest: chosen.field("digest").text(),
    config: readConfig(config),
    layers: manifest
      .field("layers")
      .list()
      .map((layer) => openLayer(requireBlob(parts, layer).file)),
  };
};

/** The manifests for this machine. An index may name further indexes; one level of them is read. */
const listManifests = async (parts: Parts, index: Json, depth = 1): Promise<Json[]> => {
  const manifests: Json[] = [];
  for (const entry of index.field("manifests").list()) {
    const platform = entry.field("platform");
    const architecture = platform.field("architecture").textOr("");
    if (architecture !== "" && architecture !== ARCHITECTURE[process.arch]) continue;
    if (!/index|manifest\.list/.test(entry.field("mediaType").textOr(""))) manifests.push(entry);
    else if (depth > 0) {
      // eslint-disable-next-line no-await-in-loop -- an archive has one or two
      const inner = await readDocument(parts, requireBlob(parts, entry).name);
      // eslint-disable-next-line no-await-in-loop -- see above
      manifests.push(...(await listManifests(parts, inner, depth - 1)));
    }
  }
  return manifests;
};

const dockerImage = async (parts: Parts): Promise<ImageParts> => {
  const [image, ...others] = (await readDocument(parts, "manifest.json")).list();
  if (image === undefined) throw new UnpackFailure("the archive has no image");
  if (others.length > 0)
    throw new UnpackFailure("the archive has more than one image. Save one image in each archive");
  const name = image.field("Config").text();
  const config = await readDocument(parts, name);
  refuseOtherMachine(config);
  return {
    digest: requirePart(parts, name).digest,
    config: readConfig(config),
    layers: image
      .field("Layers")
      .list()
      .map((layer) => openLayer(requirePart(parts, layer.text()).file)),
  };
};

const refuseOtherMachine = (config: Json): void => {
  const [os, architecture] = [config.field("os").textOr("linux"), config.field("architecture").textOr("")];
  const own = ARCHITECTURE[process.arch] ?? process.arch;
  if (os === "linux" && (architecture === "" || architecture === own)) return;
  throw new UnpackFailure(`the image is for ${os}/${architecture}, and this machine is linux/${own}`);
};

const readConfig = (document: Json): ImageConfig => {
  const config = document.field("config");
  const env = config
    .field("Env")
    .listOr([])
    .map((entry) => entry.textOr(""))
    .filter((entry) => entry.includes("="))
    .map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)] as const);
  return {
    env: Object.fromEntries(env),
    user: config.field("User").textOr(""),
    workdir: config.field("WorkingDir").textOr(""),
  };
};

/** An untrusted JSON value. A missing or wrong part fails where it is needed. */
interface Json {
  readonly field: (name: string) => Json;
  readonly list: () => readonly Json[];
  readonly listOr: (fallback: readonly Json[]) => readonly Json[];
  readonly text: () => string;
  readonly textOr: (fallback: string) => string;
}

const json = (value: unknown, path = ""): Json => {
  const wrong = (expected: string): UnpackFailure =>
    new UnpackFailure(`the archive's description is wrong: ${path || "it"} is not ${expected}`);
  const entries = (): readonly Json[] | null =>
    Array.isArray(value) ? value.map((entry, at) => json(entry, `${path}[${at}]`)) : null;
  return {
    field: (name) => {
      const own = typeof value === "object" && value !== null && Object.hasOwn(value, name);
      return json(
        own ? (value as Record<string, unknown>)[name] : undefined,
        path === "" ? name : `${path}.${name}`,
      );
    },
    list: () => {
      const list = entries();
      if (list === null) throw wrong("a list");
      return list;
    },
    listOr: (fallback) => entries() ?? fallback,
    text: () => {
      if (typeof value !== "string") throw wrong("a text");
      return value;
    },
    textOr: (fallback) => (typeof value === "string" ? value : fallback),
  };
};

/**
 * Images of this machine in a registry, for sandboxes that run elsewhere.
 *
 *  P1 A reference that `ensure` returns names one image by its digest, and the registry has it at that moment.
 *  P2 A part that the registry has already is not sent again.
 *  P3 Calls for one image share one push.
 *
 *     <image's directory>/pushed.json   where the image was pushed to. It goes with the image
 */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import * as Schema from "effect/Schema";
import type { RegistryLocation } from "../../../domain/environment/registry-reference.ts";
import { NetClient } from "../../../ground/net/client.ts";
import type { ImageStore } from "../store.ts";
import { drop, Registry, type RegistryCredentials, RegistryFailure } from "./client.ts";
import { type Blob, MANIFEST_TYPE, type Packable, type PackedImage, withPacked } from "./layer.ts";

/** One request without much content, in milliseconds. */
const CALL_MS = 30_000;
/** One upload, in milliseconds. */
const UPLOAD_MS = 30 * 60_000;

export interface RegistryImagesOptions {
  readonly store: ImageStore;
  /** PLATFORM_IMAGE_REGISTRY */
  readonly location: RegistryLocation;
  /** A file with credentials as container engines write it (PLATFORM_IMAGE_REGISTRY_AUTH). */
  readonly authFile: string | null;
  /** A directory for packed images under way, on a disk. */
  readonly scratch: string;
}

/** What became of an image in the registry. */
export type Forgotten =
  | "removed"
  /** The registry does not have it. */
  | "absent"
  /** The registry refuses removals through its API. Its operator removes images. */
  | "not_supported";

const Pushed = Schema.fromJsonString(Schema.Struct({ place: Schema.String, digest: Schema.String }));
const decodePushed = Schema.decodeUnknownOption(Pushed);

const AuthFile = Schema.fromJsonString(
  Schema.Struct({
    auths: Schema.Record(
      Schema.String,
      Schema.Struct({
        auth: Schema.optionalKey(Schema.String),
        username: Schema.optionalKey(Schema.String),
        password: Schema.optionalKey(Schema.String),
      }),
    ),
  }),
);
const decodeAuthFile = Schema.decodeUnknownOption(AuthFile);

/** The operator's registry may have any address. */
const client = new NetClient({
  allowances: { hosts: "every" },
  connectMs: 10_000,
  silentMs: UPLOAD_MS,
  connections: 64,
});

const wrongFile = (file: string, why: string): RegistryFailure =>
  new RegistryFailure("unauthorized", `PLATFORM_IMAGE_REGISTRY_AUTH is ${file}, ${why}`);

/** Read again for each push, so that new credentials count at once. */
const credentialsIn = async (file: string, host: string): Promise<RegistryCredentials> => {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw wrongFile(file, `which cannot be read (${error.code ?? error.message})`);
  });
  const authFile = decodeAuthFile(text);
  if (authFile._tag === "None")
    throw wrongFile(file, 'which is no file with credentials: {"auths": {"HOST": {"auth": "…"}}}');
  const { auths } = authFile.value;
  const entry = auths[host] ?? auths[`https://${host}`];
  const [user, ...rest] = Buffer.from(entry?.auth ?? "", "base64")
    .toString("utf8")
    .split(":");
  const [username, password] = [entry?.username ?? user ?? "", entry?.password ?? rest.join(":")];
  if (username === "" || password === "")
    throw wrongFile(file, `which has no username and password for ${host}`);
  return { username, password };
};

export class RegistryImages {
  readonly #options: RegistryImagesOptions;
  /** By digest of the image. */
  readonly #pushes = new Map<string, Promise<string>>();

  constructor(options: RegistryImagesOptions) {
    this.#options = options;
  }

  /** Where images are pushed, e.g. `images.example.com/team/platform`. */
  get place(): string {
    const { origin, repository } = this.#options.location;
    return `${new URL(origin).host}/${repository}`;
  }

  /** Removes what the pushes of a killed service left. Only before the first push of this one. */
  async sweep(): Promise<void> {
    await rm(this.#options.scratch, { recursive: true, force: true });
  }

  /**
   * Puts an image into the registry, unless the registry has it.
   * @param name as a sandbox's spec has it
   * @returns its reference by digest. Null if this machine has no image of that name
   * @throws RegistryFailure, or Error if the image cannot be packed
   */
  async ensure(name: string): Promise<string | null> {
    const image = await this.#options.store.find(name);
    return image === null ? null : this.put(image);
  }

  /** The same for files that are no project's image. @throws as `ensure` does */
  async put(image: Packable): Promise<string> {
    const underWay = this.#pushes.get(image.digest);
    if (underWay !== undefined) return underWay;
    const pushing = this.#ensure(image).finally(() => this.#pushes.delete(image.digest));
    this.#pushes.set(image.digest, pushing);
    return pushing;
  }

  /**
   * Removes an image from the registry. Its layers are removed when the registry next collects what is unused, which its operator starts.
   * A sandbox that starts with it later is preceded by another push.
   * @throws RegistryFailure
   */
  async forget(name: string): Promise<Forgotten> {
    const image = await this.#options.store.find(name);
    const digest = image === null ? null : await this.#pushed(image);
    if (digest === null) return "absent";
    const registry = await this.#registry();
    const query = {
      method: "DELETE",
      to: `manifests/${digest}`,
      signal: AbortSignal.timeout(CALL_MS),
    } as const;
    const answer = await registry.request(query, [200, 202, 404, 405]);
    await drop(answer);
    if (answer.statusCode === 405) return "not_supported";
    return answer.statusCode === 404 ? "absent" : "removed";
  }

  async #ensure(image: Packable): Promise<string> {
    const registry = await this.#registry();
    const digest = await this.#pushed(image);
    if (digest !== null && (await isThere(registry, `manifests/${digest}`))) return `${this.place}@${digest}`;
    await this.#options.store.hold(image);
    await mkdir(this.#options.scratch, { recursive: true, mode: 0o700 });
    return withPacked(image, this.#options.scratch, async (packedImage) => {
      await push(registry, packedImage, image.digest.replace(":", "-"));
      await this.#notePush(image, packedImage.manifestDigest);
      return `${this.place}@${packedImage.manifestDigest}`;
    });
  }

  async #registry(): Promise<Registry> {
    const { location, authFile } = this.#options;
    const origin = new URL(location.origin);
    return new Registry({
      place: { origin, repository: location.repository },
      rights: "pull,push",
      credentials: authFile === null ? null : await credentialsIn(authFile, origin.host),
      ask: (request) => client.request(request),
    });
  }

  async #pushed({ root }: Pick<Packable, "root">): Promise<string | null> {
    const text = await readFile(notePath(root), "utf8").catch(() => "");
    const record = decodePushed(text);
    return record._tag === "Some" && record.value.place === this.place ? record.value.digest : null;
  }

  async #notePush({ root }: Pick<Packable, "root">, digest: string): Promise<void> {
    const note = notePath(root);
    await writeFile(`${note}.next`, JSON.stringify({ place: this.place, digest }));
    await rename(`${note}.next`, note);
  }
}

const notePath = (root: string): string => join(dirname(root), "pushed.json");

const isThere = async (registry: Registry, to: string): Promise<boolean> => {
  const headers = { accept: MANIFEST_TYPE };
  const signal = AbortSignal.timeout(CALL_MS);
  const answer = await registry.request({ method: "HEAD", to, headers, signal }, [200, 404]);
  await drop(answer);
  return answer.statusCode === 200;
};

const sendBlob = async (registry: Registry, { digest, bytes, open }: Blob): Promise<void> => {
  if (await isThere(registry, `blobs/${digest}`)) return;
  const signal = AbortSignal.timeout(UPLOAD_MS);
  const upload = await registry.request({ method: "POST", to: "blobs/uploads/", signal }, [202]);
  await drop(upload);
  const { location } = upload.headers;
  const to = URL.parse(typeof location === "string" ? location : "", registry.url("blobs/uploads/").href);
  if (to === null || location === undefined)
    throw new RegistryFailure("unexpected", `${registry.host} named no place for an upload`);
  to.searchParams.set("digest", digest);
  const headers = { "content-type": "application/octet-stream", "content-length": String(bytes) };
  await drop(await registry.request({ method: "PUT", to, headers, body: open, signal }, [201]));
};

/** The tag keeps the image from being collected by the registry. */
const push = async (
  registry: Registry,
  { blobs, manifest, manifestDigest }: PackedImage,
  tag: string,
): Promise<void> => {
  // eslint-disable-next-line no-await-in-loop -- one upload at a time: the layer is large
  for (const blob of blobs) await sendBlob(registry, blob);
  const answer = await registry.request(
    {
      method: "PUT",
      to: `manifests/${tag}`,
      headers: { "content-type": MANIFEST_TYPE, "content-length": String(manifest.length) },
      body: () => Readable.from([manifest]),
      signal: AbortSignal.timeout(CALL_MS),
    },
    [201],
  );
  await drop(answer);
  const digest = answer.headers["docker-content-digest"];
  if (digest !== undefined && digest !== manifestDigest)
    throw new RegistryFailure("unexpected", `${registry.host} has stored another manifest than it was given`);
};

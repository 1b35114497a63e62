/**
 * Requests of sandboxes to the npm registry. Tarballs come through the cache. Everything else passes to the registry and is not kept: it
 * can change.
 *
 *  N1 A tarball's checksum comes from the registry's description of its version, asked with the request's own credentials. It is
 *     believed for `DESCRIBED_MS`, so a withdrawn version is served no longer than that.
 */
import type { IncomingMessage } from "node:http";
import {
  type Checksum,
  isSameNpmPath,
  npmVersionPath,
  readIntegrity,
  readNpmTarball,
} from "../../domain/environment/packages.ts";
import { isRecord } from "../../ground/record.ts";
import { BoundedMap } from "../../ground/bounded-map.ts";
import { type NetClient, readBody } from "../../ground/net/client.ts";
import { type Artefacts, credentialsDigest, artefactScope } from "./artefacts.ts";
import { passOn, type PackageRequest } from "./passing.ts";
import { Turns } from "./turns.ts";
import { sandboxCredentials } from "./upstream.ts";

/** How long a description of a version is believed, in milliseconds. */
const DESCRIBED_MS = 60 * 60_000;
/** How many descriptions are remembered: of each a checksum and a name. */
const DESCRIBED_MAX = 20_000;
/** The largest description that is read. Usual ones have a few kilobytes. */
const DESCRIPTION_BYTES = 1024 ** 2;
/** How many are read at the same time. Further ones wait. */
const DESCRIPTIONS_AT_ONCE = { all: 64, each: 32 };
/** For one description, in milliseconds. */
const DESCRIPTION_MS = 30_000;

interface Described {
  readonly checksum: Checksum;
  readonly untilMs: number;
}

export interface NpmOptions {
  readonly artefacts: Artefacts;
  readonly upstream: NetClient;
  readonly now: () => number;
}

/** Only a whole file, without a condition, comes from the cache. */
const isWholeFile = ({ method, headers }: IncomingMessage): boolean =>
  method === "GET" && headers.range === undefined && headers["transfer-encoding"] === undefined;

export class NpmRequests {
  readonly #options: NpmOptions;
  readonly #described = new BoundedMap<string, Described>(DESCRIBED_MAX);
  readonly #reading = new Turns(DESCRIPTIONS_AT_ONCE);

  constructor(options: NpmOptions) {
    this.#options = options;
  }

  /**
   * @param registry the upstream registry, without a slash at the end
   * @throws Refusal or NetFault before anything was sent
   */
  async serve(request: PackageRequest, registry: URL): Promise<void> {
    const { incoming, outgoing, path, projectId, mayAsk } = request;
    const { artefacts, upstream } = this.#options;
    const base = registry.pathname.replace(/\/$/, "");
    const tarball = path.startsWith(`${base}/`) ? path.slice(base.length) : "";
    if (artefacts.isOn && isWholeFile(incoming) && readNpmTarball(tarball) !== null) {
      const credentials = sandboxCredentials(incoming.headers);
      const query = { credentials, projectId, registry, tarball };
      const checksum = await this.#checksum(query);
      const url = new URL(`${registry.origin}${base}${tarball}`);
      const artefact = { kind: "npm", url, checksum, projectId, credentials } as const;
      if (checksum !== null) return artefacts.serve({ ...artefact, checksum, mayAsk }, outgoing);
    }
    artefacts.count("npm", "passed");
    await passOn(upstream, request, { url: new URL(registry.origin), path, hasCredentials: true });
  }

  async #checksum(query: DescriptionOf): Promise<Checksum | null> {
    const name = [
      artefactScope(query),
      credentialsDigest(query.credentials),
      query.registry.href,
      query.tarball,
    ].join(" ");
    const description = this.#described.get(name);
    if (description !== undefined && description.untilMs > this.#options.now()) return description.checksum;
    const checksum = await this.#reading.run(query.projectId, () => this.#ask(query));
    if (checksum === null) return null;
    this.#described.set(name, { checksum, untilMs: this.#options.now() + DESCRIBED_MS });
    return checksum;
  }

  /** @returns null if the registry does not say it, for any reason: then the request passes to it */
  async #ask({ registry, tarball, credentials }: DescriptionOf): Promise<Checksum | null> {
    const file = readNpmTarball(tarball);
    if (file === null) return null;
    const base = registry.pathname.replace(/\/$/, "");
    try {
      const answer = await this.#options.upstream.request({
        url: registry,
        path: `${base}${npmVersionPath(file)}`,
        headers: { ...credentials, accept: "application/json", "accept-encoding": "identity" },
        withinMs: DESCRIPTION_MS,
      });
      if (answer.statusCode !== 200 || answer.headers["content-encoding"] !== undefined) {
        answer.body.on("error", () => undefined).destroy();
        return null;
      }
      const text = await readBody(answer.body, { host: registry.host, maxBytes: DESCRIPTION_BYTES });
      return checksumIn(JSON.parse(text.toString("utf8")), { file, path: `${base}${tarball}` });
    } catch {
      return null;
    }
  }
}

interface DescriptionOf {
  readonly registry: URL;
  /** Its path below the registry. */
  readonly tarball: string;
  readonly projectId: string;
  readonly credentials: Readonly<Record<string, string>>;
}

/** The checksum of a description of just this file. */
const checksumIn = (
  description: unknown,
  {
    file,
    path,
  }: { readonly file: { readonly name: string; readonly version: string }; readonly path: string },
): Checksum | null => {
  if (!isRecord(description) || description["name"] !== file.name || description["version"] !== file.version)
    return null;
  const { dist } = description;
  if (!isRecord(dist)) return null;
  const { tarball, integrity } = dist;
  if (typeof tarball !== "string" || typeof integrity !== "string") return null;
  const address = URL.parse(tarball);
  return address !== null && isSameNpmPath(address.pathname, path) ? readIntegrity(integrity) : null;
};

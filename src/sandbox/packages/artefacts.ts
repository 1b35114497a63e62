/**
 * Gives package files to sandboxes: from the store, or from the registry and into the store.
 *
 *  F1 A file that is asked for by many at the same time, from one address and with the same credentials, is downloaded once.
 *  F2 A request with credentials gets and leaves files only in its project's scope.
 *  F3 Where the cache cannot take a file, because it is too large, the disk is full or enough downloads run, the sandbox gets the
 *     registry's answer, which its package manager checks. So the cache is never the reason why an installation fails.
 */
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { Checksum, PackageKind } from "../../domain/environment/packages.ts";
import type { MeasuresApi } from "../../telemetry/port.ts";
import type { NetAnswer, NetClient } from "../../ground/net/client.ts";
import { NetFault } from "../../ground/net/fault.ts";
import { Refusal } from "../egress-messages.ts";
import { Download } from "./download.ts";
import { leaving } from "./passing.ts";
import { type ArtefactStore, PUBLIC, StoreFull } from "./store.ts";

export interface ArtefactLimits {
  /** The largest file that is kept, in bytes. Also at most half of the store. */
  readonly fileBytes: number;
  /** How many files are downloaded into the store at the same time. */
  readonly downloads: number;
  /** For one download, in milliseconds. */
  readonly downloadMs: number;
}

const REDIRECTS = 5;

export const ARTEFACT_LIMITS: ArtefactLimits = {
  fileBytes: 1024 ** 3,
  downloads: 64,
  downloadMs: 15 * 60_000,
};

export interface ArtefactOptions {
  /** Null if nothing is kept. */
  readonly store: ArtefactStore | null;
  /** All files together, in bytes. */
  readonly storeBytes: number;
  readonly upstream: NetClient;
  readonly measures: MeasuresApi;
  readonly now: () => number;
  readonly limits?: ArtefactLimits;
}

export interface ArtefactRequest {
  readonly kind: PackageKind;
  readonly url: URL;
  readonly checksum: Checksum;
  readonly projectId: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly mayAsk: (url: URL) => boolean;
}

/** What became of a request, for figures. `passed`: the answer was not for the cache. */
export type PackageOutcome = "hit" | "miss" | "joined" | "passed" | "failed";

/** A digest of credentials: they are no part of a name in memory. */
export const credentialsDigest = (credentials: Readonly<Record<string, string>>): string =>
  createHash("sha256")
    .update(JSON.stringify([credentials["authorization"] ?? null, credentials["cookie"] ?? null]))
    .digest("hex");

/** Only files that anyone gets without credentials are for all projects (F2). */
export const artefactScope = ({
  projectId,
  credentials,
}: Pick<ArtefactRequest, "projectId" | "credentials">): string =>
  Object.keys(credentials).length === 0 ? PUBLIC : projectId;

export class Artefacts {
  readonly #options: ArtefactOptions;
  readonly #limits: ArtefactLimits;
  /** Downloads, and those that are about to begin. Null if the file does not go through the store. */
  readonly #running = new Map<string, Promise<Download | null>>();

  constructor(options: ArtefactOptions) {
    this.#options = options;
    this.#limits = options.limits ?? ARTEFACT_LIMITS;
  }

  /** Whether files are kept at all. */
  get isOn(): boolean {
    return this.#options.store !== null;
  }

  /**
   * Answers a request for a file.
   * @throws Refusal or NetFault before anything was sent
   */
  async serve(wish: ArtefactRequest, outgoing: ServerResponse): Promise<void> {
    try {
      if (await this.#fromStore(wish, outgoing)) return;
      await this.#fromRegistry(wish, outgoing);
    } catch (error) {
      // Any other error: the sandbox left.
      if (error instanceof Refusal || error instanceof NetFault) this.count(wish.kind, "failed");
      throw error;
    }
  }

  count(kind: PackageKind, outcome: PackageOutcome): void {
    this.#options.measures.count("package_requests_total", { kind, outcome });
  }

  async #fromStore(wish: ArtefactRequest, outgoing: ServerResponse): Promise<boolean> {
    const { store, now } = this.#options;
    const artefact =
      (await store?.find({ scope: artefactScope(wish), checksum: wish.checksum }, now())) ?? null;
    if (artefact === null) return false;
    this.count(wish.kind, "hit");
    const stream = artefact.handle.createReadStream({ autoClose: true });
    await this.#send(stream, artefact.bytes, { wanted: wish, outgoing, from: "cache" });
    return true;
  }

  async #fromRegistry(wish: ArtefactRequest, outgoing: ServerResponse): Promise<void> {
    const { download, isFirst } = await this.#download(wish);
    if (download === null) return this.#direct(wish, outgoing);
    const chunks = download.read();
    try {
      // Nothing is sent before a first byte may be: until then, a failure has a status of its own.
      const first = await chunks.next();
      this.count(wish.kind, isFirst ? "miss" : "joined");
      const all = (async function* () {
        if (first.done !== true) yield first.value;
        yield* chunks;
      })();
      await this.#send(all, download.bytes, { wanted: wish, outgoing, from: isFirst ? "registry" : "cache" });
    } catch (error) {
      if (!(error instanceof StoreFull) || outgoing.headersSent) throw error;
      await this.#direct(wish, outgoing);
    }
  }

  /** Joins the download of the same file, or begins it (F1). */
  async #download(
    wish: ArtefactRequest,
  ): Promise<{ readonly download: Download | null; readonly isFirst: boolean }> {
    const { store } = this.#options;
    // The address is a part of the name: who claims a wrong checksum for an address disturbs no request for another one.
    const name = [
      artefactScope(wish),
      credentialsDigest(wish.credentials),
      wish.checksum.hex,
      wish.url.href,
    ].join(" ");
    const running = this.#running.get(name);
    if (running !== undefined) return { download: await running, isFirst: false };
    if (store === null || this.#running.size >= this.#limits.downloads)
      return { download: null, isFirst: true };
    const beginning = this.#begin(wish, store);
    this.#running.set(name, beginning);
    const forget = (): boolean => this.#running.get(name) === beginning && this.#running.delete(name);
    beginning.then((download) => (download === null ? forget() : void download.ended.then(forget)), forget);
    return { download: await beginning, isFirst: true };
  }

  async #begin(wish: ArtefactRequest, store: ArtefactStore): Promise<Download | null> {
    const { now, storeBytes } = this.#options;
    const maxBytes = Math.min(this.#limits.fileBytes, Math.floor(storeBytes / 2));
    const answer = await this.#ask(wish, AbortSignal.timeout(this.#limits.downloadMs));
    const bytes = contentLength(answer);
    try {
      // Its own reader gets the answer of a registry that says no.
      if (answer.statusCode === 200 && (bytes ?? 0) <= maxBytes) {
        const key = { scope: artefactScope(wish), checksum: wish.checksum };
        const { host } = wish.url;
        return await Download.begin({ store, key, maxBytes, host, now }, { bytes, body: answer.body });
      }
    } catch (error) {
      if (!(error instanceof StoreFull)) throw error;
    }
    answer.body.on("error", () => undefined).destroy();
    return null;
  }

  /** The registry's own answer (F3). */
  async #direct(wish: ArtefactRequest, outgoing: ServerResponse): Promise<void> {
    const answer = await this.#ask(wish, leaving({ outgoing }));
    const { statusCode } = answer;
    if (statusCode !== 200) {
      answer.body.on("error", () => undefined).destroy();
      const error = `${wish.url.host} answered with status ${statusCode}`;
      if (!REFUSALS.has(statusCode)) throw new Refusal(502, error);
      outgoing.writeHead(statusCode, { "content-type": "application/json" });
      outgoing.end(`${JSON.stringify({ error })}\n`);
    }
    this.count(wish.kind, "passed");
    if (statusCode === 200)
      await this.#send(answer.body, contentLength(answer), { wanted: wish, outgoing, from: "registry" });
  }

  async #ask({ url, credentials, mayAsk }: ArtefactRequest, signal: AbortSignal): Promise<NetAnswer> {
    if (!mayAsk(url)) throw new Refusal(403, `${url.hostname} is not on the list of allowed hosts`);
    // Not compressed on the way: the checksum and the length are those of the file.
    const headers = { ...credentials, accept: "*/*", "accept-encoding": "identity" };
    return this.#options.upstream.follow({ url, headers, signal }, { limit: REDIRECTS, mayAsk });
  }

  async #send(
    body: AsyncIterable<Uint8Array>,
    bytes: number | null,
    { wanted, outgoing, from }: Sending,
  ): Promise<void> {
    outgoing.writeHead(200, {
      "content-type": "application/octet-stream",
      ...(bytes !== null && { "content-length": bytes }),
    });
    let sentBytes = 0;
    const countBytes = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        sentBytes += chunk.length;
        yield chunk;
      }
    };
    try {
      await pipeline(body, countBytes, outgoing);
    } finally {
      this.#options.measures.count(
        "package_bytes_total",
        { kind: wanted.kind, outcome: `from_${from}` },
        sentBytes,
      );
    }
  }
}

interface Sending {
  readonly wanted: ArtefactRequest;
  readonly outgoing: ServerResponse;
  readonly from: "cache" | "registry";
}

/** A registry's answers that a package manager understands. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 404, 410, 429]);

const contentLength = ({ headers }: NetAnswer): number | null => {
  const text = headers["content-length"];
  return typeof text === "string" && /^\d{1,15}$/.test(text) ? Number(text) : null;
};

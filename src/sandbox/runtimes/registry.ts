/** The operator's side of a registry of agents (domain/runtimes/registry.ts): reads it, and downloads archives that its entries name. */
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { trustedHosts } from "../../ground/net/address.ts";
import { type NetAnswer, NetClient, readBody } from "../../ground/net/client.ts";
import { NetFault, toFault } from "../../ground/net/fault.ts";

/** The protocol's own registry has some 40 kB. */
const REGISTRY_BYTES = 4 * 1024 * 1024;
const ARCHIVE_BYTES = 1024 ** 3;
const SILENT_MS = 60_000;
/** For one archive, as for a package of npm. */
const WITHIN_MS = 15 * 60_000;
const REDIRECTS = 5;

/** The checksums of a file, in the forms that people compare. */
export interface Checksums {
  /** `sha256:…` in hexadecimal digits. */
  readonly hex: string;
  /** `sha256-…` and `sha512-…` in Base64, as npm writes them. */
  readonly sha256: string;
  readonly sha512: string;
}

/** The registry that an operator names: a file or an address. */
export class AgentRegistry {
  readonly #place: string;
  readonly #url: URL | null;
  readonly #client: NetClient;

  constructor(place: string) {
    this.#place = place;
    this.#url = /^https?:\/\//.test(place) ? new URL(place) : null;
    this.#client = new NetClient({
      // The operator has named this host. An archive is on any public host, by https.
      allowances: trustedHosts(this.#url === null ? [] : [this.#url.hostname]),
      connectMs: 10_000,
      silentMs: SILENT_MS,
      connections: 2,
    });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** @throws Error if it cannot be read */
  async read(): Promise<string> {
    if (this.#url === null) {
      await using file = await open(this.#place);
      const stats = await file.stat();
      if (stats.isDirectory())
        throw new Error(`${this.#place} is a directory. Name the file of the registry in it.`);
      if (stats.size > REGISTRY_BYTES)
        throw new Error(`${this.#place} has more than ${REGISTRY_BYTES} bytes.`);
      return await file.readFile("utf8");
    }
    const { body } = await this.#get(this.#url);
    const host = this.#url.hostname;
    return (await readBody(body, { host, maxBytes: REGISTRY_BYTES })).toString("utf8");
  }

  /** Downloads an archive into a file. @throws Error */
  async download(url: URL, file: string): Promise<Checksums> {
    const { body } = await this.#get(url);
    const [sha256, sha512] = [createHash("sha256"), createHash("sha512")];
    const host = url.hostname;
    async function* summed(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      let bytes = 0;
      try {
        for await (const chunk of source) {
          bytes += chunk.length;
          if (bytes > ARCHIVE_BYTES) throw new NetFault(host, { _tag: "TooLarge", maxBytes: ARCHIVE_BYTES });
          for (const sum of [sha256, sha512]) sum.update(chunk);
          yield chunk;
        }
      } catch (error) {
        throw toFault(error, { host, withinMs: WITHIN_MS });
      }
    }
    await pipeline(body, summed, createWriteStream(file, { flags: "wx" }));
    const digest = sha256.digest();
    return {
      hex: `sha256:${digest.toString("hex")}`,
      sha256: `sha256-${digest.toString("base64")}`,
      sha512: `sha512-${sha512.digest("base64")}`,
    };
  }

  async #get(url: URL): Promise<NetAnswer> {
    const answer = await this.#client.follow(
      { url, headers: {}, withinMs: WITHIN_MS },
      {
        limit: REDIRECTS,
        mayAsk: ({ protocol, hostname }) => protocol === "https:" || this.#client.isTrusted(hostname),
      },
    );
    if (answer.statusCode === 200) return answer;
    answer.body.on("error", () => undefined).destroy();
    throw new Error(`${url.href} answers with the status ${answer.statusCode}.`);
  }
}

/**
 * Requests of sandboxes to the Python package index. Files come through the cache. Index pages are asked for each time, and their links
 * to files with a checksum lead here.
 *
 *  Y1 A link's checksum becomes a part of its address here. A sandbox can claim a checksum, but a file is kept only under the one it has.
 *  Y2 A page is read up to `PAGE_BYTES`, compressed and unpacked. A larger one is refused. Few are in memory at the same time, also
 *     if sandboxes do not read them.
 *  Y3 A file may be on another host than the index. The sandbox must be allowed to reach that host, and credentials stay with the index.
 *  Y4 Files of an index may be anywhere on its host. A sandbox can ask there for files of packages alone.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import {
  PYPI_INDEX,
  type PypiFile,
  isPypiFile,
  readPypiFile,
  readPypiProject,
} from "../../domain/environment/packages.ts";
import { type NetAnswer, type NetClient, readBody } from "../../ground/net/client.ts";
import { NetFault } from "../../ground/net/fault.ts";
import { isBelow } from "../../ground/net/path.ts";
import { Refusal } from "../egress-messages.ts";
import type { Artefacts } from "./artefacts.ts";
import { rewriteHtml, rewriteJson } from "./index-page.ts";
import { leaving, passOn, type PackageRequest } from "./passing.ts";
import { Turns } from "./turns.ts";
import { sandboxCredentials } from "./upstream.ts";

/** The largest index page. PyPI's longest ones have a few megabytes. */
const PAGE_BYTES = 16 * 1024 ** 2;
/** How many pages are in memory at the same time. Further ones wait. */
const PAGES_AT_ONCE = { all: 16, each: 4 };
/** How long one may be there: for the registry, and for a sandbox that reads slowly. In milliseconds. */
const PAGE_MS = 120_000;

const unpack = promisify(gunzip);

export interface PypiOptions {
  readonly artefacts: Artefacts;
  readonly upstream: NetClient;
  /** Y2; tests need less. */
  readonly pageBytes?: number;
}

export class PypiRequests {
  readonly #options: PypiOptions;
  readonly #pages = new Turns(PAGES_AT_ONCE);

  constructor(options: PypiOptions) {
    this.#options = options;
  }

  /**
   * @param index the upstream index, without a slash at the end
   * @throws Refusal or NetFault before anything was sent
   */
  async serve(request: PackageRequest, index: URL): Promise<void> {
    const { incoming, path } = request;
    if (incoming.method !== "GET" && incoming.method !== "HEAD")
      throw new Refusal(403, "the package index of sandboxes is only read");
    const project = readPypiProject(path);
    if (project !== null) return this.#page(request, new URL(`${index.href.replace(/\/$/, "")}/${project}`));
    const file = readPypiFile(path);
    if (file === null)
      throw new Refusal(400, `not an address of this package index. It begins with ${PYPI_INDEX}`);
    await this.#file(request, file, file.url.origin === index.origin);
  }

  /** @param isOfIndex whether credentials for the index are for the file, too (Y3) */
  async #file(request: PackageRequest, file: PypiFile, isOfIndex: boolean): Promise<void> {
    const { incoming, outgoing, projectId, mayAsk } = request;
    const { url, checksum, isMetadata } = file;
    if (isOfIndex && !(isPypiFile(url.pathname) && isBelow("/", url.pathname)))
      throw new Refusal(403, "not a file of a Python package");
    const credentials = isOfIndex ? sandboxCredentials(incoming.headers) : {};
    const { artefacts, upstream } = this.#options;
    const isWhole = incoming.method === "GET" && incoming.headers.range === undefined;
    if (artefacts.isOn && isWhole && !isMetadata) {
      const artefact = { kind: "pypi", url, checksum, projectId, credentials, mayAsk } as const;
      return artefacts.serve(artefact, outgoing);
    }
    if (!mayAsk(url)) throw new Refusal(403, `${url.hostname} is not on the list of allowed hosts`);
    artefacts.count("pypi", "passed");
    await passOn(upstream, request, { url, path: url.pathname, hasCredentials: isOfIndex });
  }

  async #page(request: PackageRequest, url: URL): Promise<void> {
    this.#options.artefacts.count("pypi", "passed");
    await this.#pages.run(request.projectId, () => this.#rewritten(request, url));
  }

  async #rewritten(request: PackageRequest, url: URL): Promise<void> {
    const { incoming, outgoing } = request;
    if (outgoing.destroyed) return;
    const signal = AbortSignal.any([leaving(request), AbortSignal.timeout(PAGE_MS)]);
    const { accept, "user-agent": agent, "if-none-match": known } = incoming.headers;
    const answer = await this.#options.upstream.request({
      url,
      method: incoming.method ?? "GET",
      headers: {
        ...sandboxCredentials(incoming.headers),
        "accept-encoding": "gzip",
        ...(accept !== undefined && { accept }),
        ...(agent !== undefined && { "user-agent": agent }),
        ...(known !== undefined && { "if-none-match": known }),
      },
      signal,
    });
    const body = await this.#body(answer, url);
    const { location } = answer.headers;
    const to = typeof location === "string" ? redirectTarget(location, url) : null;
    const type = String(answer.headers["content-type"] ?? "");
    const isPage = answer.statusCode === 200 && incoming.method === "GET";
    const page = isPage ? rewrite(body, type, url) : body;
    outgoing.writeHead(answer.statusCode, {
      "content-type": type,
      "content-length": page.length,
      ...(to !== null && { location: to }),
      ...keptHeaders(answer),
    });
    if (incoming.method === "HEAD") outgoing.end();
    else await pipeline(Readable.from([page]), outgoing, { signal });
  }

  /** Y2 */
  async #body({ body, headers }: NetAnswer, { host }: URL): Promise<Buffer> {
    const { pageBytes = PAGE_BYTES } = this.#options;
    const content = await readBody(body, { host, maxBytes: pageBytes });
    const encoding = headers["content-encoding"] ?? "identity";
    if (encoding === "identity" || content.length === 0) return content;
    if (encoding !== "gzip")
      throw new Refusal(502, `${host} sent an index page in an encoding that was not asked for`);
    return unpack(content, { maxOutputLength: pageBytes }).catch((error: unknown) => {
      const isLarge = error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
      throw isLarge
        ? new NetFault(host, { _tag: "TooLarge", maxBytes: pageBytes })
        : new Refusal(502, `${host} sent an index page that cannot be unpacked`);
    });
  }
}

const rewrite = (body: Buffer, type: string, url: URL): Buffer => {
  if (/^application\/vnd\.pypi\.simple\.v1\+json\b/i.test(type)) return rewriteJson(body, url);
  if (/^(?:text\/html|application\/vnd\.pypi\.simple\.v1\+html)\b/i.test(type)) return rewriteHtml(body, url);
  throw new Refusal(502, `${url.host} answered with something that is not an index page`);
};

/** pip asks again with the tag of its copy. The rewritten page changes only with the original. */
const keptHeaders = ({ headers }: NetAnswer): Record<string, string> =>
  Object.fromEntries(
    ["etag", "cache-control", "www-authenticate"].flatMap((name) => {
      const value = headers[name];
      return typeof value === "string" ? [[name, value] as const] : [];
    }),
  );

/** A redirect within the index stays within ours. Any other one leads outside, where the sandbox's own rules hold. */
const redirectTarget = (location: string, url: URL): string => {
  const to = URL.parse(location, url.href);
  const index = new URL("../", url).href;
  return to?.href.startsWith(index) === true
    ? `${PYPI_INDEX}${to.href.slice(index.length)}`
    : (to?.href ?? location);
};

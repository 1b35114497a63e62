/**
 * A small package registry: npm's documents and tarballs, and a Python index with its files. It records what it is asked, and answers
 * wrongly where a test says so.
 */
import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { integrity, sha256 } from "./package-files.ts";

export interface RegistryRequest {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly authorization: string | undefined;
}

const json = (value: unknown) => ({
  type: "application/json",
  body: Buffer.from(JSON.stringify(value)),
});

/** Answers in the registry's place. False: the registry answers. */
export type Answering = (request: IncomingMessage, response: ServerResponse) => boolean;

interface NpmPackage {
  readonly version: string;
  readonly tarball: Buffer;
}

export class PackageRegistry {
  readonly port: number;
  readonly asked: RegistryRequest[] = [];
  /** How packages name the registry themselves, e.g. `https://registry.test`. */
  publicUrl: string;
  answering: Answering = () => false;
  /** A token without which there is 401. */
  token: string | null = null;
  readonly #npm = new Map<string, NpmPackage>();
  readonly #wheels = new Map<string, Buffer>();
  readonly #close: () => void;

  private constructor(port: number, close: () => void) {
    this.port = port;
    this.publicUrl = `http://registry.test:${port}`;
    this.#close = close;
  }

  /** @param host the loopback address on which it listens */
  static async open(host = "127.0.0.1"): Promise<PackageRegistry> {
    const open = new Set<Socket>();
    const server = createServer((request, response) => registry.#answer(request, response));
    server.on("connection", (socket: Socket) => open.add(socket));
    server.listen(0, host);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const registry = new PackageRegistry(port, () => {
      server.close();
      for (const socket of open) socket.destroy();
    });
    return registry;
  }

  close(): void {
    this.#close();
  }

  addNpm(name: string, version: string, tarball: Buffer): void {
    this.#npm.set(name, { version, tarball });
  }

  /** @param file e.g. `name-1.0.0-py3-none-any.whl` */
  addWheel(file: string, content: Buffer): void {
    this.#wheels.set(file, content);
  }

  /** The paths of requests so far, without those that match. */
  paths(except = /^$/): string[] {
    return this.asked.map(({ path }) => path).filter((path) => !except.test(path));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { method = "", url = "", headers } = request;
    const { authorization, host = "" } = headers;
    this.asked.push({ method, path: url, host, authorization });
    if (this.answering(request, response)) return;
    if (this.token !== null && authorization !== `Bearer ${this.token}`) {
      response.writeHead(401).end("who are you?");
      return;
    }
    const found = this.#npmAnswer(url) ?? this.#pypiAnswer(url, headers.accept ?? "");
    if (found === null) {
      response.writeHead(404, { "content-type": "application/json" }).end("{}");
      return;
    }
    response.writeHead(200, { "content-type": found.type, "content-length": found.body.length, etag: '"1"' });
    response.end(found.body);
  }

  #description(name: string, { version, tarball }: NpmPackage) {
    const file = `${name.slice(name.indexOf("/") + 1)}-${version}.tgz`;
    return {
      name,
      version,
      main: "index.js",
      dist: { integrity: integrity(tarball), tarball: `${this.publicUrl}/${name}/-/${file}` },
    };
  }

  #npmAnswer(url: string): { readonly type: string; readonly body: Buffer } | null {
    const path = url.slice(1).replace(/%2f/i, "/");
    for (const [name, one] of this.#npm) {
      const described = this.#description(name, one);
      if (path === name)
        return json({ name, "dist-tags": { latest: one.version }, versions: { [one.version]: described } });
      if (path === `${name}/${one.version}`) return json(described);
      if (path === new URL(described.dist.tarball).pathname.slice(1))
        return { type: "application/octet-stream", body: one.tarball };
    }
    return null;
  }

  #pypiAnswer(url: string, accept: string): { readonly type: string; readonly body: Buffer } | null {
    const [, kind, name = ""] = url.split("/");
    if (kind === "wheels") {
      const body = this.#wheels.get(name);
      return body === undefined ? null : { type: "application/zip", body };
    }
    if (kind !== "simple" || name === "") return null;
    const files = [...this.#wheels].filter(([file]) => file.startsWith(`${name}-`));
    if (files.length === 0) return null;
    if (accept.includes("simple.v1+json")) {
      const listed = files.map(([filename, content]) => ({
        filename,
        url: `../../wheels/${filename}`,
        hashes: { sha256: sha256(content) },
      }));
      const body = Buffer.from(JSON.stringify({ meta: { "api-version": "1.0" }, name, files: listed }));
      return { type: "application/vnd.pypi.simple.v1+json", body };
    }
    const links = files.map(
      ([file, content]) => `<a href="../../wheels/${file}#sha256=${sha256(content)}">${file}</a>`,
    );
    return { type: "text/html", body: Buffer.from(`<!DOCTYPE html><body>${links.join("\n")}</body>`) };
  }
}

/**
 * A small registry of container images, as OCI's distribution protocol has it. It checks every digest, gives tokens like those that
 * are known, and refuses what a test says.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";

export const digestOf = (content: Uint8Array): string =>
  `sha256:${createHash("sha256").update(content).digest("hex")}`;

/** Who may do what. `token`: the registry asks for a token, which its own server gives. */
export interface RegistryAccess {
  readonly scheme: "basic" | "token";
  readonly username: string;
  readonly password: string;
  /** Whether a token for reading is given without credentials. */
  readonly isPublic: boolean;
}

type Answering = (request: IncomingMessage, response: ServerResponse) => boolean;

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

const refuse = (response: ServerResponse, status: number, code: string, headers = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ errors: [{ code, message: `this is ${code}` }] }));
};

export class ImageRegistry {
  readonly port: number;
  /** Requests so far: `PUT /v2/…`. */
  readonly asked: string[] = [];
  /** By repository and digest. */
  readonly blobs = new Map<string, Buffer>();
  /** By repository, and tag or digest. */
  readonly manifests = new Map<string, Buffer>();
  access: RegistryAccess | null = null;
  /** Answers in the registry's place. False: the registry answers. */
  answering: Answering = () => false;
  /** Whether manifests can be removed. */
  allowsRemoval = false;
  /** Whether it names the digest of a manifest in a header. */
  namesDigests = true;
  readonly #close: () => void;
  #uploads = 0;

  private constructor(port: number, close: () => void) {
    this.port = port;
    this.#close = close;
  }

  static async open(port = 0): Promise<ImageRegistry> {
    const open = new Set<Socket>();
    const server = createServer((request, response) => {
      registry.#answer(request, response).catch(() => response.destroy());
    });
    server.on("connection", (socket: Socket) => open.add(socket));
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const registry = new ImageRegistry((server.address() as AddressInfo).port, () => {
      server.close();
      for (const socket of open) socket.destroy();
    });
    return registry;
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  close(): void {
    this.#close();
  }

  /** A tag stands for this manifest from now on. @returns its digest */
  tag(repository: string, tag: string, content: string): string {
    const bytes = Buffer.from(content);
    this.manifests.set(`${repository} ${tag}`, bytes);
    this.manifests.set(`${repository} ${digestOf(bytes)}`, bytes);
    return digestOf(bytes);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "" } = request;
    this.asked.push(`${method} ${url}`);
    const target = new URL(url, `http://${this.host}`);
    if (target.pathname === "/token") return this.#giveToken(request, target, response);
    if (this.answering(request, response)) return;
    if (!this.#isKnown(request)) {
      const { scheme } = this.access ?? { scheme: "basic" };
      const challenge =
        scheme === "basic"
          ? 'Basic realm="images"'
          : `Bearer realm="http://${this.host}/token",service="images"`;
      return refuse(response, 401, "UNAUTHORIZED", { "www-authenticate": challenge });
    }
    const [, repository = "", kind = "", rest = ""] =
      /^\/v2\/(.+)\/(blobs|manifests)\/(.*)$/.exec(target.pathname) ?? [];
    if (kind === "manifests") return this.#manifest(request, response, { repository, reference: rest });
    if (kind === "blobs") return this.#blob(request, response, { repository, rest, target });
    refuse(response, 404, "NAME_UNKNOWN");
  }

  #giveToken({ headers }: IncomingMessage, target: URL, response: ServerResponse): void {
    const { username, password, isPublic } = this.access ?? { username: "", password: "", isPublic: true };
    const given = headers.authorization;
    const isUser = given === `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    const isReading = target.searchParams.get("scope")?.endsWith(":pull") === true;
    if (!isUser && !(isPublic && isReading && given === undefined))
      return refuse(response, 401, "UNAUTHORIZED");
    response.end(JSON.stringify({ token: isUser ? "of-the-user" : "of-everybody" }));
  }

  #isKnown({ headers: { authorization }, method = "" }: IncomingMessage): boolean {
    if (this.access === null) return true;
    const { scheme, username, password } = this.access;
    if (scheme === "basic")
      return authorization === `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    const isReading = method === "GET" || method === "HEAD";
    return authorization === "Bearer of-the-user" || (isReading && authorization === "Bearer of-everybody");
  }

  async #manifest(
    request: IncomingMessage,
    response: ServerResponse,
    { repository, reference }: { readonly repository: string; readonly reference: string },
  ): Promise<void> {
    if (request.method === "DELETE") {
      if (!this.allowsRemoval) return refuse(response, 405, "UNSUPPORTED");
      const removed = this.manifests.get(`${repository} ${reference}`);
      if (removed === undefined) return refuse(response, 404, "MANIFEST_UNKNOWN");
      for (const [name, content] of this.manifests) if (content === removed) this.manifests.delete(name);
      return void response.writeHead(202).end();
    }
    if (request.method !== "PUT") {
      const found = this.manifests.get(`${repository} ${reference}`);
      if (found === undefined) return refuse(response, 404, "MANIFEST_UNKNOWN");
      const named = this.namesDigests ? { "docker-content-digest": digestOf(found) } : {};
      response.writeHead(200, { "content-length": found.length, ...named });
      return void response.end(request.method === "HEAD" ? undefined : found);
    }
    const content = await bodyOf(request);
    const { config, layers } = JSON.parse(content.toString("utf8")) as {
      readonly config: { readonly digest: string };
      readonly layers: readonly { readonly digest: string }[];
    };
    for (const { digest } of [config, ...layers])
      if (!this.blobs.has(`${repository} ${digest}`)) return refuse(response, 400, "MANIFEST_BLOB_UNKNOWN");
    if (reference.startsWith("sha256:") && reference !== digestOf(content))
      return refuse(response, 400, "DIGEST_INVALID");
    this.tag(repository, reference, content.toString("utf8"));
    response.writeHead(201, { "docker-content-digest": digestOf(content) }).end();
  }

  async #blob(
    request: IncomingMessage,
    response: ServerResponse,
    {
      repository,
      rest,
      target,
    }: { readonly repository: string; readonly rest: string; readonly target: URL },
  ): Promise<void> {
    const { method = "" } = request;
    if (method === "POST" && rest === "uploads/") {
      this.#uploads += 1;
      const location = `/v2/${repository}/blobs/uploads/${this.#uploads}?state=1`;
      return void response.writeHead(202, { location }).end();
    }
    if (method === "PUT" && rest.startsWith("uploads/")) {
      const content = await bodyOf(request);
      const digest = target.searchParams.get("digest") ?? "";
      if (target.searchParams.get("state") !== "1") return refuse(response, 404, "BLOB_UPLOAD_UNKNOWN");
      if (digest !== digestOf(content)) return refuse(response, 400, "DIGEST_INVALID");
      this.blobs.set(`${repository} ${digest}`, content);
      return void response.writeHead(201, { "docker-content-digest": digest }).end();
    }
    const found = this.blobs.get(`${repository} ${rest}`);
    if (found === undefined) return refuse(response, 404, "BLOB_UNKNOWN");
    response.writeHead(200, { "content-length": found.length }).end(method === "HEAD" ? undefined : found);
  }
}

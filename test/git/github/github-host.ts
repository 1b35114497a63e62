/**
 * A code host as its public API description has it, over bare repositories of the test: the API and git's
 * `http-backend` show the same refs. A test chooses its faults, request by request.
 */
import { createHash, generateKeyPairSync, randomBytes, verify } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { git, gitOk } from "../git-client.ts";
import { type Answer, HostPulls, notFound, OWNER, said, tipOf } from "./github-host-pulls.ts";
import { serve as serveGit } from "../external/upstream-server.ts";

/** What happens to an API request instead of its answer. */
export type ApiFault =
  /** Nothing, for ever; `slow` after the head and a first byte. */
  | { readonly kind: "hang" | "slow" }
  | {
      readonly kind: "status";
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** The connection ends before it is done; `mute` afterwards, without a word. */
  | { readonly kind: "die" | "mute" };

export interface Heard {
  /** `GET /repos/…`, without the base. */
  readonly call: string;
  readonly token: string;
  status: number;
}

const BASE = "/api/v3";

const parts = (token: string): unknown[] =>
  token
    .split(".")
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, "base64url").toString("utf8")) as unknown);

export class GithubHost {
  readonly heard: Heard[] = [];
  /** Asked for every API request that was let in. */
  fault: (call: string) => ApiFault | null = () => null;
  /** Why a push to the branch is refused by the host's rules; null: it is not. */
  protect: (name: string) => boolean = () => false;
  /** Whether git is served; the API is in any case. */
  servesGit = true;
  /** Requests of gits, let in or not. */
  gitKnocks = 0;
  limit = { remaining: 5000, reset: Math.floor(new Date().getTime() / 1000) + 3600 };
  /** Tokens that are let in. */
  readonly tokens = new Set<string>();
  /** Whether a token may write. */
  mayPush: (token: string) => boolean = () => true;
  /** The permissions of an app's tokens. */
  grants: Readonly<Record<string, string>> = { contents: "write", pull_requests: "write" };
  /** Whether the app's installation reaches the repository. */
  installedOn: (name: string) => boolean = () => true;
  isArchived = false;
  readonly app = {
    app_id: "4711",
    installation_id: "815",
    private_key: "",
  };
  /** ms that a minted token lives. */
  mintedLifeMs = 3_600_000;
  readonly minted: string[] = [];
  readonly #publicKey: string;
  readonly #root: string;
  readonly #server;
  readonly pulls: HostPulls;
  origin = "";

  constructor(root: string) {
    this.#root = root;
    this.pulls = new HostPulls(root);
    const { privateKey, publicKey } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      privateKeyEncoding: { type: "pkcs1", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    this.app.private_key = privateKey;
    this.#publicKey = publicKey;
    this.#server = createServer((request, response) => void this.#handle(request, response));
  }

  /** Makes a token that is let in. */
  token(): string {
    const token = `ghp_canary${randomBytes(12).toString("hex")}`;
    this.tokens.add(token);
    return token;
  }

  async open(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    // oxlint-disable-next-line typescript/consistent-type-assertions -- a TCP server's address is an object
    this.origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  get apiUrl(): string {
    return `${this.origin}${BASE}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Calls that begin so, as they were heard. */
  calls(start: string): readonly Heard[] {
    return this.heard.filter(({ call }) => call.startsWith(start));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = request.url ?? "";
    if (!target.startsWith(`${BASE}/`)) return this.#git(request, response);
    const call = `${request.method} ${target.slice(BASE.length)}`;
    const token = (request.headers.authorization ?? "").replace(/^Bearer /, "");
    const heard: Heard = { call, token, status: 0 };
    this.heard.push(heard);
    const body = await this.#bodyOf(request);
    const fault = this.fault(call);
    if (fault?.kind === "hang") return;
    if (fault?.kind === "die") return void request.socket.destroy();
    if (fault?.kind === "slow") {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.write("{");
    }
    if (fault?.kind === "status") {
      heard.status = fault.status;
      response.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
      return void response.end(fault.body ?? "{}");
    }
    const answer = await this.#answer(call, token, body);
    if (fault?.kind === "mute") return void request.socket.destroy();
    heard.status = this.#respond(request, response, answer);
  }

  async #bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString("utf8");
    return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  }

  /** Rates and conditions: what nothing changed about costs nothing. */
  #respond(request: IncomingMessage, response: ServerResponse, { status, json }: Answer): number {
    const text = JSON.stringify(json);
    const etag = `W/"${createHash("sha256").update(text).digest("hex")}"`;
    const isSame = status === 200 && request.headers["if-none-match"] === etag;
    if (!isSame) this.limit.remaining -= 1;
    const isOver = this.limit.remaining < 0;
    const headers = {
      "content-type": "application/json; charset=utf-8",
      "x-ratelimit-limit": "5000",
      "x-ratelimit-remaining": String(Math.max(this.limit.remaining, 0)),
      "x-ratelimit-reset": String(this.limit.reset),
      "x-ratelimit-resource": "core",
    };
    if (isOver) {
      response.writeHead(403, headers);
      response.end(JSON.stringify(said(403, "API rate limit exceeded for installation ID 815.").json));
      return 403;
    }
    response.writeHead(isSame ? 304 : status, { ...headers, ...(status === 200 ? { etag } : {}) });
    response.end(isSame ? undefined : text);
    return isSame ? 304 : status;
  }

  #git(request: IncomingMessage, response: ServerResponse): void {
    this.gitKnocks += 1;
    if (!this.servesGit) return void response.writeHead(500).end();
    const [, password = ""] = Buffer.from(
      (request.headers.authorization ?? "").replace(/^Basic /, ""),
      "base64",
    )
      .toString("utf8")
      .split(":");
    if (!this.tokens.has(password)) {
      return void response.writeHead(401, { "www-authenticate": 'Basic realm="GitHub"' }).end();
    }
    if ((request.url ?? "").endsWith("service=git-receive-pack") && !this.mayPush(password))
      return void response.writeHead(403).end("Write access to repository not granted.");
    request.url = (request.url ?? "").replace(`/${OWNER}/`, "/");
    serveGit(this.#root, request, response, false);
  }

  async #answer(call: string, token: string, body: Record<string, unknown>): Promise<Answer> {
    const [method = "", target = ""] = call.split(" ");
    const { pathname, searchParams } = new URL(target, "http://host");
    const path = pathname.split("/").slice(1).map(decodeURIComponent);
    if (path[0] === "app") return this.#mint(token, path, body);
    if (!this.tokens.has(token)) return said(401, "Bad credentials");
    const [repos, owner, name = "", ...rest] = path;
    const bare = join(this.#root, `${name}.git`);
    if (repos !== "repos" || owner !== OWNER || (await git(bare, "rev-parse", "--git-dir")).code !== 0)
      return notFound;
    const [area, kind, ...more] = rest;
    if (area === undefined) return { status: 200, json: await this.#repository(bare, name, token) };
    if (area === "pulls")
      return this.pulls.answer({ method, name, path: rest.slice(1), query: searchParams, body });
    if (area !== "git") return notFound;
    switch (`${method} ${kind}`) {
      case "GET ref":
        return this.#ref(bare, more.join("/"));
      case "POST refs":
        return this.#createRef(bare, String(body["ref"]), String(body["sha"]));
      case "GET tags":
        return this.#object(bare, more[0] ?? "", "tag");
      case "GET commits":
        return this.#object(bare, more[0] ?? "", "commit");
      default:
        return notFound;
    }
  }

  #mint(token: string, path: readonly string[], body: Record<string, unknown>): Answer {
    const signed = token.slice(0, token.lastIndexOf("."));
    const signature = Buffer.from(token.slice(signed.length + 1), "base64url");
    if (!verify("RSA-SHA256", Buffer.from(signed), this.#publicKey, signature))
      return said(401, "A JSON web token could not be decoded");
    const [head, claims] = parts(token) as [Record<string, unknown>, Record<string, unknown>];
    const now = new Date().getTime() / 1000;
    const { iat, exp, iss } = claims as { iat: number; exp: number; iss: string };
    if (head["alg"] !== "RS256" || iss !== this.app.app_id || iat > now || exp < now || exp > now + 600)
      return said(401, "'Expiration time' claim ('exp') is too far in the future");
    if (path[2] !== this.app.installation_id) return notFound;
    if (!Array.isArray(body["repositories"])) return said(422, "repositories are wanted here");
    if (!body["repositories"].every((name) => this.installedOn(String(name))))
      return said(422, "There is at least one repository that does not exist or is not accessible.");
    const minted = `ghs_canary${randomBytes(12).toString("hex")}`;
    this.tokens.add(minted);
    this.minted.push(minted);
    const expires_at = new Date(new Date().getTime() + this.mintedLifeMs).toISOString();
    return { status: 201, json: { token: minted, expires_at, permissions: this.grants } };
  }

  async #repository(bare: string, name: string, token: string): Promise<unknown> {
    const head = await gitOk(bare, "symbolic-ref", "--short", "HEAD");
    return {
      id: 1,
      name,
      full_name: `${OWNER}/${name}`,
      private: true,
      archived: this.isArchived,
      default_branch: head,
      permissions: { admin: false, push: this.mayPush(token), pull: true },
    };
  }

  async #refAnswer(bare: string, ref: string, sha: string): Promise<unknown> {
    return {
      ref,
      node_id: "x",
      url: "x",
      object: { type: await gitOk(bare, "cat-file", "-t", sha), sha, url: "x" },
    };
  }

  async #ref(bare: string, name: string): Promise<Answer> {
    if ((await git(bare, "rev-parse", "--verify", "--quiet", "HEAD")).code !== 0)
      return said(409, "Git Repository is empty.");
    const sha = await tipOf(bare, `refs/${name}`);
    return sha === null ? notFound : { status: 200, json: await this.#refAnswer(bare, `refs/${name}`, sha) };
  }

  async #createRef(bare: string, ref: string, sha: string): Promise<Answer> {
    if ((await git(bare, "cat-file", "-e", sha)).code !== 0) return said(422, "Object does not exist");
    if (this.protect(ref)) return said(422, "Reference update failed");
    const { code } = await git(bare, "update-ref", ref, sha, "0".repeat(40));
    if (code !== 0) return said(422, "Reference already exists");
    return { status: 201, json: await this.#refAnswer(bare, ref, sha) };
  }

  async #object(bare: string, sha: string, type: "tag" | "commit"): Promise<Answer> {
    const { code, stdout } = await git(bare, "cat-file", type, sha);
    if (code !== 0) return notFound;
    const field = (name: string) =>
      [...stdout.matchAll(new RegExp(`^${name} (.+)$`, "gm"))].map(([, value]) => value);
    const json =
      type === "tag"
        ? { sha, object: { sha: field("object")[0], type: field("type")[0] } }
        : { sha, parents: field("parent").map((parent) => ({ sha: parent })) };
    return { status: 200, json };
  }
}

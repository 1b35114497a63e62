/**
 * A small authorization server for connectors (OAuth 2.1 with PKCE, registration, rotation and revocation), whose person
 * always agrees. It is strict: a refresh token counts once, and its second use ends the whole grant. A test can falsify
 * each of its answers.
 */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { McpServer } from "./mcp-server.ts";

interface Json {
  readonly [field: string]: unknown;
}

/** Answers by hand. False: the server answers. */
type Instead = (url: URL, response: ServerResponse, form: URLSearchParams) => boolean;

interface Family {
  readonly client: string;
  readonly resource: string | null;
  isRevoked: boolean;
  /** The access tokens that count, and the one refresh token. */
  readonly access: Set<string>;
  refresh: string | null;
}

interface Code {
  readonly challenge: string;
  readonly client: string;
  readonly redirectUri: string;
  readonly resource: string | null;
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
};

const answer = (response: ServerResponse, status: number, json: Json): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(json));
};

/** The client of a Basic header, which this server does not decode, as many do not. */
const withBasic = (form: URLSearchParams, header = ""): URLSearchParams => {
  const [, coded] = /^Basic (.+)$/.exec(header) ?? [];
  if (coded === undefined) return form;
  const [, id = "", secret = ""] = /^([^:]*):(.*)$/.exec(Buffer.from(coded, "base64").toString()) ?? [];
  const known = new URLSearchParams(form);
  known.set("client_id", id);
  known.set("client_secret", secret);
  return known;
};

export class OAuthServer {
  readonly issuer: string;
  /** Path of each request. */
  readonly requests: string[] = [];
  /** The names of clients that registered themselves, which a person would read. */
  readonly clientNames: unknown[] = [];
  /** The form of each token request. */
  readonly tokenForms: URLSearchParams[] = [];
  /** Everything that must not be shown. */
  readonly secrets: string[] = [];
  /** Fields that replace those of the metadata. Undefined removes one. */
  metadata: Json = {};
  /** Fields that replace those of the redirect to the client. */
  redirect: Readonly<Record<string, string>> = {};
  instead: Instead = () => false;
  /** Awaited before a token request is answered. */
  before: () => Promise<void> = () => Promise.resolve();
  /** In seconds. */
  expiresIn = 3600;
  isRotating = true;
  /** A client with a secret. All others registered themselves. */
  readonly client = { id: "registered-by-hand", secret: "client-secret-by-hand" };
  readonly #server = createServer();
  readonly #codes = new Map<string, Code>();
  readonly #clients = new Map<string, readonly string[]>();
  readonly #families: Family[] = [];

  private constructor() {
    this.#server.listen(0, "127.0.0.1");
    this.#server.on("request", (request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    this.issuer = "";
  }

  static async open(): Promise<OAuthServer> {
    const server = new OAuthServer();
    await once(server.#server, "listening");
    const { port } = server.#server.address() as AddressInfo;
    return Object.assign(server, { issuer: `http://127.0.0.1:${port}` });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Forgets what a test changed. Tokens still count. */
  reset(): void {
    this.metadata = {};
    this.redirect = {};
    this.instead = () => false;
    this.before = () => Promise.resolve();
    this.expiresIn = 3600;
    this.isRotating = true;
    this.requests.length = 0;
    this.clientNames.length = 0;
    this.tokenForms.length = 0;
  }

  get refreshes(): number {
    return this.tokenForms.filter((form) => form.get("grant_type") === "refresh_token").length;
  }

  /** Ends every grant, as a person does who removes the service at the server. */
  revokeAll(): void {
    for (const family of this.#families) family.isRevoked = true;
  }

  /** Ends every access token. Refresh tokens still count. */
  expireAll(): void {
    for (const family of this.#families) family.access.clear();
  }

  get liveGrants(): number {
    return this.#families.filter(({ isRevoked }) => !isRevoked).length;
  }

  /** Tokens as a sign-in gives them. */
  grantTo({ client, resource }: { readonly client: string; readonly resource: string }) {
    const family = this.#family(client, resource);
    const [accessToken, refreshToken] = [this.#secret(), this.#secret()];
    family.access.add(accessToken);
    family.refresh = refreshToken;
    return { accessToken, refreshToken };
  }

  #family(client: string, resource: string | null): Family {
    const family = { client, resource, isRevoked: false, access: new Set<string>(), refresh: null };
    this.#families.push(family);
    return family;
  }

  /** The MCP server wants a token of this server. */
  protect(mcp: McpServer): void {
    mcp.guard = (request, response) => {
      const target = new URL(request.url ?? "/", mcp.url);
      if (target.pathname === "/.well-known/oauth-protected-resource/mcp") {
        answer(response, 200, { resource: mcp.url, authorization_servers: [this.issuer] });
        return true;
      }
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
      const isGood = this.#families.some(
        ({ isRevoked, access, resource }) => !isRevoked && access.has(token) && resource === mcp.url,
      );
      if (isGood) return false;
      const metadata = `${new URL(mcp.url).origin}/.well-known/oauth-protected-resource/mcp`;
      response.writeHead(401, {
        "www-authenticate": `Bearer error="invalid_token", resource_metadata="${metadata}", scope="read"`,
      });
      response.end();
      return true;
    };
  }

  #secret(): string {
    const made = randomBytes(24).toString("base64url");
    this.secrets.push(made);
    return made;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.issuer);
    this.requests.push(url.pathname);
    const body = await bodyOf(request);
    const form = new URLSearchParams(body);
    if (url.pathname === "/token") {
      this.tokenForms.push(form);
      await this.before();
    }
    if (this.instead(url, response, form)) return;
    switch (url.pathname) {
      case "/.well-known/oauth-authorization-server":
        return answer(response, 200, { ...this.#metadata(), ...this.metadata });
      case "/register":
        return this.#register(JSON.parse(body) as Json, response);
      case "/authorize":
        return this.#authorize(url.searchParams, response);
      case "/token":
        return this.#token(withBasic(form, request.headers.authorization), response);
      case "/revoke":
        return this.#revoke(form.get("token") ?? "", response);
      default:
        return void response.writeHead(404).end();
    }
  }

  #metadata(): Json {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      registration_endpoint: `${this.issuer}/register`,
      revocation_endpoint: `${this.issuer}/revoke`,
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none", "client_secret_post"],
      authorization_response_iss_parameter_supported: true,
    };
  }

  #register(wish: Json, response: ServerResponse): void {
    const id = `client-${randomBytes(6).toString("hex")}`;
    this.clientNames.push(wish["client_name"]);
    this.#clients.set(id, wish["redirect_uris"] as readonly string[]);
    answer(response, 201, { ...wish, client_id: id });
  }

  #authorize(query: URLSearchParams, response: ServerResponse): void {
    const of = (name: string): string => query.get(name) ?? "";
    const [client, redirectUri] = [of("client_id"), of("redirect_uri")];
    const isKnown = client === this.client.id || this.#clients.get(client)?.includes(redirectUri) === true;
    if (!isKnown || of("code_challenge_method") !== "S256") return void response.writeHead(400).end();
    const code = this.#secret();
    const challenge = of("code_challenge");
    this.#codes.set(code, { challenge, client, redirectUri, resource: query.get("resource") });
    const back = new URL(redirectUri);
    const fields = { code, state: of("state"), iss: this.issuer, ...this.redirect };
    for (const [name, value] of Object.entries(fields)) back.searchParams.set(name, value);
    response.writeHead(302, { location: back.href }).end();
  }

  #token(form: URLSearchParams, response: ServerResponse): void {
    const refuse = (error: string): void => answer(response, 400, { error, error_description: "Not valid." });
    const client = form.get("client_id") ?? "";
    if (client === this.client.id && form.get("client_secret") !== this.client.secret)
      return answer(response, 401, { error: "invalid_client" });
    const resource = form.get("resource");
    switch (form.get("grant_type")) {
      case "authorization_code": {
        const code = this.#codes.get(form.get("code") ?? "");
        this.#codes.delete(form.get("code") ?? "");
        const proof = createHash("sha256")
          .update(form.get("code_verifier") ?? "")
          .digest("base64url");
        const isRight = code?.challenge === proof && code.redirectUri === form.get("redirect_uri");
        if (code === undefined || !isRight || code.client !== client || code.resource !== resource)
          return refuse("invalid_grant");
        return this.#issue(this.#family(client, resource), response);
      }
      case "refresh_token":
        return this.#refresh(form.get("refresh_token") ?? "", { refuse, response, client });
      case "client_credentials": {
        if (client !== this.client.id) return answer(response, 401, { error: "invalid_client" });
        const token = this.#secret();
        this.#family(client, resource).access.add(token);
        return answer(response, 200, this.#tokens(token));
      }
      default:
        return refuse("unsupported_grant_type");
    }
  }

  readonly #used = new Map<string, Family>();

  #refresh(
    token: string,
    by: {
      readonly refuse: (error: string) => void;
      readonly response: ServerResponse;
      readonly client: string;
    },
  ): void {
    const reused = this.#used.get(token);
    if (reused !== undefined) reused.isRevoked = true;
    const family = this.#families.find(({ refresh }) => refresh === token);
    if (family === undefined || family.isRevoked || family.client !== by.client)
      return by.refuse("invalid_grant");
    this.#issue(family, by.response);
  }

  #issue(family: Family, response: ServerResponse): void {
    const token = this.#secret();
    family.access.add(token);
    const isNew = family.refresh === null || this.isRotating;
    if (family.refresh !== null && isNew) this.#used.set(family.refresh, family);
    if (isNew) family.refresh = this.#secret();
    answer(response, 200, { ...this.#tokens(token), ...(isNew && { refresh_token: family.refresh }) });
  }

  #tokens(token: string): Json {
    return { access_token: token, token_type: "Bearer", expires_in: this.expiresIn, scope: "read" };
  }

  #revoke(token: string, response: ServerResponse): void {
    for (const family of this.#families)
      if (family.refresh === token || family.access.has(token)) family.isRevoked = true;
    response.writeHead(200).end();
  }
}

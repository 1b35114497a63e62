/**
 * GitHub's sign-in for OAuth apps and the two endpoints of its API that follow it, as its public documentation describes
 * them: codes work once, the code verifier must fit, and errors of the token endpoint come with status 200.
 */
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface GithubUser {
  readonly id: unknown;
  readonly login: string;
  readonly name: string | null;
  /** Organizations that the user is an active member of. */
  readonly organizations?: readonly string[];
}

interface Granted {
  readonly user: GithubUser;
  readonly challenge: string;
  readonly redirectUri: string;
  readonly scope: string;
}

const sendJson = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
};

export class GithubLogin {
  /** Who is signed in at GitHub. Null: the person refuses. */
  user: GithubUser | null = { id: 583_231, login: "octocat", name: "The Octocat" };
  /** Codes and tokens that were given out. */
  readonly secrets: string[] = [];
  readonly #codes = new Map<string, Granted>();
  readonly #tokens = new Map<string, Granted>();
  readonly #client: { readonly id: string; readonly secret: string };
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  private constructor(client: { readonly id: string; readonly secret: string }) {
    this.#client = client;
  }

  static async open(client: { readonly id: string; readonly secret: string }): Promise<GithubLogin> {
    const github = new GithubLogin(client);
    github.#server.listen(0, "127.0.0.1");
    await once(github.#server, "listening");
    return github;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", this.url);
    if (pathname === "/login/oauth/authorize") this.#authorize(searchParams, response);
    else if (pathname === "/login/oauth/access_token")
      this.#exchange(new URLSearchParams(await text(request)), response);
    else this.#api(pathname, request, response);
  }

  #authorize(query: URLSearchParams, response: ServerResponse): void {
    const back = new URL(query.get("redirect_uri") ?? this.url);
    back.searchParams.set("state", query.get("state") ?? "");
    const isKnown =
      query.get("client_id") === this.#client.id && query.get("code_challenge_method") === "S256";
    if (!isKnown) return void response.writeHead(404).end();
    if (this.user === null) back.searchParams.set("error", "access_denied");
    else {
      const code = randomUUID();
      this.secrets.push(code);
      this.#codes.set(code, {
        user: this.user,
        challenge: query.get("code_challenge") ?? "",
        redirectUri: query.get("redirect_uri") ?? "",
        scope: query.get("scope") ?? "",
      });
      back.searchParams.set("code", code);
    }
    response.writeHead(302, { location: back.href }).end();
  }

  #exchange(form: URLSearchParams, response: ServerResponse): void {
    const code = form.get("code") ?? "";
    const granted = this.#codes.get(code);
    this.#codes.delete(code);
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (form.get("client_id") !== this.#client.id || form.get("client_secret") !== this.#client.secret)
      return sendJson(response, 200, { error: "incorrect_client_credentials" });
    if (granted?.challenge !== challenge || granted.redirectUri !== form.get("redirect_uri"))
      return sendJson(response, 200, { error: "bad_verification_code" });
    const token = `gho_${randomUUID()}`;
    this.secrets.push(token);
    this.#tokens.set(token, granted);
    sendJson(response, 200, { access_token: token, token_type: "bearer", scope: granted.scope });
  }

  #api(pathname: string, { headers }: IncomingMessage, response: ServerResponse): void {
    const granted = this.#tokens.get(/^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? "");
    if (granted === undefined) return sendJson(response, 401, { message: "Bad credentials" });
    const { id, login, name, organizations = [] } = granted.user;
    const asked = /^\/user\/memberships\/orgs\/([^/]+)$/.exec(pathname)?.[1];
    if (pathname === "/user") return sendJson(response, 200, { id, login, name });
    if (asked === undefined || granted.scope !== "read:org" || !organizations.includes(asked))
      return sendJson(response, 404, { message: "Not Found" });
    sendJson(response, 200, { state: "active", role: "member" });
  }
}

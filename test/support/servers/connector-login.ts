/**
 * A certified authorization server (npm's oidc-provider) in front of an MCP server: with registration, PKCE, resource
 * indicators, rotation and revocation, and its own pages for login and consent.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";
import type { McpServer } from "./mcp-server.ts";

const challenge = (response: ServerResponse, metadata: string): true => {
  response
    .writeHead(401, { "www-authenticate": `Bearer resource_metadata="${metadata}", scope="read"` })
    .end();
  return true;
};

export class ConnectorLogin {
  readonly issuer: string;
  /** How long the next access tokens live, in seconds. */
  tokenSeconds = 3600;
  /** How often tokens were asked for, by the kind of grant. */
  readonly granted: string[] = [];
  readonly #server = createServer();
  readonly #provider: Provider;
  readonly #grants = new Set<string>();

  private constructor(port: number, mcp: McpServer) {
    this.issuer = `http://localhost:${port}`;
    this.#provider = new Provider(this.issuer, {
      scopes: ["read"],
      cookies: { keys: [randomBytes(16).toString("hex")] },
      pkce: { required: () => true },
      rotateRefreshToken: true,
      issueRefreshToken: () => true,
      features: {
        registration: { enabled: true },
        revocation: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => mcp.url,
          useGrantedResource: () => true,
          getResourceServerInfo: () => ({
            scope: "read",
            audience: mcp.url,
            accessTokenFormat: "opaque",
            accessTokenTTL: this.tokenSeconds,
          }),
        },
      },
      findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    });
    this.#provider.on("grant.success", ({ oidc }) => {
      this.granted.push(String(oidc.params?.["grant_type"]));
      if (oidc.entities.Grant?.jti !== undefined) this.#grants.add(oidc.entities.Grant.jti);
    });
  }

  static async before(mcp: McpServer): Promise<ConnectorLogin> {
    const listening = createServer().listen(0, "127.0.0.1");
    await once(listening, "listening");
    const { port } = listening.address() as AddressInfo;
    listening.close();
    await once(listening, "close");
    const login = new ConnectorLogin(port, mcp);
    login.#server.on("request", login.#provider.callback());
    login.#server.listen(port, "127.0.0.1");
    await once(login.#server, "listening");
    login.#protect(mcp);
    return login;
  }

  #protect(mcp: McpServer): void {
    const place = "/.well-known/oauth-protected-resource/mcp";
    mcp.guard = async (request, response) => {
      if (request.url === place) {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ resource: mcp.url, authorization_servers: [this.issuer] }));
        return true;
      }
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
      const found = token === undefined ? undefined : await this.#provider.AccessToken.find(token);
      return found?.aud === mcp.url ? false : challenge(response, new URL(place, mcp.url).href);
    };
  }

  /** Ends all grants, as a person does who removes the service there. */
  async revokeAll(): Promise<void> {
    for (const id of this.#grants)
      await Promise.all([
        this.#provider.AccessToken.revokeByGrantId(id),
        this.#provider.RefreshToken.revokeByGrantId(id),
      ]);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

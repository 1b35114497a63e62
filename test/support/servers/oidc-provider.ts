/**
 * A certified OpenID Connect provider (npm's oidc-provider) on loopback, with its own pages for login and consent. Its host is
 * `localhost`, so that for a browser it is another site than a service at 127.0.0.1.
 */
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";

export class OidcProvider {
  readonly issuer: string;
  readonly #server: Server;
  /** The claim `groups` of a person, which the scope `groups` shows. Absent: she has none. */
  readonly groups = new Map<string, unknown>();

  private constructor(server: Server) {
    this.#server = server;
    this.issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  }

  /** Listens. It answers once it knows its client. */
  static async open(): Promise<OidcProvider> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new OidcProvider(server);
  }

  /** A person who logs in as NAME is NAME, with the verified address NAME@example.com. */
  serve(client: { readonly id: string; readonly secret: string; readonly redirectUri: string }): void {
    const provider = new Provider(this.issuer, {
      clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [client.redirectUri] }],
      claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
      cookies: { keys: [randomBytes(16).toString("hex")] },
      pkce: { required: () => true },
      findAccount: (_context, sub) => ({
        accountId: sub,
        claims: () => ({
          sub,
          name: sub,
          email: `${sub}@example.com`,
          email_verified: true,
          ...(this.groups.has(sub) && { groups: this.groups.get(sub) }),
        }),
      }),
    });
    this.#server.on("request", provider.callback());
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

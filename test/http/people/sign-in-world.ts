/**
 * Two services where people sign in at providers, and browsers without a page: OpenID Connect at oauth2-mock-server, whose
 * answers a test can falsify, and GitHub at a server made from its public description.
 */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { OAuth2Server, type MutableResponse, type MutableToken } from "oauth2-mock-server";
import { githubProvider } from "../../../src/sign-in/github.ts";
import { oidcProvider } from "../../../src/sign-in/oidc.ts";
import { GithubLogin } from "../../support/servers/github-login.ts";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";
import { expectStatus, fields } from "../../support/service/requests.ts";
import { expect } from "vitest";

export const SECRET = "canary-client-secret-31f0";
export const CLIENT = { id: "platform", secret: SECRET };
export const DOMAIN = "example.com";

const ADA = { sub: "ada", name: "Ada", email: `ada@${DOMAIN}`, email_verified: true };
const OCTOCAT = { id: 583_231, login: "octocat", name: "The Octocat", organizations: ["acme"] };

/** The OpenID Connect provider, and what it says about the person who signs in. */
export class Idp {
  readonly #server = new OAuth2Server();
  /** Claims of the person. */
  claims: Record<string, unknown> = { ...ADA };
  /** Changes an ID token before it is signed. */
  falsify: (token: MutableToken) => void = () => undefined;
  /** Changes the answer of the token endpoint. */
  replace: (response: MutableResponse) => void = () => undefined;

  static async open(): Promise<Idp> {
    const idp = new Idp();
    await idp.#server.issuer.keys.generate("RS256");
    await idp.#server.start(0, "127.0.0.1");
    const { service } = idp.#server;
    service.on("beforeTokenSigning", (token: MutableToken) => {
      Object.assign(token.payload, idp.claims);
      idp.falsify(token);
    });
    service.on("beforeResponse", (response: MutableResponse) => idp.replace(response));
    service.on("beforeUserinfo", (response: MutableResponse) => {
      response.body = idp.claims;
    });
    return idp;
  }

  get issuer(): string {
    return this.#server.issuer.url ?? "";
  }

  /** Answers truly again, about Ada. */
  reset(): void {
    this.claims = { ...ADA };
    [this.falsify, this.replace] = [() => undefined, () => undefined];
  }

  close(): Promise<void> {
    return this.#server.stop();
  }
}

/** Settings of a service with a provider: a person's tokens need a sign-in within 30 days. */
export const WITH_PROVIDER = {
  PLATFORM_GITHUB_LOGIN_CLIENT_ID: CLIENT.id,
  PLATFORM_GITHUB_LOGIN_SECRET_FILE: "unread",
};

/** Makes a person's beginning and her last sign-in 31 days old. */
export const ageSignIns = (service: TestService, userId: string): Promise<void> =>
  service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* sql`
        UPDATE users SET created_at = created_at - interval '31 days', signed_in_at = signed_in_at - interval '31 days'
        WHERE id = ${userId}`;
    }),
  );

export interface SignInWorld {
  readonly idp: Idp;
  readonly github: GithubLogin;
  /** Strangers need an invitation. */
  readonly invitedOnly: TestService;
  /** People of the domain and of the organization may sign up. */
  readonly open: TestService;
  readonly reset: () => void;
  readonly close: () => Promise<void>;
}

export const startSignInWorld = async (): Promise<SignInWorld> => {
  const idp = await Idp.open();
  const github = await GithubLogin.open(CLIENT);
  const client = { clientId: CLIENT.id, clientSecret: SECRET };
  const signIn = [
    oidcProvider({ ...client, issuer: idp.issuer, allowedDomains: [DOMAIN] }),
    githubProvider({ ...client, organization: "acme", web: github.url, api: github.url }),
  ];
  const invitedOnly = await startTestService({}, { signIn });
  const open = await startTestService(
    {
      PLATFORM_SIGN_UP: "allowed",
      ...WITH_PROVIDER,
      PLATFORM_GITHUB_LOGIN_ORG: "acme",
    },
    { signIn },
  );
  return {
    idp,
    github,
    invitedOnly,
    open,
    reset: () => {
      idp.reset();
      github.user = OCTOCAT;
    },
    close: async () => {
      await Promise.all([invitedOnly.close(), open.close()]);
      await Promise.all([idp.close(), github.close()]);
    },
  };
};

export type ProviderName = "oidc" | "github";

/** A browser of which the service's own page asks. It keeps cookies and follows what it is told. */
export class Browser {
  readonly #service: TestService;
  readonly cookies = new Map<string, string>();

  constructor(service: TestService) {
    this.#service = service;
  }

  async ask(method: string, target: string, body?: unknown, csrf = ""): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await this.#service.request(method, target, {
      token: null,
      headers: { cookie, "x-csrf-token": csrf, "sec-fetch-site": "same-origin" },
      ...(body === undefined ? {} : { body }),
    });
    for (const line of [answer.headers["set-cookie"] ?? []].flat()) {
      const [name = "", value = ""] = (line.split(";")[0] ?? "").split("=");
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  }

  /** Goes to the provider. @returns the callback's path and query, with which the provider sends the browser back. */
  async visit(
    provider: ProviderName,
    wish: Readonly<Record<string, unknown>> | string = "",
    csrf = "",
  ): Promise<string> {
    const target = `/dashboard/login/${provider}`;
    const begun =
      typeof wish === "string"
        ? expectStatus(await this.ask("GET", `${target}?return=${wish}`), 303).headers["location"]
        : fields(expectStatus(await this.ask("POST", target, wish, csrf), 200))["url"];
    const there = await fetch(String(begun), { redirect: "manual" });
    expect(there.status).toBe(302);
    return (there.headers.get("location") ?? "").replace(this.#service.url, "");
  }

  async signIn(
    provider: ProviderName,
    wish?: Parameters<Browser["visit"]>[1],
    csrf?: string,
  ): Promise<Answer> {
    return this.ask("GET", await this.visit(provider, wish, csrf));
  }

  async me(): Promise<Record<string, unknown> | number> {
    const answer = await this.ask("GET", "/v1/me");
    return answer.status === 200 ? (fields(answer)["user"] as Record<string, unknown>) : answer.status;
  }
}

export const invited = async (service: TestService, wish = {}): Promise<string> => {
  const made = await service.request("POST", "/v1/invitations", { body: { name: "Eve", ...wish } });
  return (
    String(fields(expectStatus(made, 201))["url"])
      .split("/")
      .at(-1) ?? ""
  );
};

/** A browser of the person whose token this is. */
export const withToken = async (service: TestService, token: string) => {
  const browser = new Browser(service);
  const { csrf } = fields(expectStatus(await browser.ask("POST", "/dashboard/session", { token }), 200));
  return { browser, csrf: String(csrf) };
};

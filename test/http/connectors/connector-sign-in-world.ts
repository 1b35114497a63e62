/** A service with a connector behind an authorization server, and browsers of people who sign in to it. */
import { OAuthServer } from "../../support/servers/oauth-server.ts";
import { type McpServer } from "../../support/servers/mcp-server.ts";
import { expectStatus, fields, type Fields } from "../../support/service/requests.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { ExecutorWorld, manifest } from "./executor-world.ts";
import { Browser, withToken } from "../people/sign-in-world.ts";

export { Browser } from "../people/sign-in-world.ts";

/** The manifest of a connector with OAuth, in place of its bearer token. */
export const oauthManifest = (url: string, auth = 'auth = "oauth"'): string =>
  manifest(url).replace('auth = "bearer"', auth);

export class ConnectorWorld {
  readonly executor: ExecutorWorld;
  readonly login: OAuthServer;

  private constructor(executor: ExecutorWorld, login: OAuthServer) {
    this.executor = executor;
    this.login = login;
  }

  /** @param settings of a service of its own. Without them it is the worker's. */
  static async start(settings?: Readonly<Record<string, string>>): Promise<ConnectorWorld> {
    const world = new ConnectorWorld(await ExecutorWorld.start(settings), await OAuthServer.open());
    world.reset();
    return world;
  }

  get service(): TestService {
    return this.executor.service;
  }

  get server(): McpServer {
    return this.executor.server;
  }

  async close(): Promise<void> {
    await this.executor.close();
    await this.login.close();
  }

  reset(): void {
    this.executor.reset();
    this.login.reset();
    this.login.protect(this.server);
  }

  project(auth?: string): Promise<string> {
    return this.executor.newProject(oauthManifest(this.server.url, auth));
  }

  async connector(project: string, slug = "wiki"): Promise<Fields> {
    const answer = await this.service.request("GET", `/v1/projects/${project}/connectors`);
    const { connectors } = fields(expectStatus(answer, 200)) as { readonly connectors: readonly Fields[] };
    return connectors.find((one) => one["slug"] === slug) ?? {};
  }

  authorize(project: string, token?: string): Promise<Answer> {
    const target = `/v1/projects/${project}/connectors/wiki/authorize`;
    return this.service.request("POST", target, token === undefined ? {} : { token });
  }

  /** The browser of the account's owner. */
  async owner(): Promise<Browser> {
    return (await withToken(this.service, this.service.token)).browser;
  }

  /** The path of the address that a person opens. */
  async address(project: string): Promise<string> {
    const { url } = fields(expectStatus(await this.authorize(project), 200));
    return String(url).replace(this.service.url, "");
  }

  /** Opens the address and agrees at the server. @returns the callback's path and query. */
  async visit(project: string, browser: Browser): Promise<string> {
    const there = expectStatus(await browser.ask("GET", await this.address(project)), 303);
    const back = await fetch(String(there.headers["location"]), { redirect: "manual" });
    if (back.status !== 302) throw new Error(`the server answered ${back.status}`);
    return (back.headers.get("location") ?? "").replace(this.service.url, "");
  }

  /** Signs in, and accepts the tools. */
  async signIn(project: string, browser?: Browser): Promise<void> {
    const by = browser ?? (await this.owner());
    expectStatus(await by.ask("GET", await this.visit(project, by)), 303);
    const { pin } = await this.executor.catalogueOf(project);
    expectStatus(await this.executor.change(project, { action: "accept", pin }), 200);
  }

  storeClient(project: string, body: Fields): Promise<Answer> {
    return this.service.request("PUT", `/v1/projects/${project}/connectors/wiki/credential`, { body });
  }

  /** Calls the tool `read` as an agent of a new session. */
  async read(project: string, session?: { readonly by: string }) {
    const { by } = session ?? (await this.executor.freshSession(project));
    return this.executor.call("wiki_read", {}, { by, project });
  }
}

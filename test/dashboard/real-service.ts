/** A service of its own with one project, as its owner meets it in a browser. Its sandboxes are simulated. */
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import type { Browser } from "playwright-core";
import { Client } from "../../demo/client.ts";
import { makeRepository } from "../../demo/sample.ts";
import { type Service, startService } from "../../demo/service.ts";
import { makeToken, TOKEN_BYTES } from "../../src/domain/ids.ts";
import { followLink, launch, newPage } from "./browser.ts";

export class RealService {
  readonly browser: Browser;
  readonly client: Client;
  readonly baseUrl: string;
  /** The id of its project, `greeter`. */
  readonly project: string;
  readonly #service: Service;
  readonly #directory: string;

  private constructor(
    parts: Pick<RealService, "browser" | "client" | "project">,
    service: Service,
    directory: string,
  ) {
    this.browser = parts.browser;
    this.client = parts.client;
    this.project = parts.project;
    this.baseUrl = service.baseUrl;
    this.#service = service;
    this.#directory = directory;
  }

  /** @param manifest lines at the end of the project's platform.toml */
  static async start(settings: Readonly<Record<string, string>> = {}, manifest = ""): Promise<RealService> {
    // Short: below it lie sockets, whose whole path has at most a hundred bytes.
    const directory = fs.mkdtempSync("/tmp/page-");
    fs.chmodSync(directory, 0o711);
    const repository = path.join(directory, "greeter");
    makeRepository(repository, () => fs.appendFileSync(path.join(repository, "platform.toml"), manifest));
    const token = makeToken("pat", randomBytes(TOKEN_BYTES));
    const { signal } = new AbortController();
    const service = await startService(
      {
        PLATFORM_DATA_DIR: path.join(directory, "data"),
        PLATFORM_BOOTSTRAP_TOKEN: token,
        PLATFORM_IMPORT_ROOTS: directory,
        PLATFORM_PORT: "0",
        PLATFORM_SANDBOX_PROVIDER: "simulated",
        TMPDIR: directory,
        ...settings,
      },
      signal,
    );
    const client = new Client({ baseUrl: service.baseUrl, token, signal });
    const { id: project } = await client.send<{ id: string }>("POST", "/v1/projects", {
      name: "greeter",
      repository: { kind: "hosted", import_from: repository },
    });
    return new RealService({ browser: await launch(), client, project }, service, directory);
  }

  /** A window in which the owner is signed in. */
  async asOwner() {
    const { url } = await this.client.send<{ url: string }>("POST", "/dashboard/links");
    const window = await newPage(this.browser);
    await followLink(window.page, url);
    await window.page.getByRole("heading", { name: "Home" }).waitFor();
    return window;
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.#service.stop();
    fs.rmSync(this.#directory, { recursive: true, force: true });
  }
}

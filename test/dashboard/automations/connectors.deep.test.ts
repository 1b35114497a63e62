/** Connectors over the service itself: an owner stores a credential, accepts the tools, and sees a tool that changed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type McpServer, startMcpServer } from "../../support/servers/mcp-server.ts";
import { hasChromium } from "../browser.ts";
import { RealService } from "../real-service.ts";

const CREDENTIAL = "credential-of-the-wiki-42";

const title = hasChromium
  ? "connectors over the service"
  : "connectors over the service (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let service: RealService;
  let server: McpServer;

  beforeAll(async () => {
    server = await startMcpServer([
      { name: "read", description: "Reads a page of the wiki." },
      { name: "write", description: "Writes a page of the wiki." },
    ]);
    const manifest = `\n[[connectors]]\nslug = "wiki"\nkind = "mcp"\nurl = "${server.url}"\nauth = "bearer"\n`;
    service = await RealService.start({ PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1" }, manifest);
  });

  afterAll(async () => {
    await service.stop();
    await server.close();
  });

  it("take a person from the missing credential to accepted tools, and show what changed since", async () => {
    const { page, complaints } = await service.asOwner();
    await page.goto(`${service.baseUrl}/#/projects/${service.project}/settings`);
    await page.getByRole("link", { name: "Connectors", exact: true }).click();
    await page.getByText("needs a credential").waitFor();
    await page.getByRole("button", { name: "Store the credential: wiki" }).click();
    await page.getByLabel("Credential", { exact: true }).fill(CREDENTIAL);
    await page.getByRole("button", { name: "Store", exact: true }).click();
    await page.getByRole("link", { name: "Look at the new or changed tools, and accept them." }).click();
    await page.getByText("2 tools are hidden from agents until you accept.").waitFor();
    await page.getByRole("button", { name: "Accept these tools: wiki" }).click();
    await page.getByText("The tools are accepted.").waitFor();

    const [read, write] = server.tools;
    if (read === undefined || write === undefined) throw new Error("the server has two tools");
    server.tools = [read, { ...write, description: "Writes a page of any wiki." }];
    await page.getByRole("button", { name: "Fetch the tools again: wiki" }).click();
    await page.getByText("1 tool is hidden from agents until you accept.").waitFor();
    await page.getByText("The accepted description was: Writes a page of the wiki.").waitFor();
    await page.getByRole("link", { name: "Connectors", exact: true }).click();
    await page.getByText("1 usable tool · 1 to accept").waitFor();
    expect(await page.locator("body").innerText()).not.toContain(CREDENTIAL);
    expect(complaints).toEqual([]);
  });
});

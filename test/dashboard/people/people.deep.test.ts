/** People over the service itself: an owner invites by the page, and the new person's role decides what her page does. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client } from "../../../demo/client.ts";
import { hasChromium, newPage } from "../browser.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { RealService } from "../real-service.ts";

const title = hasChromium
  ? "people over the service"
  : "people over the service (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let real: RealService;

  beforeAll(async () => {
    real = await RealService.start();
  });
  afterAll(() => real.stop());

  /** @returns the link */
  const invite = async (page: Page): Promise<string> => {
    await page.goto(`${real.baseUrl}/#/people`);
    await page.getByText("the only owner").waitFor();
    expect(await page.getByRole("button", { name: /^(?:Make member|Deactivate):/ }).count()).toBe(0);
    await page.getByLabel("Name", { exact: true }).fill("Mia");
    await page.locator("summary", { hasText: "Roles in projects" }).click();
    await page.getByLabel("greeter").selectOption("viewer");
    await page.getByRole("button", { name: "Create the link" }).click();
    const link = await page.getByRole("dialog").locator("code").innerText();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByText("greeter: viewer").waitFor();
    return link;
  };

  it("takes a person from an invitation to a viewer, a member who starts a session, and an end", async () => {
    const owner = await real.asOwner();
    // Without a default role, only the person's own one counts.
    await owner.page.goto(`${real.baseUrl}/#/projects/${real.project}/settings`);
    await owner.page.getByLabel("Default role").selectOption("");
    await owner.page.getByRole("button", { name: "Save the roles" }).click();
    await owner.page.getByText("The roles are saved.").waitFor();
    const link = await invite(owner.page);

    const mia = await newPage(real.browser);
    await mia.page.goto(link);
    await mia.page.getByText("greeter as viewer").waitFor();
    expect(await mia.page.getByLabel("Your name").inputValue()).toBe("Mia");
    await mia.page.getByLabel("Your name").fill("Mia M.");
    await mia.page.getByRole("button", { name: "Accept the invitation" }).click();
    const token = await mia.page.locator("main code").innerText();
    expect(mia.page.url()).toBe(`${real.baseUrl}/#/joined`);
    await mia.page.getByRole("link", { name: "Go to the projects" }).click();
    await mia.page.getByRole("link", { name: "greeter" }).click();
    await mia.page.getByText("Your role in this project is viewer.").waitFor();
    expect(await mia.page.getByRole("link", { name: "New session" }).count()).toBe(0);
    await mia.page.locator(".tabs").getByRole("link", { name: "Automations" }).click();
    await mia.page.getByText("Note each push").first().waitFor();
    expect(await mia.page.getByRole("link", { name: "Add a trigger" }).count()).toBe(0);
    // A viewer cannot list secrets. The page says so in its frame, and asks once.
    const asked: string[] = [];
    mia.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    const secretsAsked = () => asked.filter((path) => path.endsWith("/secrets")).length;
    await mia.page.getByRole("link", { name: "Settings", exact: true }).click();
    await mia.page.getByRole("link", { name: "Secrets", exact: true }).click();
    await mia.page.getByText("You cannot read this page.").waitFor();
    await mia.page.getByText("This needs the role member.").waitFor();
    expect(await mia.page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    const rounds = () => asked.filter((path) => path === "/v1/me").length;
    const before = rounds();
    await real.client.send("POST", `/v1/projects/${real.project}/sessions`, { name: "of the owner" });
    await expect.poll(rounds, { timeout: WAIT_MS }).toBeGreaterThan(before);
    expect(secretsAsked()).toBe(1);
    await mia.page.locator(".tabs").getByRole("link", { name: "Sessions" }).click();
    await mia.page.getByRole("link", { name: "of the owner" }).click();
    await mia.page.getByText("To write to the agent, you need the role member in the project.").waitFor();
    expect(await mia.page.getByRole("textbox", { name: "Message", exact: true }).isVisible()).toBe(false);
    await mia.page.goto(`${real.baseUrl}/#/projects/${real.project}/new`);
    await mia.page.getByText("This needs the role member in the project.").waitFor();
    // The service refuses in the same words, whether a page knows the role or not.
    const refused = await fetchSession(token);
    expect(refused).toContain("Your role in this project is viewer. This needs the role member.");

    await owner.page.goto(`${real.baseUrl}/#/projects/${real.project}/settings`);
    await owner.page.getByLabel("Person").selectOption({ label: "Mia M." });
    await owner.page.getByLabel("Role", { exact: true }).selectOption("member");
    await owner.page.getByRole("button", { name: "Set the role" }).click();
    await owner.page.getByText("The role is set.").waitFor();

    await mia.page.getByRole("button", { name: "Start session" }).click();
    await mia.page.locator(".state-word", { hasText: "Resting" }).waitFor();
    const session = mia.page.url();

    await owner.page.goto(`${real.baseUrl}/#/people`);
    await owner.page.getByRole("button", { name: "Deactivate: Mia M." }).click();
    await owner.page.getByRole("dialog").getByRole("button", { name: "Deactivate" }).click();
    await owner.page.getByText("Mia M. is deactivated.").waitFor();
    await mia.page.getByLabel("Access token").waitFor();
    await owner.page.goto(`${session}?tab=details`);
    await owner.page.getByText("the person who started it was deactivated").waitFor();

    // The link works once.
    await mia.page.goto(link);
    await mia.page.getByText("This invitation is used, revoked or expired.").waitFor();
    expect([...owner.complaints, ...mia.complaints]).toEqual([]);
    await Promise.all([owner.context.close(), mia.context.close()]);
  });

  /** @returns the refusal */
  const fetchSession = async (token: string): Promise<string> => {
    const { signal } = new AbortController();
    const viewer = new Client({ baseUrl: real.baseUrl, token, signal });
    try {
      await viewer.send("POST", `/v1/projects/${real.project}/sessions`, {});
      return "";
    } catch (error) {
      return String(error);
    }
  };
});

/** The audit record over the service itself: an owner does something, and finds by the page who did it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium } from "../browser.ts";
import { RealService } from "../real-service.ts";

const title = hasChromium
  ? "the audit record over the service"
  : "the audit record over the service (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let service: RealService;
  beforeAll(async () => {
    service = await RealService.start();
  });
  afterAll(() => service.stop());

  it("says who did what, narrows it by person, action and day, and loads older entries", async () => {
    const { baseUrl, project, client } = service;
    const { page } = await service.asOwner();
    const canary = "canary-of-the-page";
    await client.send("PUT", `/v1/projects/${project}/secrets/MODEL_KEY`, { value: canary });
    for (let count = 0; count < 55; count += 1) await client.send("POST", "/v1/tokens", { name: "many" });

    await page.goto(`${baseUrl}/#/account`);
    await page.getByRole("link", { name: "Who did what" }).click();
    const rows = page.locator(".row");
    await page.getByText("admin made a token").first().waitFor();
    expect(await rows.count()).toBe(50);
    await page.getByRole("button", { name: "Show older entries" }).click();
    const secret = page.locator(".row", { hasText: "admin set a secret" });
    await secret.waitFor();
    expect(await secret.innerText()).toContain("MODEL_KEY");
    expect(await secret.innerText()).toContain("127.0.0.1");

    const filters = page.getByRole("search");
    await filters.getByRole("combobox", { name: "Action" }).selectOption("secret.set");
    await expect.poll(() => rows.count()).toBe(1);
    await filters.getByRole("combobox", { name: "Person" }).selectOption({ label: "admin" });
    await filters.getByRole("combobox", { name: "Project" }).selectOption({ label: "greeter" });
    await expect.poll(() => page.url()).toMatch(/action=secret\.set&actor=[\w-]+&project=/);
    expect(await rows.count()).toBe(1);
    await filters.getByLabel("To", { exact: true }).fill("2020-01-31");
    await page.getByText("Nothing on record.").waitFor();
    await page.reload();
    await page.getByText("Nothing on record.").waitFor();
    expect(await filters.getByLabel("To", { exact: true }).inputValue()).toBe("2020-01-31");
    expect(await filters.getByRole("combobox", { name: "Action" }).inputValue()).toBe("secret.set");
    await page.getByRole("button", { name: "Show everything" }).click();
    await expect.poll(() => rows.count()).toBe(50);
    expect(await page.content()).not.toContain(canary);
  });

  it("shows the part of one project, and work that has ended once", async () => {
    const { baseUrl, project, client } = service;
    await client.send("POST", `/v1/projects/${project}/sessions`, { name: "on record" });
    const { page } = await service.asOwner();
    await page.goto(`${baseUrl}/#/projects/${project}/settings`);
    await page.getByRole("link", { name: "The audit record" }).click();
    await page.locator(".row", { hasText: "made a project" }).waitFor();
    expect(await page.locator(".row", { hasText: "made a token" }).count()).toBe(0);
    const started = page.locator(".row", { hasText: "asked to start a session" });
    expect(await started.count()).toBe(1);
    expect(await started.innerText()).toContain("done");
  });
});

/** Secrets over the service itself: what arrives there is what was typed. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pushDelivery } from "../../demo/sample.ts";
import { hasChromium } from "./browser.ts";
import { RealService } from "./real-service.ts";

/** The form of a private key, with an empty line, spaces at the end of a line, and a line break at the end. */
const LINES = "-----BEGIN KEY-----\nfirst line  \n\n\tlast line\n-----END KEY-----\n";

const title = hasChromium
  ? "a secret over the service"
  : "a secret over the service (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let service: RealService;
  beforeAll(async () => {
    service = await RealService.start();
  });
  afterAll(() => service.stop());

  it("keeps its line breaks, in the form and when it is rotated, so that it verifies a webhook", async () => {
    const { baseUrl, project, client } = service;
    const { page, complaints } = await service.asOwner();
    const delivered = async (secret: string) =>
      client.deliver<{ status: string }>(
        `/v1/webhooks/projects/${project}/on-push`,
        await pushDelivery(secret, randomUUID()),
      );
    await page.goto(`${baseUrl}/#/projects/${project}/secrets`);
    const form = page.locator("form.form");
    await form.getByLabel("Name", { exact: true }).fill("GITHUB_WEBHOOK_SECRET");
    await form.getByLabel("Value", { exact: true }).fill(LINES);
    // The value is masked, so the reader does not see the line break at its end.
    const hint = "begins or ends with a space or a line break";
    await form.getByText(hint).waitFor();
    await form.getByRole("button", { name: "Add the secret" }).click();
    await page.getByText("GITHUB_WEBHOOK_SECRET is set.").waitFor();
    await form.getByText(hint).waitFor({ state: "detached" });
    expect((await delivered(LINES)).status).toBe("fired");

    await page.getByRole("button", { name: "Replace GITHUB_WEBHOOK_SECRET" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("New value").fill(`${LINES}more`);
    expect(await dialog.getByText(hint).count()).toBe(0);
    await dialog.getByLabel("New value").fill(`${LINES}more\n`);
    await dialog.getByText(hint).waitFor();
    await dialog.getByLabel("Hours for which the previous value stays valid").fill("500");
    await dialog.getByRole("button", { name: "Replace" }).click();
    await dialog.getByText("Enter a number of hours from 0 to 168.").waitFor();
    await dialog.getByLabel("Hours for which the previous value stays valid").fill("0");
    await dialog.getByRole("button", { name: "Replace" }).click();
    await page.getByText("The value of GITHUB_WEBHOOK_SECRET is replaced.").waitFor();
    expect((await delivered(`${LINES}more\n`)).status).toBe("fired");
    await expect(delivered(`${LINES}more`)).rejects.toThrow();
    expect(complaints).toEqual([]);
  });
});

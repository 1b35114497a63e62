/** Secrets: over the service itself, what arrives there is what was typed; and their forms over a fake of it. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pushDelivery } from "../../../demo/sample.ts";
import { hasChromium, useBrowser } from "../browser.ts";
import { RealService } from "../real-service.ts";
import { makeWorld, PROJECT_ID } from "../samples/sample-project.ts";

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

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const PUT = `PUT /v1/projects/${PROJECT_ID}/secrets`;
const REFUSAL = {
  status: 422,
  code: "provider_refused",
  error: "api.openai.com rejects the key (401). It says: Incorrect API key provided. Nothing was saved.",
};
const UNTRIED = { name: "Save without a try" };

const formTitle = hasChromium
  ? "the form of a secret"
  : "the form of a secret (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(formTitle, () => {
  const start = useBrowser();

  it("has the focus in its value, so that nothing typed is lost or shown", async () => {
    const all = world();
    all.secrets = ["NPM_TOKEN"];
    const { page, fake, visit } = await start(all);
    await visit(`#/projects/${PROJECT_ID}/secrets`);
    await page.getByRole("button", { name: "Replace NPM_TOKEN" }).click();
    const dialog = page.getByRole("dialog");
    await page.keyboard.type("a value with blanks");
    expect(await dialog.getByLabel("New value").inputValue()).toBe("a value with blanks");
    expect(await dialog.getByLabel("Show").isChecked()).toBe(false);
    await dialog.getByRole("button", { name: "Replace" }).click();
    await page.getByText("The value of NPM_TOKEN is replaced.").waitFor();
    expect(fake.writes.at(-1)).toBe(
      `${PUT}/NPM_TOKEN {"value":"a value with blanks","previous_valid_ms":0,"try":true}`,
    );
    await page.getByLabel("Name", { exact: true }).click();
    await page.keyboard.press("Tab");
    await page.keyboard.type("another one");
    expect(await page.getByLabel("Value", { exact: true }).inputValue()).toBe("another one");
  });

  it("says why a provider refuses a key, and saves it without a try only if the reader wishes that", async () => {
    const { page, fake, visit } = await start(world());
    fake.world.refused = REFUSAL;
    await visit(`#/projects/${PROJECT_ID}/secrets`);
    await page.getByLabel("Name", { exact: true }).fill("OPENAI_API_KEY");
    await page.getByLabel("Value", { exact: true }).fill("sk-wrong");
    expect(await page.getByRole("button", UNTRIED).count()).toBe(0);
    await page.getByRole("button", { name: "Add the secret" }).click();
    await page.getByRole("alert").getByText(REFUSAL.error).waitFor();
    fake.world.refused = null;
    await page.getByRole("button", UNTRIED).click();
    await page.getByText("OPENAI_API_KEY is set.").waitFor();
    expect(fake.writes).toEqual([
      `${PUT}/OPENAI_API_KEY {"value":"sk-wrong","try":true}`,
      `${PUT}/OPENAI_API_KEY {"value":"sk-wrong"}`,
    ]);
    expect(await page.getByRole("button", UNTRIED).count()).toBe(0);
  });

  it("of a new value asks what to do with a refused key, and has it again if the reader goes back", async () => {
    const all = world();
    all.secrets = ["OPENAI_API_KEY"];
    const { page, fake, visit } = await start(all);
    await visit(`#/projects/${PROJECT_ID}/secrets`);
    await page.getByRole("button", { name: "Replace OPENAI_API_KEY" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("New value").fill("sk-wrong");
    fake.world.refused = REFUSAL;
    await dialog.getByRole("button", { name: "Replace" }).click();
    await dialog.getByText(REFUSAL.error).waitFor();
    await dialog.getByRole("button", { name: "Back" }).click();
    await dialog.getByRole("alert").getByText(REFUSAL.error).waitFor();
    expect(await dialog.getByLabel("New value").inputValue()).toBe("sk-wrong");
    await dialog.getByRole("button", { name: "Replace" }).click();
    await dialog.getByRole("heading", { name: "The key was not accepted" }).waitFor();
    fake.world.refused = null;
    await dialog.getByRole("button", UNTRIED).click();
    await page.getByText("The value of OPENAI_API_KEY is replaced.").waitFor();
    expect(fake.writes.at(-1)).toBe(`${PUT}/OPENAI_API_KEY {"value":"sk-wrong","previous_valid_ms":0}`);
  });

  it("of the set-up tries the key before its step is done", async () => {
    const all = world();
    all.setup = { ...all.setup, model: { required: true, model: null, source: null } };
    const { page, fake, visit } = await start(all);
    fake.world.refused = REFUSAL;
    await visit(`#/projects/${PROJECT_ID}/setup`);
    await page.getByLabel("Key", { exact: true }).fill("sk-wrong");
    await page.getByRole("button", { name: "Try and save the key" }).click();
    await page.getByRole("alert").getByText(REFUSAL.error).waitFor();
    await page.locator(".setup-step[data-state=now]", { hasText: "Name a model" }).waitFor();
    expect(fake.writes.at(-1)).toContain('{"value":"sk-wrong","try":true}');
    fake.world.refused = null;
    await page.getByRole("button", UNTRIED).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
    expect(fake.writes.at(-1)).toContain('{"value":"sk-wrong"}');
  });
});

/** The settings of a project, section by section. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { MANY_AGENTS } from "../samples/sample-options.ts";
import { makeWorld, PROJECT_ID } from "../samples/sample-project.ts";

const SETTINGS = `#/projects/${PROJECT_ID}/settings`;

const title = hasChromium ? "the settings" : "the settings (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("show the section that is chosen from the list, and the one that the address names", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit } = await start(makeWorld(Date.now()));
    await visit(SETTINGS);
    const focused = () => page.evaluate("document.activeElement.textContent");
    await page.getByRole("navigation", { name: "Settings" }).getByRole("button", { name: "Audit" }).click();
    await expect.poll(focused).toBe("Audit");
    expect(page.url()).toContain(`${SETTINGS}?section=audit`);
    await page.goBack();
    await visit(`${SETTINGS}?section=repository`);
    await expect.poll(focused).toBe("Repository");
    const about = page.getByRole("link", { name: "About this: Repository" });
    expect(await about.getAttribute("href")).toBe("/docs/guide/use/repositories");
  });

  it("list the agents with what each sets, why one cannot start, and what their runtimes lack", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit } = await start({ ...makeWorld(Date.now()), options: MANY_AGENTS });
    await visit(`${SETTINGS}?section=agents`);
    const table = page.getByRole("region", { name: "Agent, Runtime and model" });
    await table.getByText("falls back to fast, release-notes").waitFor();
    await page.getByText("broken cannot start: the runtime codex is not offered").waitFor();
    await table.getByText("3 abilities").first().click();
    await table.getByText("Codex has no mode that plans.").first().waitFor();
    await page.getByText("What other runtimes lack").click();
    await page.getByText("Gemini CLI does not tell what a command prints.").waitFor();
  });

  it("lead those who may to the invitations, and tell the others which person to ask", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const world = makeWorld(Date.now());
    const { page, visit } = await start(world);
    await visit(`${SETTINGS}?section=members`);
    await page.getByRole("link", { name: "Invite somebody to the account" }).click();
    await page.getByRole("heading", { name: "People", level: 1 }).waitFor();
  });

  it("have the command that clones the repository, and make the token for which git asks", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit, fake } = await start(makeWorld(Date.now()));
    await visit(`${SETTINGS}?section=repository`);
    await page.getByText(`/v1/git/${PROJECT_ID}.git greeter`).waitFor();
    await page.getByRole("button", { name: "Create an access token" }).click();
    await page.getByRole("dialog").getByText("git, valid for 24 hours").waitFor();
    expect(fake.writes.at(-1)).toMatch(/^POST \/v1\/tokens \{"name":"git","expires_at":/);
  });

  it("keep what is typed while the project changes elsewhere", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit, fake } = await start(makeWorld(Date.now()));
    await visit(SETTINGS);
    await page.getByLabel("Name", { exact: true }).fill("half typed");
    for (const project of fake.world.projects) Object.assign(project, { triggers_paused: true });
    await page.getByRole("button", { name: "Read platform.toml now" }).click();
    await page.getByRole("button", { name: "Resume all triggers" }).waitFor();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("half typed");
  });
});

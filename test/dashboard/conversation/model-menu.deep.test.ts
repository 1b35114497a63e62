/** The menu of models (dashboard/ui/model-menu.tsx) on the first page, with 300 models. Its order is tested in test/domain/model/menu.test.ts. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

const CHOICES = [
  ...Array.from({ length: 300 }, (_, at) => ({ id: `acme/model-${at + 1}` })),
  { id: "zeta/large", context: 200_000, price: { input: 3, cached: 0.3, output: 15 } },
  { id: "zeta/text-embedding-3" },
];

const title = hasChromium ? "the menu of models" : "the menu of models (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  const open = async (window: { readonly width?: number; readonly touch?: boolean } = {}) => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const opened = await start(makeWorld(Date.now()), window);
    const { page, visit } = opened;
    await page.route("**/session-options", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), model_choices: CHOICES } });
    });
    await visit("#/");
    await page.getByLabel("What should the agent do?").fill("Say good day.");
    const button = page.getByRole("combobox", { name: "Model", exact: true });
    const options = page.getByRole("dialog", { name: "Choose a model" }).getByRole("option");
    const active = async () => {
      const id = await page.getByRole("combobox", { name: "Search" }).getAttribute("aria-activedescendant");
      return page.locator(`[id="${id ?? ""}"] .model-name`).innerText();
    };
    return { ...opened, button, options, active, press: (key: string) => page.keyboard.press(key) };
  };

  it("shows each model with its provider, price and context, and leaves by Escape with the focus on its button", async () => {
    const { page, button, options, press } = await open();
    await button.click();
    expect(await options.count()).toBe(303);
    await page.getByRole("option", { name: "large zeta $3 in, $15 out · 200k" }).waitFor();
    const unfit = { name: "text-embedding-3 zeta makes embeddings, no text", disabled: true };
    await page.getByRole("option", unfit).waitFor();
    await press("Escape");
    expect(await options.count()).toBe(0);
    expect(await page.locator(":focus").getAttribute("aria-label")).toBe("Model");
  });

  it("is moved through, searched and chosen from by keyboard alone, and takes nothing that is grey", async () => {
    const { page, fake, button, options, active, press } = await open();
    await button.focus();
    await press("ArrowDown");
    expect(await active()).toMatch(/^Default/);
    await press("ArrowDown");
    expect(await active()).toBe("large");
    await press("End");
    expect(await active()).toBe("text-embedding-3");
    await press("Enter");
    expect(await options.count()).toBe(303);
    await press("ArrowDown");
    await press("ArrowUp");
    await press("PageUp");
    expect(await active()).toBe("model-291");
    await press("Home");
    expect(await active()).toMatch(/^Default/);
    await page.keyboard.type("ACME 299");
    expect(await options.allInnerTexts()).toEqual([expect.stringMatching(/^model-299/)]);
    await page.keyboard.type("x");
    await page.getByText("No model has this name.").waitFor();
    await press("Backspace");
    await press("Enter");
    expect(await button.innerText()).toBe("model-299");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await expect.poll(() => fake.writes.join()).toContain('"agent_model":"acme/model-299"');
  });

  it("begins with what was chosen last, and closes when the focus goes elsewhere", async () => {
    const { page, button, options } = await open();
    const choose = async (name: string): Promise<void> => {
      await button.click();
      await page.getByRole("option", { name }).click();
    };
    await choose("model-42 acme");
    await choose("large zeta");
    await page.reload();
    await page.getByLabel("What should the agent do?").fill("Say good day.");
    await button.click();
    const names = await page.getByRole("group", { name: "Last used" }).locator(".model-name").allInnerTexts();
    expect(names.map((name) => name.replace(" ✓", ""))).toEqual(["large", "model-42"]);
    // A press on the button closes it, too, and does not open it again.
    await button.click();
    expect(await options.count()).toBe(0);
    await button.click();
    await page.getByLabel("What should the agent do?").click();
    await expect.poll(() => options.count()).toBe(0);
  });

  it("in a session, closes by Escape without an end of the agent's turn", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, fake, visit } = await start(makeWorld(Date.now()));
    await visit(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`);
    await page.getByRole("button", { name: /^Model/ }).click();
    await page.getByRole("combobox", { name: "Model" }).click();
    await page.getByRole("option", { name: /^Claude Sonnet/ }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    expect(fake.writes).toEqual([]);
  });

  it("on a phone, shows its rows without the keyboard of the search, and takes a tap", async () => {
    const { page, button, options } = await open({ width: 390, touch: true });
    await button.tap();
    await options.first().waitFor();
    expect(await page.locator(":focus").getAttribute("role")).toBe("dialog");
    await page.getByRole("option", { name: "large zeta" }).tap();
    expect(await button.innerText()).toBe("large");
    expect(await options.count()).toBe(0);
  });
});

/** The two ways in which a person uses the page: with the mouse, and with the keyboard alone. */
import type { Page } from "playwright-core";

export interface Hand {
  /** Presses the button, or follows the link, of that name. */
  readonly press: (name: string) => Promise<void>;
  /** Replaces the text of the field with that label. */
  readonly write: (label: string, text: string) => Promise<void>;
  /** Chooses the option of the select with that label. */
  readonly choose: (label: string, option: string) => Promise<void>;
}

/** More presses than any page has places for the focus. */
const TABS_MAX = 120;

/** In a dialog while one is open. The page behind it is out of reach. */
const around = async (page: Page) =>
  (await page.locator("dialog[open]").count()) > 0 ? page.getByRole("dialog") : page.locator("body");

export const mouse = (page: Page): Hand => ({
  press: async (name) => {
    const place = await around(page);
    const target = place
      .getByRole("button", { name, exact: true })
      .or(place.getByRole("link", { name, exact: true }))
      .or(place.locator(`summary[aria-label="${name}"]`))
      .or(place.locator("summary", { hasText: name }));
    await target.filter({ visible: true }).first().click();
  },
  write: async (label, text) => {
    const field = (await around(page)).getByLabel(label, { exact: true });
    await field.click();
    await field.fill(text);
  },
  choose: async (label, option) => {
    const field = (await around(page)).getByRole("combobox", { name: label }).first();
    if ((await field.evaluate((element) => element.tagName)) === "SELECT") {
      await field.selectOption(option);
      return;
    }
    await field.click();
    await page.getByRole("option", { name: option }).click();
  },
});

/** The name of what has the focus, as a reader of the screen hears it. */
const FOCUSED = `(() => {
  const at = document.activeElement;
  return (at.ariaLabel ?? at.labels?.[0]?.firstChild?.textContent ?? at.textContent).trim();
})()`;

export const keyboard = (page: Page): Hand => {
  const go = async (name: string): Promise<void> => {
    for (let count = 0; count < TABS_MAX; count += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one press after the other
      if ((await page.evaluate<string>(FOCUSED)) === name) return;
      // oxlint-disable-next-line no-await-in-loop -- the same
      await page.keyboard.press("Tab");
    }
    throw new Error(`no press of the tab key leads to ${name}`);
  };
  return {
    press: async (name) => {
      await go(name);
      await page.keyboard.press("Enter");
    },
    write: async (label, text) => {
      await go(label);
      await page.keyboard.press("Control+a");
      await page.keyboard.type(text);
    },
    choose: async (label, option) => {
      await go(label);
      // A blank opens the menu if the browser takes it for a key of its own: on a busy machine it comes late.
      const isSelect = (await page.evaluate("document.activeElement.tagName")) === "SELECT";
      if (!isSelect) await page.keyboard.press("Enter");
      await page.keyboard.type(isSelect ? (option.split(" ", 1)[0] ?? "") : option);
      if (!isSelect) await page.keyboard.press("Enter");
    },
  };
};

export const HANDS = [
  { by: "mouse", hand: mouse },
  { by: "keyboard alone", hand: keyboard },
] as const;

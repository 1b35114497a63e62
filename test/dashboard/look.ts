/**
 * `npm run look`: pictures of every page and state, light and dark, wide and narrow, in node_modules/.cache/look. Names
 * after the command choose states. People look at them; it checks nothing.
 */
import * as fs from "node:fs";
import * as path from "node:path";
import type { Browser } from "playwright-core";
import { hasChromium, launch, open } from "./browser-window.ts";
import { makeWorld } from "./sample-project.ts";
import type { State } from "./state-of-a-page.ts";
import { STATES } from "./states.ts";

const PICTURES = path.resolve(import.meta.dirname, "../../node_modules/.cache/look");
const WIDTHS = [1440, 390];

const shoot = async (browser: Browser, state: State, window: { width: number; dark: boolean }) => {
  // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
  const world = makeWorld(Date.now());
  state.change?.(world);
  const { page, visit, close } = await open(browser, world, { ...window, signedIn: state.signedIn ?? true });
  await visit(state.hash);
  await page.locator(state.shows).first().waitFor();
  await state.act?.(page);
  const name = `${state.name}-${String(window.width)}-${window.dark ? "dark" : "light"}.png`;
  await page.screenshot({ path: path.join(PICTURES, name), fullPage: state.act === undefined });
  await close();
};

const main = async (names: readonly string[]): Promise<number> => {
  if (!hasChromium) throw new Error("/usr/bin/chromium is missing. Install it: apt install chromium");
  fs.mkdirSync(PICTURES, { recursive: true });
  const browser = await launch();
  const wanted = STATES.filter(({ name }) => names.length === 0 || names.includes(name));
  for (const state of wanted) {
    for (const width of WIDTHS) {
      for (const dark of [false, true]) await shoot(browser, state, { width, dark });
    }
  }
  await browser.close();
  return wanted.length * WIDTHS.length * 2;
};

const made = await main(process.argv.slice(2));
process.stdout.write(`${made} pictures in ${PICTURES}\n`);

/**
 * `npm run look`: pictures of every page and state, light and dark, wide and narrow, and in forced colours, in node_modules/.cache/look. Names
 * after the command choose states. People look at them; it checks nothing.
 */
import * as fs from "node:fs";
import * as path from "node:path";
import type { Browser } from "playwright-core";
import { hasChromium, launch, open } from "./browser-window.ts";
import { makeWorld } from "./samples/sample-project.ts";
import type { State } from "./states/state-of-a-page.ts";
import { STATES } from "./states/states.ts";

const PICTURES = path.resolve(import.meta.dirname, "../../node_modules/.cache/look");

interface Look {
  readonly width: number;
  readonly scheme: "light" | "dark" | "forced";
}

const LOOKS: readonly Look[] = [
  ...[1440, 390].flatMap((width) => [
    { width, scheme: "light" as const },
    { width, scheme: "dark" as const },
  ]),
  // With the reader's own colours.
  { width: 1440, scheme: "forced" },
];

const shoot = async (browser: Browser, state: State, { width, scheme }: Look) => {
  // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
  const world = makeWorld(Date.now());
  state.change?.(world);
  const { page, visit, close } = await open(browser, world, {
    width,
    dark: scheme === "dark",
    signedIn: state.signedIn ?? true,
  });
  if (scheme === "forced") await page.emulateMedia({ forcedColors: "active" });
  await visit(state.hash);
  await page.locator(state.shows).first().waitFor();
  await state.act?.(page);
  const name = `${state.name}-${String(width)}-${scheme}.png`;
  await page.screenshot({ path: path.join(PICTURES, name), fullPage: state.act === undefined });
  await close();
};

const main = async (names: readonly string[]): Promise<number> => {
  if (!hasChromium) throw new Error("/usr/bin/chromium is missing. Install it: apt install chromium");
  fs.mkdirSync(PICTURES, { recursive: true });
  const browser = await launch();
  const wanted = STATES.filter(({ name }) => names.length === 0 || names.includes(name));
  for (const state of wanted) {
    for (const look of LOOKS) await shoot(browser, state, look);
  }
  await browser.close();
  return wanted.length * LOOKS.length;
};

const made = await main(process.argv.slice(2));
process.stdout.write(`${made} pictures in ${PICTURES}\n`);

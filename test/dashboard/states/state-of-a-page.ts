/** One state of one page, for states.ts. */
import type { Page } from "playwright-core";
import type { World } from "../fakes/fake-service.ts";

export interface State {
  readonly name: string;
  readonly hash: string;
  /** Shown when the state is complete. */
  readonly shows: string;
  readonly change?: (world: World) => void;
  /** Actions of the reader before the picture. */
  readonly act?: (page: Page) => Promise<void>;
  readonly signedIn?: false;
}

/** Parts of an address that show the same page: its filters and the ids. */
const VARIANT = /\?.*$|(?<=\/)[0-9a-f]{8}-[0-9a-f-]{27}/g;

/** @returns the first of each page, for a run that shows each page once. */
export const firstOfEachPage = <A extends { readonly hash: string }>(all: readonly A[]): readonly A[] => {
  const firsts = Map.groupBy(all, ({ hash }) => hash.replaceAll(VARIANT, ""));
  return [...firsts.values()].flatMap((ofPage) => ofPage.slice(0, 1));
};

/** Presses the button of that name, outside of a dialog. */
export const pressed = (name: string) => (page: Page) =>
  page.getByRole("button", { name, exact: true }).first().click();

/** Presses the action of a session in the head of its page, or chooses it from the menu there. */
export const chosen = (name: string) => async (page: Page) => {
  const button = page.locator(".session-head").getByRole("button", { name, exact: true });
  const menu = page.locator(".session-head .menu > summary");
  await button.or(menu).filter({ visible: true }).first().waitFor();
  if (!(await button.isVisible())) await menu.click();
  await button.click();
};

/** Types into the text area, and waits for what may complete it. @param id of the text area */
export const completing = (id: string, typed: string) => async (page: Page) => {
  await page.locator(`#${id}`).focus();
  await page.keyboard.type(typed);
  await page.getByRole("option").first().waitFor();
};

/** Opens the details of that summary. */
export const unfolded = (summary: string) => (page: Page) =>
  page.locator("summary", { hasText: summary }).first().click();

/** The world with other parts. They are made anew for each world, because what a reader does may change them. */
export const having =
  (rest: () => Partial<World>) =>
  (world: World): void =>
    void Object.assign(world, rest());

/** The first project with other fields. */
export const withProject =
  (rest: Readonly<Record<string, unknown>>) =>
  (world: World): void => {
    world.projects = world.projects.map((one, index) => (index === 0 ? { ...one, ...rest } : one));
  };

/** Refuses every change in these words. */
export const refusing =
  (error: string, issues: readonly (readonly [path: string, message: string])[] = []) =>
  (world: World): void => {
    world.refused = {
      status: 400,
      code: "invalid_request",
      error,
      details: { issues: issues.map(([path, message]) => ({ path, message })) },
    };
  };

/**
 * Modules that are loaded when they are first needed, because few readers need them. They are not part of the first
 * 115 kB (decision 0095).
 */
import { ACTIONS } from "./actions.ts";
import { ApiError, getText } from "../api/api.ts";
import type { Live, Module, Page, RemadePage } from "./page.ts";

/** Why a module did not come: the service does not respond, or it has only a newer version of the page. */
const missing = async () => {
  const own = import.meta.url.slice(import.meta.url.lastIndexOf("/") + 1);
  const newest = await getText("/");
  return newest.includes(own)
    ? new ApiError(0, { code: "unreachable", error: "The service does not respond." })
    : new ApiError(410, {
        code: "outdated",
        error: "The service was upgraded since this page was opened. Reload the page.",
      });
};

/** Loads a module, with the actions of its buttons. @param read imports the module */
export const bring = async (read: () => Promise<Module>) => {
  const module = await read().catch(async () => {
    throw await missing();
  });
  Object.assign(ACTIONS, module.actions);
  return module;
};

/**
 * A page of a module that exports `pages`.
 *
 * @param read imports the module
 * @param name of the page
 * @param known what the page has before it is loaded, e.g. `follow`
 */
export const later = (read: () => Promise<Module>, name: string, known: Partial<Page> = {}): Page => {
  let page: Page;
  const ready = async (): Promise<void> => {
    page = (await bring(read)).pages?.[name];
  };
  return {
    ...known,
    ready,
    load: async (...asked) => {
      await ready();
      return page.load(...asked);
    },
    title: (...shown) => page.title(...shown),
    view: (...shown) => page.view(...shown),
  };
};

/** Modules of pages, by their folder: main.ts has them. */
export const FOLDERS: Record<string, () => Promise<Module>> = {};

/**
 * A page (ui/framed-page.tsx) of a folder, loaded when it is first needed. It draws itself in a place of its own.
 *
 * @param name of the page
 * @param known what the page has before it is loaded, e.g. `hearsProject`
 */
export const lazyPage = (folder: string, name: string, known: Partial<Page> = {}): Page => {
  let page: RemadePage | null = null;
  const read = async () => {
    const module = await FOLDERS[folder]?.();
    if (module === undefined) throw new Error(`main.ts has no folder ${folder}`);
    page = module.pages?.[name];
    return module;
  };
  return {
    ...later(read, name, known),
    follow: (params, redraw, project): Live => {
      let hasEnded = false;
      const begin = () => {
        if (!hasEnded) page?.begin(params, { redraw, project });
      };
      if (page !== null) begin();
      // If the script does not come, `load` says so.
      else void read().then(begin, () => {});
      return {
        drawn: (...shown) => page?.drawn(...shown),
        end: () => {
          hasEnded = true;
          page?.end();
        },
      };
    },
  };
};

/** The terminal has the page's largest library. Its module brings the action itself. */
ACTIONS["open-terminal"] = async (input, page) => {
  const { actions } = await bring(() => import("../terminal/terminal.ts"));
  await actions?.["open-terminal"]?.(input, page);
};

/** Few readers stop sessions. */
ACTIONS["stop-session"] = async (input, page) => {
  const { actions } = await bring(() => import("../saved/stopping.ts"));
  await actions?.["stop-session"]?.(input, page);
};

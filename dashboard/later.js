/**
 * Pages that are loaded when they are first opened, because few readers open them. Their modules are not part of the
 * first 150 kB (decision 0065).
 */
import { ACTIONS } from "./actions.js";
import { ApiError } from "./api.js";

/** The handlers of the forms of loaded pages, by their `data-action`. @type {Record<string, import("./forms.js").Submit>} */
export const laterForms = {};

/**
 * A page of a module that exports `pages`, and may export the `forms` and `actions` of these pages.
 *
 * @param {() => Promise<any>} read imports the module
 * @param {string} name of the page
 * @param {object} [known] what the page has before it is loaded, e.g. `follow`
 */
export const later = (read, name, known = {}) => {
  /** @type {any} */
  let page = null;
  return {
    ...known,
    /** @param {...any} asked */
    load: async (...asked) => {
      const {
        pages,
        forms = {},
        actions = {},
      } = await read().catch(() => {
        throw new ApiError(0, { code: "unreachable", error: "The service does not respond." });
      });
      Object.assign(laterForms, forms);
      Object.assign(ACTIONS, actions);
      page = pages[name];
      return page.load(...asked);
    },
    /** @param {...any} shown */
    title: (...shown) => page.title(...shown),
    /** @param {...any} shown */
    view: (...shown) => page.view(...shown),
  };
};

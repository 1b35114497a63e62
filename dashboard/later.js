/**
 * Modules that are loaded when they are first needed, because few readers need them. They are not part of the first
 * 150 kB (decision 0065).
 */
import { ACTIONS } from "./actions.js";
import { ApiError } from "./api.js";

/** The handlers of the forms of loaded modules, by their `data-action`. @type {Record<string, import("./forms.js").Submit>} */
export const laterForms = {};

/**
 * Loads a module, with the actions of its buttons and the handlers of its forms.
 *
 * @template {{actions?: Record<string, import("./actions.js").Action>, forms?: typeof laterForms}} Module
 * @param {() => Promise<Module>} read imports the module
 */
export const bring = async (read) => {
  const module = await read().catch(() => {
    throw new ApiError(0, { code: "unreachable", error: "The service does not respond." });
  });
  Object.assign(laterForms, module.forms);
  Object.assign(ACTIONS, module.actions);
  return module;
};

/**
 * A page of a module that exports `pages`.
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
      page = (await bring(read)).pages[name];
      return page.load(...asked);
    },
    /** @param {...any} shown */
    title: (...shown) => page.title(...shown),
    /** @param {...any} shown */
    view: (...shown) => page.view(...shown),
  };
};

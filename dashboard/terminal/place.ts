/** Where the terminal is on the page. It is moved, not made again, so that a terminal outlives a look at another page of its session. */
import { h } from "../elements/dom.ts";

export const TERMINAL_PLACE = h("div", { class: "terminal-here" });

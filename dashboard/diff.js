/** Lines of a unified diff. */
import { h } from "./dom.js";

/** @param {string[]} lines */
export const diffLines = (lines) =>
  h(
    "pre",
    { class: "diff", tabindex: 0 },
    lines.map((line) => h("span", { class: kindOf(line) }, `${line}\n`)),
  );

/** @param {string} line */
const kindOf = (line) => {
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return line.startsWith("@@") ? "hunk" : "same";
};

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

/**
 * Lines with their numbers in the files. The numbers are drawn by the style sheet, so that a copy has the lines alone.
 *
 * @param {(import("./diff-parse.js").DiffLine | null)[]} lines null: an empty line, opposite to one of the other side
 * @param {"before" | "after"} [side] one column of two
 */
export const numberedLines = (lines, side) =>
  h(
    "pre",
    {
      class: "diff numbered",
      tabindex: 0,
      "data-side": side,
      "aria-label": side === undefined ? "Changes" : side === "before" ? "Before" : "After",
    },
    lines.map((line) =>
      line === null
        ? h("span", { class: "nothing" }, "\n")
        : h(
            "span",
            {
              class: line.kind,
              "data-before": side === "after" ? null : (line.before ?? ""),
              "data-after": side === "before" ? null : (line.after ?? ""),
            },
            `${line.text}\n`,
          ),
    ),
  );

/** Sources of the page: a clone builds it anew when one of them is newer, its icons are of one set, and its styles are found quickly. */
import path from "node:path";
import { expect, it } from "vitest";
import { SEARCH } from "../../dashboard/elements/icons.ts";
import { BUNDLE_SOURCES } from "../../src/http/pages/page-bundle.ts";
import { files, read, ROOT } from "../support/documents.ts";

it("builds the page anew for each file of the service that it takes", () => {
  const taken = files("dashboard/*.ts", "dashboard/*.tsx")
    .filter((file) => !file.endsWith(".d.ts"))
    .flatMap((file) =>
      [...read(file).matchAll(/^(?:import|export) (?!type\b)[^;]*? from "([^"]*\/src\/[^"]+)";$/gm)].map(
        ([, from = ""]) => path.resolve(ROOT, path.dirname(file), from),
      ),
    );
  expect(taken.length).toBeGreaterThan(0);
  expect(BUNDLE_SOURCES).toEqual(expect.arrayContaining(taken));
});

const values = (text: string, form: RegExp) => [...text.matchAll(form)].map(([, value]) => value);

it("has icons of one set", () => {
  const drawn = files("dashboard/*.tsx").filter((file) => read(file).includes("<svg"));
  expect(drawn.toSorted()).toEqual([
    // A ring that says a number, and a chart.
    "dashboard/conversation/foot/meter.tsx",
    "dashboard/state/statechart.tsx",
    "dashboard/ui/icon.tsx",
  ]);
  // The bar has its icon before the page's script has come.
  const [, shapes = ""] = /<svg[^>]*>([^]*?)<\/svg>/.exec(read("dashboard/index.html")) ?? [];
  expect(values(shapes, /="([^"]+)"/g)).toEqual(SEARCH.flatMap(([, shape]) => Object.values(shape)));
});

/** The selectors of a style sheet, one by one, without what stands in parentheses behind a colon. */
const plainSelectors = (css: string): string[] => {
  const rules = css.replace(/\/\*[^]*?\*\//g, "").matchAll(/([^{}@;]*:has\([^{}]*)\{/g);
  return [...rules].flatMap(([, selectors = ""]) => {
    let plain = selectors;
    for (let before = ""; before !== plain;) {
      before = plain;
      plain = plain.replace(/:[\w-]+\([^()]*\)/g, "");
    }
    return plain.split(",");
  });
};

it("names what a style with `:has()` is about: otherwise a key in the composer computes the styles of all that the page shows", () => {
  const selectors = files("dashboard/*.css").flatMap((file) => plainSelectors(read(file)));
  expect(selectors.length).toBeGreaterThan(20);
  expect(selectors.filter((selector) => /(?:^|[>~+\s])\*?$/.test(selector.trim()))).toEqual([]);
});

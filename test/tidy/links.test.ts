/** Every link of every Markdown document leads somewhere: to a file of the repository, and to a heading that exists. */
import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { outline } from "../../src/http/pages/markdown.ts";
import { files, read, ROOT } from "../support/documents.ts";

const DOCUMENTS = files("*.md");
const OUTLINES = new Map(DOCUMENTS.map((file) => [file, outline(read(file))]));

const isElsewhere = (link: string): boolean => /^[a-z][a-z0-9+.-]*:/i.test(link);

/** A link's target from the root, and its anchor. */
const targetOf = (
  file: string,
  link: string,
): { readonly target: string; readonly anchor: string | null } => {
  const [target = "", anchor = null] = link.split("#");
  const found = target === "" ? file : path.posix.join(path.posix.dirname(file), decodeURIComponent(target));
  return { target: found.replace(/\/$/, ""), anchor };
};

/** The error of a link, or null. */
const faultOf = (file: string, link: string): string | null => {
  if (link.startsWith("/")) return "begins with a slash";
  const { target, anchor } = targetOf(file, link);
  if (target.startsWith("..")) return "leads out of the repository";
  if (!existsSync(path.join(ROOT, target))) return `${target} does not exist`;
  if (anchor === null || !target.endsWith(".md")) return null;
  return OUTLINES.get(target)?.anchors.has(anchor) === true ? null : `${target} has no heading #${anchor}`;
};

test("links lead to files and headings of the repository", () => {
  const faults = [...OUTLINES].flatMap(([file, { links }]) =>
    links
      .filter((link) => !isElsewhere(link))
      .flatMap((link) => {
        const fault = faultOf(file, link);
        return fault === null ? [] : [`${file}: ${link}: ${fault}`];
      }),
  );
  expect(faults).toEqual([]);
});

test("documents of docs are linked from their index", () => {
  const index = "docs/README.md";
  const reached = new Set([index]);
  // The set grows while it is walked.
  for (const file of reached) {
    for (const link of OUTLINES.get(file)?.links ?? []) {
      if (isElsewhere(link)) continue;
      const { target } = targetOf(file, link);
      const place = path.join(ROOT, target);
      const document =
        existsSync(place) && statSync(place).isDirectory() ? path.posix.join(target, "README.md") : target;
      if (document.startsWith("docs/") && OUTLINES.has(document)) reached.add(document);
    }
  }
  const all = DOCUMENTS.filter((file) => file.startsWith("docs/"));
  expect(all.filter((file) => !reached.has(file))).toEqual([]);
});

const lines = (file: string): number => read(file).split("\n").length - 1;

test("README, the index and the documents for users of the service stay short", () => {
  expect(lines("README.md")).toBeLessThanOrEqual(150);
  expect(lines("docs/README.md")).toBeLessThanOrEqual(70);
  expect(DOCUMENTS.filter((file) => file.startsWith("docs/use/") && lines(file) > 120)).toEqual([]);
});

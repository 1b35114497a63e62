/** A clone builds its page anew when a source of it is newer. The page takes a few files of the service, too. */
import path from "node:path";
import { expect, it } from "vitest";
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

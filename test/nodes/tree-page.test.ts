import { expect, it } from "@effect/vitest";
import type { TreePage } from "../../src/git/port.ts";
import { decodePage, encodePage } from "../../src/nodes/tree-page.ts";

it("carries a page of a tree through JSON, with any bytes", () => {
  const content = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const page: TreePage = {
    entries: [
      { path: "ä/bytes", kind: "executable", size: 256, content },
      { path: "empty", kind: "link", size: 0, content: new Uint8Array() },
    ],
    next: "empty",
  };
  expect(decodePage(JSON.parse(JSON.stringify(encodePage(page))))).toEqual(page);
  expect(decodePage(JSON.parse("null"))).toBeNull();
});

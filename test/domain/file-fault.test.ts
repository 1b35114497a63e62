import { expect, test } from "vitest";
import { fileFault } from "../../src/domain/file-fault.ts";

test("says why a file cannot be used, as the end of a sentence", () => {
  const of = (code: string) => fileFault(Object.assign(new Error(`${code}: raw`), { code }));
  expect(of("ENOENT")).toBe("it does not exist");
  expect(of("EISDIR")).toBe("it is a directory");
  expect(of("ENOSPC")).toBe("the disk is full");
  expect(of("EWHATEVER")).toBe("EWHATEVER: raw");
  expect(fileFault("a text")).toBe("a text");
});

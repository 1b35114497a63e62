import { expect, it } from "vitest";
import { leftOutWords } from "../../../src/domain/save/reasons.ts";

it("says in words why something was left out, and leaves sentences of earlier versions as they are", () => {
  expect(leftOutWords("limit")).toBe("no room within the limits");
  expect(leftOutWords("larger than 10 MiB")).toBe("larger than 10 MiB");
  expect(leftOutWords("a_new_reason")).toBe("a new reason");
  expect(leftOutWords("constructor")).toBe("constructor");
});

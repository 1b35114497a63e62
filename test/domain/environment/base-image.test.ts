import { expect, it } from "vitest";
import { hasNewerBase } from "../../../src/domain/environment/base-image.ts";

const at = (digest: string | null) => [{ reference: "images.example.com/a:1", digest }];

it("takes a tag for changed only if both digests are known", () => {
  const [one, other] = ["a", "b"].map((letter) => `sha256:${letter.repeat(64)}`) as [string, string];
  expect(hasNewerBase(at(one), at(other))).toBe(true);
  expect(hasNewerBase(at(one), at(one))).toBe(false);
  expect(hasNewerBase(at(null), at(other))).toBe(false);
  expect(hasNewerBase(at(one), at(null))).toBe(false);
  expect(hasNewerBase(at(one), [])).toBe(false);
});

import { expect, test } from "vitest";
import { IMAGE_REFERENCE_MAX, isImageReference } from "../../src/domain/image.ts";

test.each([
  "node-tools",
  "debian:12",
  "a",
  "team/tools",
  "team/tools:Latest_1.0-rc.1",
  "images.example.com/team/tools",
  "localhost:5000/tools:1",
  "a_b__c-d.e",
])("%s names an image", (text) => {
  expect(isImageReference(text)).toBe(true);
});

test.each([
  "",
  "Upper",
  "a b",
  "-a",
  "a-",
  "a//b",
  "/a",
  "a/",
  "../a",
  "a/../b",
  ".a",
  "a:",
  "a:b:c",
  "a\n",
  "a@sha256:00",
  "ä",
  "a".repeat(IMAGE_REFERENCE_MAX + 1),
])("%j names none", (text) => {
  expect(isImageReference(text)).toBe(false);
});

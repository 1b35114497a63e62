import { expect, test } from "vitest";
import {
  buildImageName,
  buildOfImageName,
  IMAGE_REFERENCE_MAX,
  isImageReference,
} from "../../../src/domain/environment/image.ts";

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

test("the image of a build has a name that is no reference, and leads back to its build [E12]", () => {
  const id = "01890000-0000-7000-8000-000000000000";
  expect(isImageReference(buildImageName(id))).toBe(false);
  expect(buildOfImageName(buildImageName(id))).toBe(id);
  expect(buildOfImageName("tools:1")).toBeNull();
});

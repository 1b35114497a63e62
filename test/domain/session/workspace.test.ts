import { expect, it } from "vitest";
import { isInside } from "../../../src/domain/session/workspace.ts";

it.each(["a", "src/app.ts", "..a", "a..", ".github/x", ".gitignore", "ä/ö", "a b"])(
  "takes %j for a path in the workspace",
  (path) => expect(isInside(path)).toBe(true),
);

it.each([
  "",
  "/etc/passwd",
  "..",
  "a/../../b",
  "./a",
  "a//b",
  "a/",
  ".git",
  "sub/.GIT/config",
  "a\0b",
  "\ud800",
  "x".repeat(4097),
])("does not take %j", (path) => expect(isInside(path)).toBe(false));

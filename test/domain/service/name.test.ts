import * as Result from "effect/Result";
import { expect, it } from "vitest";
import { parseInstallationName } from "../../../src/domain/service/name.ts";

it("takes a short name of one line, without the blanks around it", () => {
  expect(parseInstallationName(" Ada & Co ")).toEqual(Result.succeed("Ada & Co"));
  for (const text of ["", "  ", "two\nlines", "x".repeat(41)])
    expect(Result.isFailure(parseInstallationName(text))).toBe(true);
});

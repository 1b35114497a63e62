/** The headers for a collector. */
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import { parseOtlpHeaders } from "../../../src/domain/service/otlp-headers.ts";

describe("the headers for a collector", () => {
  it("are pairs with percent escapes in values", () => {
    const headers = { authorization: "Bearer a=b", "x-scope": "one,two" };
    expect(parseOtlpHeaders("Authorization=Bearer a=b, x-scope=one%2Ctwo")).toEqual(Result.succeed(headers));
  });

  it("are refused in another form, without the value in the words", () => {
    for (const wrong of ["canary", "=canary", "a b=canary", "x=canary%0d%0ay: z", "x=canary%", "x=canaryü"]) {
      const refused = parseOtlpHeaders(wrong);
      expect(Result.isFailure(refused) && refused.failure).toMatch(/^`name=value` pairs/);
    }
  });
});

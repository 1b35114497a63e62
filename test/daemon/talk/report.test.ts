import { expect, test } from "vitest";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { Report } from "../../../daemon/report.ts";

const report = (secrets: readonly string[] = []): Report =>
  new Report({ version: "1", redactor: new Redactor(secrets), repoUrl: "http://x/r.git", branch: "b" });

test("an error's text is never cut within a surrogate pair, and contains no NUL", () => {
  const told = report();
  told.setError("runtime", `\0${"x".repeat(4095)}🚀 and more`);
  expect(told.health().error).toBe("x".repeat(4095));
});

test("a secret with NULs inside is masked", () => {
  const told = report(["the-secret"]);
  told.setError("checkout", "tried the\0-sec\0ret");
  expect(told.health().error).toBe("tried [redacted]");
});

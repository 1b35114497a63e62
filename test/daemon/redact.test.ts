import { expect, test } from "vitest";
import { makeLog } from "../../daemon/log.ts";
import { Redactor } from "../../daemon/redact.ts";

test("masks every secret, also as a URL would spell it, and ones added later", () => {
  const redactor = new Redactor(["s3cret/value"]);
  redactor.add("later-secret");
  expect(redactor.redact("a s3cret/value b s3cret%2Fvalue c later-secret")).toBe(
    "a [redacted] b [redacted] c [redacted]",
  );
});

test("masks each line of a secret that has several, as a key file has", () => {
  const redactor = new Redactor(["first-line\nsecond-line\n"]);
  expect(redactor.redact("printed: second-line")).toBe("printed: [redacted]");
});

test("leaves text alone that only holds a very short value", () => {
  expect(new Redactor(["", "a", "12345"]).redact("a 12345 banana")).toBe("a 12345 banana");
});

test("keeps secrets out of every field of a log line", () => {
  const lines: string[] = [];
  const log = makeLog(new Redactor(["the-secret"]), (line) => lines.push(line));
  log("tried the-secret", { message: "with the-secret", port: 8000, ok: false });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    event: "tried [redacted]",
    message: "with [redacted]",
    port: 8000,
    ok: false,
  });
});

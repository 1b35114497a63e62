import { expect, test } from "vitest";
import { Allowance } from "../../../daemon/logs/allowance.ts";
import { LogRing } from "../../../daemon/logs/log-ring.ts";
import { makeLog } from "../../../daemon/logs/log.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";

test("masks every secret, also in URL encoding, and ones added later", () => {
  const redactor = new Redactor(["s3cret/value"]);
  redactor.add("later-secret");
  expect(redactor.redact("a s3cret/value b s3cret%2Fvalue c later-secret")).toBe(
    "a [redacted] b [redacted] c [redacted]",
  );
});

test.each([
  ["quotes, a backslash and a line break", 'qu"ote\\back\nslash', String.raw`qu\"ote\\back\nslash`],
  ["other characters than ASCII", "pässwörd-日本", String.raw`p\u00e4ssw\u00f6rd-\u65e5\u672c`],
  ["the same in capitals", "pässwörd-日本", String.raw`p\u00E4ssw\u00F6rd-\u65E5\u672C`],
  ["a character beyond 16 bits", "secret-😀", String.raw`secret-\ud83d\ude00`],
  ["characters of HTML", "<secret&one>", String.raw`\u003csecret\u0026one\u003e`],
  ["slashes", "a/secret/path", String.raw`a\/secret\/path`],
  ["JSON within JSON", 'a"secret"', String.raw`a\\\"secret\\\"`],
])("masks a secret inside a JSON string: %s", (_, secret, printed) => {
  expect(new Redactor([secret]).redact(`{"value":"${printed}"}`)).toBe('{"value":"[redacted]"}');
});

test("masks each line of a multi-line secret, such as a key file", () => {
  const redactor = new Redactor(["first-line\nsecond-line\n"]);
  expect(redactor.redact("printed: second-line")).toBe("printed: [redacted]");
});

test("masks the whole secret if it begins as another one does", () => {
  expect(new Redactor(["begins", "begins-and-goes-on"]).redact("x begins-and-goes-on y")).toBe(
    "x [redacted] y",
  );
});

test("cuts a text before a secret that the cut would split", () => {
  const redactor = new Redactor(["secret-one", "one-secret-two"]);
  expect(redactor.redactBeginning("abc secret-one", 8)).toBe("abc ");
  // The cut that spares the first secret goes through the other one.
  expect(redactor.redactBeginning("ab one-secret-two-secret-one", 20)).toBe("ab [redacted]-");
  expect(redactor.redactBeginning("ab secret-one", 13)).toBe("ab [redacted]");
  expect(redactor.redactBeginning("secret-one", 0)).toBe("");
});

test("masks a possible beginning of a secret at the end of a text that broke off", () => {
  const redactor = new Redactor(["the-whole-secret"]);
  expect(redactor.redactBroken("printing the-whole-se")).toBe("printing [redacted]");
  expect(redactor.redactBroken("the-whole-secret and the-w")).toBe("[redacted] and the-w");
  expect(redactor.redactBroken("the-whole other")).toBe("the-whole other");
});

test("leaves text unchanged that only contains a very short value", () => {
  expect(new Redactor(["", "a", "12345"]).redact("a 12345 banana")).toBe("a 12345 banana");
});

test("keeps secrets out of every field of a log line", () => {
  const lines: string[] = [];
  const ring = new LogRing((line) => lines.push(line));
  const log = makeLog({ redactor: new Redactor(["the-secret"]), ring, allowance: new Allowance() });
  log("tried the-secret", { message: "with the-secret", port: 8000, ok: false });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    event: "tried [redacted]",
    message: "with [redacted]",
    port: 8000,
    ok: false,
  });
});

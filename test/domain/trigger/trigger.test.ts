import { expect, test } from "vitest";
import { isTriggerSlug } from "../../../src/domain/trigger/trigger.ts";
import { cron, onlyError, parse, slugs, webhook } from "../manifest/manifest-text.ts";

test.each(["a".repeat(129), "A", "-a", "_a", "a\n", "\u212a", "", "a%0a"])(
  "a slug in a URL follows the manifest's rule: refuses %j [W26]",
  (slug) => {
    expect(isTriggerSlug(slug)).toBe(false);
  },
);

test("a slug in a URL follows the manifest's rule: accepts 128 characters [W26]", () => {
  expect(isTriggerSlug("0".repeat(128))).toBe(true);
  expect(isTriggerSlug("a-b_c")).toBe(true);
});

test("a cron trigger's zone is UTC by default", () => {
  expect(parse(cron()).triggers[0]).toMatchObject({ cron: "0 0 2 * * *", timezone: "UTC" });
});

test("__proto__ in an entry is an unknown field and changes nothing [M06]", () => {
  const manifest = parse(`${webhook()}__proto__ = { enabled = false }\n`);
  expect(onlyError(manifest)).toMatchObject({ slug: "hook", path: "triggers[0].__proto__" });
  expect(parse(webhook({ __proto__: undefined })).triggers).toHaveLength(1);
  expect("enabled" in {}).toBe(false);
});

test("a value that comes only from __proto__ is missing [M06]", () => {
  const manifest = parse(
    '[[triggers]]\nslug = "a"\ntype = "webhook"\nprompt = "p"\n[triggers.__proto__]\nsecret_env = "S"\n',
  );
  expect(manifest.triggers).toEqual([]);
  expect(manifest.errors.map(({ path }) => path)).toEqual([
    "triggers[0].__proto__",
    "triggers[0].secret_env",
  ]);
});

test.each([
  ["slug", "2026-01-01"],
  ["slug", "1"],
  ["slug", "nan"],
  ["type", "true"],
  ["prompt", "[]"],
  ["prompt", "9007199254740993"],
  ["name", "{}"],
  ["agent", "1.5"],
  ["enabled", '"false"'],
  ["enabled", "0"],
  ["secret_env", "07:32:00"],
])("a wrong type of %s (%s) is an error of its entry alone [M09]", (field, value) => {
  const manifest = parse(`${webhook({ [field]: value })}\n${cron()}`);
  expect(slugs(manifest)).toEqual(["nightly"]);
  expect(onlyError(manifest)).toMatchObject({ index: 0, path: `triggers[0].${field}`, line: 1 });
});

test.each(["promt", "secretEnv", "Slug", "time_zone", "schedule", "secret", "SLUG"])(
  "the unknown field %s is an error that names the canonical ones [M10]",
  (field) => {
    const error = onlyError(parse(`${webhook()}${field} = "x"\n`));
    expect(error.path).toBe(`triggers[0].${field}`);
    expect(error.message).toContain("slug, type, prompt, name, title, agent, enabled, secret_env");
  },
);

test("fields of the other type are errors [M10]", () => {
  expect(onlyError(parse(webhook({ timezone: '"UTC"' }))).path).toBe("triggers[0].timezone");
  expect(onlyError(parse(cron({ secret_env: '"S"' }))).path).toBe("triggers[0].secret_env");
});

test("names at most ten unknown fields of an entry [M10]", () => {
  const unknown = Array.from({ length: 50_000 }, (_, index) => `x${index} = 1\n`).join("");
  expect(parse(webhook() + unknown).errors).toHaveLength(10);
});

test.each([
  "Upper",
  "with space",
  "-a",
  "_a",
  "",
  "a/b",
  "a.b",
  "größe",
  "a\\u200bb",
  "\\u202eabc",
  "аbc",
  "\\u212a",
  "a\\n",
  "a".repeat(129),
])("refuses the slug %j [M11]", (slug) => {
  const manifest = parse(`${webhook({ slug: `"${slug}"` })}\n${cron()}`);
  expect(slugs(manifest)).toEqual(["nightly"]);
  expect(onlyError(manifest).path).toBe("triggers[0].slug");
});

test("accepts the longest slug", () => {
  expect(slugs(parse(webhook({ slug: `"${"a".repeat(128)}"` })))).toEqual(["a".repeat(128)]);
});

test("reports the slug of a bad entry as it is written", () => {
  expect(onlyError(parse(webhook({ slug: '"Bad Slug"' }))).slug).toBe("Bad Slug");
  expect(onlyError(parse(webhook({ slug: undefined }))).slug).toBeNull();
});

test.each([
  ["name", "n".repeat(201)],
  ["name", "n".repeat(900_000)],
  ["name", "two\\nlines"],
  ["name", " "],
  ["prompt", "p".repeat(96 * 1024 + 1)],
  ["prompt", "é".repeat(48 * 1024 + 1)],
  ["prompt", ""],
])("refuses a %s that is too long, empty or several lines [M12]", (field, value) => {
  expect(onlyError(parse(webhook({ [field]: `"${value}"` }))).path).toBe(`triggers[0].${field}`);
});

test("counts the characters of a name, and not their units", () => {
  expect(parse(webhook({ name: `"${"😀".repeat(200)}"` })).errors).toEqual([]);
  expect(onlyError(parse(webhook({ name: `"${"😀".repeat(201)}"` }))).path).toBe("triggers[0].name");
});

test.each(["../../x", "/etc/x", "a/b", "a.md", "", ".", "x".repeat(65)])(
  "refuses the agent %j, which points outside [M14]",
  (agent) => {
    expect(onlyError(parse(webhook({ agent: `"${agent}"` }))).path).toBe("triggers[0].agent");
  },
);

test.each([
  ["in lower case", "lower"],
  ["with a leading digit", "1A"],
  ["with a command", "$(x)"],
  ["with a hyphen", "A-B"],
  ["with a blank", "A B"],
  ["with an equals sign", "A=B"],
  ["with a newline", "A\\n"],
  ["that is empty", ""],
  ["of 100 kB", "A".repeat(100_000)],
  ["of the platform's own", "PLATFORM_X"],
  ["that the sandbox uses", "PATH"],
])("refuses a secret_env %s [M17]", (_what, name) => {
  expect(onlyError(parse(webhook({ secret_env: `"${name}"` }))).path).toBe("triggers[0].secret_env");
});

test("accepts a long secret_env", () => {
  expect(parse(webhook({ secret_env: `"${"A".repeat(1000)}"` })).errors).toEqual([]);
});

test("a webhook trigger without secret_env and a cron trigger without cron are refused", () => {
  expect(onlyError(parse(webhook({ secret_env: undefined }))).message).toBe("secret_env is required.");
  expect(onlyError(parse(cron({ cron: undefined }))).message).toBe("cron is required.");
});

test.each(["slug", "type", "prompt"])("%s is required", (field) => {
  expect(onlyError(parse(webhook({ [field]: undefined }))).message).toBe(`${field} is required.`);
});

test("an entry's expression and zone are checked [C01] [C03] [C09]", () => {
  expect(onlyError(parse(cron({ cron: '"0 0 30 2 *"' }))).message).toContain("six fields");
  expect(onlyError(parse(cron({ cron: '"0 0 0 30 2 *"' }))).message).toContain("never matches");
  expect(onlyError(parse(cron({ timezone: '"utc"' }))).path).toBe("triggers[0].timezone");
  expect(onlyError(parse(cron({ timezone: '"+05:30"' }))).path).toBe("triggers[0].timezone");
});

test("reports all errors of an entry at once", () => {
  const manifest = parse(cron({ cron: '"nope"', timezone: '"Mars"', enabled: '"yes"', extra: "1" }));
  expect(manifest.errors.map(({ path }) => path)).toEqual([
    "triggers[0].enabled",
    "triggers[0].extra",
    "triggers[0].cron",
    "triggers[0].timezone",
  ]);
});

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { cron, parse, slugs, webhook } from "./manifest-text.ts";

/** What TOML can write as a value, right or wrong for a field. */
const tomlValue = fc.oneof(
  fc.constantFrom(
    "nan",
    "-inf",
    "1e400",
    "0x10",
    "9007199254740993",
    "true",
    "2026-11-20",
    "07:32:00",
    "''",
    "[]",
    "{}",
  ),
  fc.constantFrom(
    "[[1], ['a']]",
    "{ __proto__ = 1 }",
    "'constructor'",
    "'hook'",
    "'cron'",
    "'UTC'",
    "'* * * * * *'",
    "'../../..'",
  ),
  fc.string().map((text) => JSON.stringify(text)),
  fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text)),
);

test("good entries survive bad neighbours, and each slug is fired by one entry at most", () => {
  const slug = fc.constantFrom("a", "b", "c", "d");
  const good = fc.tuple(slug, fc.boolean()).map(([name, isCron]) => ({
    slug: name,
    isGood: true,
    text: (isCron ? cron : webhook)({ slug: `"${name}"` }),
  }));
  const field = fc.constantFrom("prompt", "type", "enabled", "extra", "agent");
  const wrong = fc.constantFrom("[]", "1", "nan", "2026-11-20", "{ a = 1 }");
  const bad = fc.tuple(slug, field, wrong).map(([name, key, value]) => ({
    slug: name,
    isGood: false,
    text: webhook({ slug: `"${name}"`, [key]: value }),
  }));
  fc.assert(
    fc.property(fc.array(fc.oneof(good, bad), { maxLength: 12 }), (entries) => {
      const manifest = parse(entries.map(({ text }) => text).join("\n"));
      const isFirst = (index: number): boolean =>
        entries.findIndex(({ slug: other }) => other === entries[index]?.slug) === index;
      const kept = entries.filter(({ isGood }, index) => isGood && isFirst(index));
      expect(slugs(manifest)).toEqual(kept.map(({ slug: name }) => name));
      const told = new Set(manifest.errors.map(({ index }) => index));
      expect(told.size + kept.length).toBe(entries.length);
      expect(manifest.fatal).toBe(false);
    }),
  );
});

test("any value in any field is read or refused, and the entry beside it fires", () => {
  const field = fc.constantFrom(
    "slug",
    "type",
    "prompt",
    "name",
    "agent",
    "enabled",
    "cron",
    "timezone",
    "secret_env",
    "x",
  );
  let read = 0;
  fc.assert(
    fc.property(field, tomlValue, fc.boolean(), (key, value, isCron) => {
      const manifest = parse(
        `${(isCron ? cron : webhook)({ [key]: value })}\n${webhook({ slug: '"beside"' })}`,
      );
      if (manifest.fatal) return;
      read += 1;
      expect(slugs(manifest)).toContain("beside");
      expect(manifest.triggers.length + (manifest.errors.length > 0 ? 1 : 0)).toBe(2);
      for (const { slug } of manifest.triggers) expect(slug).toMatch(/^[a-z0-9][a-z0-9_-]{0,127}$/);
    }),
    { numRuns: 1000 },
  );
  // The others were no TOML at all.
  expect(read).toBeGreaterThan(800);
});

test("a good file that is cut, doubled or damaged anywhere is read or refused, and never throws", () => {
  const whole = `[runtime]\nconfig_dir = "agents"\n[env]\nrequired = ["A"]\n${cron()}\n${webhook({ prompt: '"""\n{{ body }}\n"""' })}`;
  const at = fc.integer({ min: 0, max: whole.length });
  const strike = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 6 }),
    fc.constantFrom("[", "[[", '"', '"""', "=", ".", "\0", "\r", "#"),
  );
  fc.assert(
    fc.property(at, at, strike, (start, end, text) => {
      const manifest = parse(whole.slice(0, start) + text + whole.slice(end));
      expect(manifest.fatal ? manifest.errors.length : 1).toBe(1);
      expect(manifest.fatal ? manifest.triggers : []).toEqual([]);
      expect(new Set(slugs(manifest)).size).toBe(manifest.triggers.length);
    }),
    { numRuns: 1000 },
  );
});

import { expect, it } from "vitest";
import type { Catalogue } from "../../../src/domain/connector/catalogue.ts";
import { CatalogueTexts } from "../../../src/store/postgres/connectors/catalogue-texts.ts";

const none = { pin: null, at: null, text: null };

const textOf = (name: string, size = 10): string =>
  JSON.stringify({
    tools: [{ name, description: "x".repeat(size), inputSchema: {} }],
    leftOut: [],
  } satisfies Catalogue);

const seen = (name: string, at: number, size?: number) => ({
  pin: `pin of ${name}`,
  at,
  text: textOf(name, size),
});

it("gives a catalogue that is kept as the same object, and only for its pin and instant", () => {
  const texts = new CatalogueTexts();
  const read = seen("a", 1);
  const { latest } = texts.keep("p one", read, none);
  expect(latest?.tools[0]?.name).toBe("a");
  expect(texts.find("p one", read, none)?.latest).toBe(latest);
  expect(texts.find("p one", { ...read, at: 2 }, none)).toBeNull();
  expect(texts.find("p one", { ...read, pin: "another" }, none)).toBeNull();
  expect(texts.find("p one", read, { pin: read.pin, at: 3 })).toBeNull();
  expect(texts.find("p two", read, none)).toBeNull();
});

it("forgets what was used longest ago once 16 MiB are kept", () => {
  const texts = new CatalogueTexts();
  const size = 6 * 1024 * 1024;
  const [a, b, c] = [seen("a", 1, size), seen("b", 1, size), seen("c", 1, size)];
  texts.keep("a", a, none);
  texts.keep("b", b, none);
  texts.find("a", a, none);
  texts.keep("c", c, none);
  expect(["a", "b", "c"].map((key, at) => texts.find(key, [a, b, c][at] ?? a, none) !== null)).toEqual([
    true,
    false,
    true,
  ]);
  // One that is kept again counts once.
  for (let turn = 0; turn < 5; turn += 1) texts.keep("c", c, none);
  expect(texts.find("a", a, none)).not.toBeNull();
});

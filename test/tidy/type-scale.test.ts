/** The page has four sizes of text and two weights (dashboard/style.css). Another one would be a fifth level that means nothing. */
import { expect, it } from "vitest";
import { files, read } from "../support/documents.ts";

const SCALE = /--(?:size|weight)-[a-z]+(?=:)/g;
const DECLARATION = /(?<![\w-])(font|font-size|font-weight): ([^;}]+)[;}]/g;
/** A size or a weight of the scale; of the shorthand, what else it says, too. */
const OF_SCALE = {
  "font-size": /^(?:inherit|var\(--size-[a-z]+\))$/,
  "font-weight": /^(?:inherit|var\(--weight-[a-z]+\))$/,
  font: /^(?:inherit|(?:var\(--weight-[a-z]+\) )?var\(--size-[a-z]+\)(?: \/ [\d.]+(?:rem)?)? var\(--(?:sans|mono)\))$/,
};

const styles = files("dashboard/*.css").map((file) => [file, read(file)] as const);

it("has four sizes of text and two weights", () => {
  const names = styles.flatMap(([, css]) => css.match(SCALE) ?? []);
  expect([...new Set(names)].toSorted()).toEqual([
    "--size-large",
    "--size-small",
    "--size-text",
    "--size-title",
    "--weight-bold",
    "--weight-regular",
  ]);
});

it("uses no other size and no other weight", () => {
  const others = styles.flatMap(([file, css]) =>
    [...css.matchAll(DECLARATION)]
      .filter(([, property, value = ""]) => !OF_SCALE[property as keyof typeof OF_SCALE].test(value.trim()))
      .map(([whole]) => `${file}: ${whole}`),
  );
  expect(others).toEqual([]);
});

it("sets none beside the styles", () => {
  const set = files("dashboard/*.ts", "dashboard/*.tsx").filter((file) =>
    /\bfont(?:Size|Weight): |style\.font/.test(read(file)),
  );
  expect(set).toEqual([]);
});

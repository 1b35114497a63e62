import { expect, it } from "vitest";
import { appendText, contentText } from "../../../src/domain/conversation/growing.ts";

const said = (text: string) => ({ type: "text" as const, text });
const FILE = { type: "file" as const, name: "a.png", media_type: "image/png", attachment_id: null };

it("continues the last text where it ends", () => {
  expect(appendText([said("a"), said("bc"), FILE], { offset: 2, text: "d" })).toEqual([
    said("a"),
    said("bcd"),
    FILE,
  ]);
  expect(appendText([FILE], { offset: 0, text: "d" })).toEqual([FILE, said("d")]);
});

it.each([0, 1, 3])("leaves out a piece that begins at %d of two", (offset) => {
  expect(appendText([said("bc")], { offset, text: "c" })).toBe(null);
});

it("is the text of all parts", () => {
  expect(contentText({ content: [said("a"), FILE, said("b")] })).toBe("a\n\nb");
});

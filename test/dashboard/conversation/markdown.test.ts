import { describe, expect, it } from "vitest";
import { readOn } from "../../../dashboard/elements/markdown.ts";
import { shapeOf } from "./markdown-shapes.ts";

describe("Markdown", () => {
  it("reads paragraphs, headings and rules", () => {
    expect(shapeOf("# One #\ntwo\nthree\n\n---\n###### six")).toEqual([
      { heading: ["One"] },
      { paragraph: ["two\nthree"] },
      "---",
      { heading: ["six"] },
    ]);
  });

  it("reads emphasis, and leaves signs within words and sums alone", () => {
    expect(shapeOf("**b *i* b** _i_ ~~d~~ ***bi*** a_b_c 2 * 3 * 4 **open")).toEqual([
      {
        paragraph: [
          { strong: ["b ", { em: ["i"] }, " b"] },
          " ",
          { em: ["i"] },
          " ",
          { del: ["d"] },
          " ",
          { em: [{ strong: ["bi"] }] },
          " a_b_c 2 * 3 * 4 **open",
        ],
      },
    ]);
  });

  it("reads nested lists and tasks", () => {
    expect(shapeOf("1. a\n   - b\n\n   c\n2. d\n- [x] e\n- [ ] f\n  g")).toEqual([
      {
        "from 1": [
          [{ paragraph: ["a"] }, { list: [[{ paragraph: ["b"] }]] }, { paragraph: ["c"] }],
          [{ paragraph: ["d"] }],
        ],
      },
      {
        list: [
          { task: true, in: [{ paragraph: ["e"] }] },
          { task: false, in: [{ paragraph: ["f\ng"] }] },
        ],
      },
    ]);
  });

  it("reads code, also where its fence never ends, and nothing within it", () => {
    expect(shapeOf("`` a`b `` and `*c*`\n\n~~~ts\n```\n~~~\n- x\n  ```sh\n  *y*\n    z")).toEqual([
      { paragraph: [{ code: "a`b" }, " and ", { code: "*c*" }] },
      { code: "```", language: "ts" },
      { list: [[{ paragraph: ["x"] }, { code: "*y*\n  z", language: "sh" }]] },
    ]);
  });

  it("reads what CommonMark has besides: other headings, indented code, entities, references and line ends", () => {
    expect(
      shapeOf("One\n===\n\n    a\n    b\n\n0. &amp;\n\n[c] \\*d\\* e  \nf\\\ng\n\n[c]: https://x.y/ 'title'"),
    ).toEqual([
      { heading: ["One"] },
      { code: "a\nb", language: "" },
      { "from 0": [[{ paragraph: ["&"] }]] },
      { paragraph: [{ link: "https://x.y/", in: ["c"] }, " *d* e\nf\ng"] },
    ]);
  });

  it("reads a task only at the beginning of an entry", () => {
    expect(shapeOf("- [ ]\n- a [x] b\n- [y] c\n- **[x]** d")).toEqual([
      {
        list: [
          { task: false, in: [{ paragraph: [""] }] },
          [{ paragraph: ["a [x] b"] }],
          [{ paragraph: ["[y] c"] }],
          [{ paragraph: [{ strong: ["[x]"] }, " d"] }],
        ],
      },
    ]);
  });

  it("reads quotes and tables", () => {
    expect(
      shapeOf("> a\n> > b\n\n| x | y |\n|:-:|--:|\n| `1` | 2 \\| 3 |\nafter | it\n\nno | table"),
    ).toEqual([
      { quote: [{ paragraph: ["a"] }, { quote: [{ paragraph: ["b"] }] }] },
      {
        align: ["center", "right"],
        rows: [
          [["x"], ["y"]],
          [[{ code: "1" }], ["2 | 3"]],
          [["after"], ["it"]],
        ],
      },
      { paragraph: ["no | table"] },
    ]);
  });

  it("reads links and images, in brackets, in angles and bare", () => {
    expect(
      shapeOf('[a *b*](https://x.y/z_(1) "t") ![i](http://x.y/i.png) <mailto:a@b.c> (https://x.y/q?a=b).'),
    ).toEqual([
      {
        paragraph: [
          { link: "https://x.y/z_(1)", in: ["a ", { em: ["b"] }] },
          " ",
          { image: "http://x.y/i.png", in: ["i"] },
          " ",
          { link: "mailto:a@b.c", in: ["mailto:a@b.c"] },
          " (",
          { link: "https://x.y/q?a=b", in: ["https://x.y/q?a=b"] },
          ").",
        ],
      },
    ]);
  });

  it("reads only the end of a text that grows, and all of another one", () => {
    const first = readOn("# One\n\ntwo\n\nthr", null);
    const next = readOn("# One\n\ntwo\n\nthree **four**", first);
    expect(next.blocks.map((block, at) => block === first.blocks[at])).toEqual([true, true, false]);
    expect(readOn(next.text, next)).toBe(next);
    const other = readOn("# One\n\nother", next);
    expect(other.blocks.map((block, at) => block === next.blocks[at])).toEqual([false, false]);
    // A name for an address that came before holds for what follows.
    const named = readOn("[a]: https://x.y/\n\none\n\ntwo", null);
    expect(readOn(`${named.text} [a]`, named).blocks.at(-1)).toMatchObject({
      children: [{ type: "text" }, { type: "link", href: "https://x.y/" }],
    });
  });
});

/** Markdown on a screen, as it grows. */
import { describe, expect, it } from "vitest";
import { MarkdownWriter } from "../../../src/cli/commands/sessions/talk/markdown.ts";

const ESC = "\u001b";

interface Shown {
  readonly columns?: number;
  readonly hasColours?: boolean;
}

const writerOn = ({ columns = 80, hasColours = false }: Shown = {}) => {
  const shown = { text: "" };
  const screen = { columns: () => columns, hasColours, write: (more: string) => void (shown.text += more) };
  return { shown, writer: new MarkdownWriter(screen) };
};

const write = (pieces: readonly string[], options?: Shown): string => {
  const { shown, writer } = writerOn(options);
  for (const piece of pieces) writer.add(piece);
  writer.end();
  return shown.text;
};

const SAMPLE = `# The plan

I **found** the _fault_ in \`src/list.ts\`, see [the docs](https://example.org/a_b):
2 * 3 is *six*, a_b_c stays, and \\*this\\* too.

1. Read \`a\`
   - its **id**, which is long enough to need a second row of this narrow screen
- [x] done
- [ ] open

> A quote of **two** rows that is longer than the window is wide, by some words

\`\`\`ts
if (a < b) {

\treturn "**no**";
}
\`\`\`
***
| a | b |
|---|---|
The end, with 漢字かな交じり文です。そして長いです and **no end
`;

describe("markdown on a screen", () => {
  it.each([
    ["a heading", "## Title ##\nText", "Title\nText\n"],
    ["an item", "* one\n  + two\n3) three", "• one\n  • two\n3) three\n"],
    ["a task", "- [x] done\n- [ ] open", "• ☑ done\n• ☐ open\n"],
    ["a quote", "> > said", "│ │ said\n"],
    ["a rule", "a\n\n---\nb", `a\n\n${"─".repeat(40)}\nb\n`],
    ["emphasis", "**a b** and *c* and ~~d~~", "a b and c and d\n"],
    ["names with underscores", "my_file_name and __init__", "my_file_name and init\n"],
    ["code, with its mark", "run `npm t` now", "run `npm t` now\n"],
    ["a link", "[docs](http://a.b/c) [x] http://d.e", "docs (http://a.b/c) [x] http://d.e\n"],
    ["an image", "![a cat](cat.png)", "Image: a cat (cat.png)\n"],
    ["marks without an end", "2 * 3 ** 4 `a **b", "2 * 3 ** 4 `a **b\n"],
    ["code as it is", "```\n# a  **b**\n\n  c\n```\nd", "  # a  **b**\n\n    c\nd\n"],
    ["code within an item", "- a\n  ~~~sh\n  ls\n  ~~~", "• a\n  ls\n"],
    ["code without an end", "```\na", "  a\n"],
    ["several empty lines as one, and none at its ends", "\n\na\n\n\nb\n\n", "a\n\nb\n"],
  ])("shows %s", (_, text, shown) => {
    expect(write([text])).toBe(shown);
  });

  it("breaks rows between words, below where their text begins", () => {
    expect(write(["- one two three four five"], { columns: 16 })).toBe("• one two three\n  four five\n");
    expect(write([`a ${"x".repeat(30)} b`], { columns: 16 })).toBe(`a\n${"x".repeat(30)}\nb\n`);
    expect(write(["漢字かな交じり文です"], { columns: 13 })).toBe("漢字かな交じ\nり文です\n");
  });

  it("has colours where the terminal has", () => {
    expect(write(["# A\n**b** `c`"], { hasColours: true })).toBe(
      `${ESC}[1m${ESC}[4mA${ESC}[24m${ESC}[22m\n${ESC}[1mb${ESC}[22m ${ESC}[36mc${ESC}[39m\n`,
    );
  });

  it("lets no text control the terminal", () => {
    expect(write([`a${ESC}[2J **b${ESC}** \`${ESC}c\`\n\`\`\`\n${ESC}[1m\n`])).toBe(
      "a\\x1b[2J b\\x1b `\\x1bc`\n  \\x1b[1m\n",
    );
  });

  it.each([12, 40, 200])("is the same in %d columns however its text comes in pieces", (columns) => {
    const whole = write([SAMPLE], { columns });
    for (const size of [1, 2, 3, 7, 50]) {
      const pieces = Array.from({ length: Math.ceil(SAMPLE.length / size) }, (_, index) =>
        SAMPLE.slice(index * size, (index + 1) * size),
      );
      expect(write(pieces, { columns })).toBe(whole);
    }
  });

  it("shows a word as soon as its look is known, and emphasis once it has ended", () => {
    const { shown, writer } = writerOn();
    writer.add("The tests fa");
    expect(shown.text).toBe("The tests");
    writer.add("il **every second ti");
    expect(shown.text).toBe("The tests fail");
    writer.add("me** here");
    expect(shown.text).toBe("The tests fail every second time");
  });

  it("shows a long line of one emphasis without its end", () => {
    const { shown, writer } = writerOn();
    writer.add(`**${"word ".repeat(1_000)}`);
    expect(shown.text).toContain("word word");
  });
});

/** No text becomes markup, leads to another place than it says, or is more work than the page can do. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MARKDOWN_MAX, parse, type Read, readOn } from "../../../dashboard/elements/markdown.ts";
import { all, depthOf, hrefs, letters, shapeOf, written } from "./markdown-shapes.ts";

const filled = (piece: string): string => piece.repeat(Math.floor(MARKDOWN_MAX / piece.length));

/** Lists, each in the one before. */
const staircase = (depth: number): string =>
  Array.from({ length: depth }, (_, at) => `${"  ".repeat(at)}- x${at}`).join("\n");

describe("hostile Markdown", () => {
  it.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "\u0001javascript:alert(1)",
    "data:text/html,<script>1</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:x",
    "//x.y/z",
    "/v1/me",
    "#/",
    "ftp://x.y",
    "https://github.com@evil.example",
    "https://",
    `https://x.y/${"a".repeat(3000)}`,
  ])("links to no %j [T08]", (target) => {
    expect(hrefs(`[x](${target}) ![x](${target}) <${target}>`)).toEqual([]);
  });

  it("keeps the address of a link that leads nowhere [T08]", () => {
    expect(
      shapeOf("[x](javascript:alert(1)) <javascript:y> <https://a@b.c> [z](<src/ä b.ts>) ![](data:,1)"),
    ).toEqual([
      {
        paragraph: [
          { link: "no: javascript:alert(1)", in: ["x"] },
          " <javascript:y> <https://a@b.c> ",
          { link: "no: src/ä b.ts", in: ["z"] },
          " ",
          { image: "no: data:,1", in: [] },
        ],
      },
    ]);
    expect(hrefs("[x]\n\n[x]: javascript:alert(1)")).toEqual([]);
  });

  it("makes no link of a host, an address of mail or another protocol", () => {
    expect(shapeOf("x.com www.x.com 1.2.3.4 a@b.com //x.com ftp://x.com mailto:a@b.com")).toEqual([
      { paragraph: ["x.com www.x.com 1.2.3.4 a@b.com //x.com ftp://x.com mailto:a@b.com"] },
    ]);
  });

  it("shows an address as it is written, and links to it as a browser reads it", () => {
    expect(shapeOf("https://x.y/%D0%B0 https://\u0430pple.com/")).toEqual([
      {
        paragraph: [
          { link: "https://x.y/%D0%B0", in: ["https://x.y/%D0%B0"] },
          " ",
          { link: "https://xn--pple-43d.com/", in: ["https://\u0430pple.com/"] },
        ],
      },
    ]);
  });

  it.each([
    "<img src=x onerror=alert(1)><script>1</script>",
    "<div>\na\n</div>",
    "<!-- a -->",
    "<a href='javascript:alert(1)'>x</a>",
    "<?php a ?>",
    "<![CDATA[ a ]]>",
  ])("takes HTML as text: %j [T08]", (html) => {
    expect(shapeOf(html)).toEqual([{ paragraph: [html] }]);
  });

  // Work that grows much faster than these texts would take minutes.
  it.each([
    "*a ",
    "_a ",
    "**a",
    "***a***",
    "[",
    "![",
    "](",
    "[a](",
    "[](x",
    "`a",
    "<a ",
    "<https://",
    "https://a",
    "~~a ",
    ">",
    "> ",
    "- ",
    "- \n",
    "1. ",
    "|a\n",
    "a|b\n-|-\n|",
    "# ",
    "~",
    "```\n",
    "\\",
    " ",
    "\n",
    "\u202e",
    "\u001b[",
    "> a\n",
    "a\n",
    "&amp;",
    "[a]: b\n",
    "[a][a]",
    "![[a](b)",
    "![a](b)",
    "<a@b>",
    "https://x.y/(",
    "`a` ",
    "---\n\n",
  ])("reads the longest text of %j with bounded depth and number of tokens", (piece) => {
    const tokens = parse(filled(piece));
    expect(depthOf(tokens)).toBeLessThan(70);
    expect(all(tokens).length).toBeLessThan(10_000);
  });

  it.each([
    ["quotes", ">".repeat(20_000)],
    ["quotes around a text", `${"> ".repeat(40)}a`],
    ["openings of emphasis", "**a".repeat(20_000)],
    ["emphasis within emphasis", `${"*a ".repeat(5000)}${"a* ".repeat(5000)}`],
    ["lists within lists", staircase(1000).slice(0, MARKDOWN_MAX)],
    ["lists on one line", `${"- ".repeat(1000)}a`],
    ["empty cells", `${"|a".repeat(300)}|\n${"|-".repeat(300)}|\n${"|\n".repeat(100)}`],
    ["a megabyte on one line", "**a** ".repeat(200_000)],
    ["a long fence without an end", `\`\`\`\n${"x\n".repeat(MARKDOWN_MAX)}`],
  ])("shows too many %s as they are", (_, text) => {
    expect(parse(text)).toEqual([{ type: "plain", text }]);
  });

  it("reads what is just within the limits", () => {
    expect(shapeOf(`${"> ".repeat(29)}a`)).toEqual([{ quote: expect.anything() }]);
    expect(depthOf(parse(staircase(15)))).toBe(17);
    expect(shapeOf(`\`\`\`\n${"x".repeat(MARKDOWN_MAX - 4)}`)).toEqual([
      { code: "x".repeat(MARKDOWN_MAX - 4), language: "" },
    ]);
    expect(shapeOf("~~~ a b\n**c\n")).toEqual([{ code: "**c", language: "a" }]);
  });

  it("bounds the depth of lists, quotes, emphasis, brackets and descriptions of images", () => {
    for (const text of [
      staircase(400),
      `${"![*".repeat(30)}a${"*](x)".repeat(30)}`,
      "> ".repeat(5000),
      "> - ".repeat(5000),
      "- > ".repeat(5000),
      `${"*a ".repeat(500)}${"a* ".repeat(500)}`,
      `${"[".repeat(500)}a${"](https://x.y)".repeat(500)}`,
    ]) {
      expect(depthOf(parse(text))).toBeLessThan(70);
    }
    // Deeper emphasis keeps its text.
    expect(letters(written(`${"*a ".repeat(500)}${"b* ".repeat(500)}`))).toBe(
      "a".repeat(500) + "b".repeat(500),
    );
  });

  it("reads different lengths of backticks without trying each with each", () => {
    const text = Array.from({ length: 600 }, (_, length) => "`".repeat(length)).join("a");
    expect(written(text)).toBe(text);
  });

  const soup = fc
    .array(
      fc.constantFrom(
        "a",
        "b ",
        " ",
        "\n",
        "\n\n",
        "  ",
        "*",
        "**",
        "_",
        "~~",
        "`",
        "```",
        "[",
        "]",
        "](",
        "(",
        ")",
        "!",
        "<",
        ">",
        "> ",
        "- ",
        "1. ",
        "# ",
        "|",
        "|-|",
        "---",
        "[x] ",
        "\\",
        "https://x.y",
        "javascript:",
        "\t",
        "\r\n",
      ),
      { maxLength: 60 },
    )
    .map((pieces) => pieces.join(""));

  it("reads any text, and links to the web and to mail only", () => {
    fc.assert(
      fc.property(soup, (text) => {
        for (const href of hrefs(text)) expect(href).toMatch(/^(https?:\/\/|mailto:)/);
      }),
    );
  });

  it("reads a text that grows as it reads the whole of it", () => {
    fc.assert(
      fc.property(fc.array(soup, { minLength: 1, maxLength: 5 }), (parts) => {
        let [text, known]: [string, Read | null] = ["", null];
        for (const part of parts) {
          text += part;
          known = readOn(text, known);
          expect(known.blocks).toEqual(parse(text));
        }
      }),
    );
  });

  it("loses no letter of a text", () => {
    fc.assert(
      // Titles of links, all but the first word after a fence, and cells beyond a table's columns are left out on purpose.
      fc.property(
        soup.filter((text) => !/[(`~|]/.test(text)),
        (text) => {
          expect(letters(written(text))).toBe(letters(text));
        },
      ),
    );
  });
});

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Block, type Inline, MARKDOWN_MAX, parse } from "../../dashboard/markdown.js";

type Token = Block | Inline;

/** The tokens directly in a token. */
const inside = (token: Token): readonly Token[] => {
  switch (token.type) {
    case "quote":
      return token.blocks;
    case "list":
      return token.entries.flatMap(({ blocks }) => blocks);
    case "table":
      return [token.head, ...token.rows].flat(2);
    default:
      return "children" in token ? token.children : [];
  }
};

const all = (tokens: readonly Token[]): readonly Token[] =>
  tokens.flatMap((token) => [token, ...all(inside(token))]);

const depthOf = (tokens: readonly Token[]): number =>
  tokens.reduce((most, token) => Math.max(most, 1 + depthOf(inside(token))), 0);

const letters = (text: string): string => text.replaceAll(/[^ab]/g, "");

const hrefs = (text: string) =>
  all(parse(text)).flatMap((token) => (token.type === "link" && token.href !== null ? [token.href] : []));

const written = (text: string): string =>
  all(parse(text))
    .map((token) => ("text" in token ? token.text : ""))
    .join("");

/** Short forms, so that a test reads as the text that it means. */
const brief = (token: Token): unknown => {
  switch (token.type) {
    case "text":
      return token.text;
    case "code":
      return { code: token.text, ...("language" in token ? { language: token.language } : {}) };
    case "link":
      return {
        [token.image ? "image" : "link"]: token.href ?? `no: ${token.target}`,
        in: token.children.map(brief),
      };
    case "list":
      return {
        [token.ordered ? `from ${token.start}` : "list"]: token.entries.map(({ task, blocks }) =>
          task === null ? blocks.map(brief) : { task, in: blocks.map(brief) },
        ),
      };
    case "table":
      return {
        align: token.align,
        rows: [token.head, ...token.rows].map((row) => row.map((cell) => cell.map(brief))),
      };
    case "rule":
      return "---";
    case "plain":
      return { plain: token.text };
    default:
      return { [token.type]: inside(token).map(brief) };
  }
};
const shapeOf = (text: string) => parse(text).map(brief);

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
          { strong: [{ em: ["bi"] }] },
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

  it("takes HTML as text [T08]", () => {
    const html = `<img src=x onerror=alert(1)><script>1</script>`;
    expect(shapeOf(html)).toEqual([{ paragraph: [html] }]);
  });

  const LONG = MARKDOWN_MAX - 1;
  const filled = (piece: string): string => piece.repeat(Math.floor(LONG / piece.length));
  // Quadratic work on one of these would take minutes.
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
  ])("reads 200 KB of %j in linear time, with bounded depth and number of tokens", (piece) => {
    const tokens = parse(filled(piece));
    expect(depthOf(tokens)).toBeLessThan(40);
    expect(all(tokens).length).toBeLessThan(50_000);
  });

  it("bounds the depth of lists, quotes, emphasis and brackets", () => {
    const lists = Array.from({ length: 400 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n");
    for (const text of [
      lists,
      "> ".repeat(5000),
      "> - ".repeat(5000),
      "- > ".repeat(5000),
      `${"*a ".repeat(500)}${"a* ".repeat(500)}`,
      `${"[".repeat(500)}a${"](https://x.y)".repeat(500)}`,
    ]) {
      expect(depthOf(parse(text))).toBeLessThan(40);
    }
  });

  it("reads different lengths of backticks without trying each with each", () => {
    const text = Array.from({ length: 600 }, (_, length) => "`".repeat(length)).join("a");
    expect(written(text)).toBe(text);
  });

  it("shows a megabyte on one line as it is", () => {
    const line = "**a** ".repeat(200_000);
    expect(parse(line)).toEqual([{ type: "plain", text: line }]);
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

  it("loses no letter of a text", () => {
    fc.assert(
      // Titles of links, and all but the first word after a fence, are left out on purpose.
      fc.property(
        soup.filter((text) => !/[(`~]/.test(text)),
        (text) => {
          expect(letters(written(text))).toBe(letters(text));
        },
      ),
    );
  });
});

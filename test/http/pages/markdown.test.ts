/** Documents as pages: headings have GitHub's anchors, and nothing in a document becomes markup or a script. */
import { describe, expect, it } from "vitest";
import { outline, renderMarkdown } from "../../../src/http/pages/markdown.ts";

const nowhere = () => null;
const htmlOf = (source: string): string => renderMarkdown(source, nowhere).html;

describe("headings", () => {
  it.each([
    ["Saved work", "saved-work"],
    ["`platform cr`: propose", "platform-cr-propose"],
    ["What's new?", "whats-new"],
    ["a - b_c", "a---b_c"],
    ["Über *uns*", "über-uns"],
    ["A & B", "a--b"],
  ])("%j has the anchor %s", (text, id) => {
    expect([...outline(`## ${text}`).anchors]).toEqual([id]);
    expect(htmlOf(`## ${text}`)).toContain(`<h2 id="${id}">`);
  });

  it("that repeat have a number", () => {
    const source = "## Set\n\n## Set\n\n### Set";
    expect([...outline(source).anchors]).toEqual(["set", "set-1", "set-2"]);
    expect(htmlOf(source)).toContain('<h3 id="set-2">');
  });
});

it("a heading in a quotation or a list has no anchor, and does not count", () => {
  const { html, headings } = renderMarkdown("> # A\n\n- # A\n\n# A\n\n# `A` *b*\n", nowhere);
  expect(headings.map(({ id }) => id)).toEqual(["a", "a-b"]);
  expect(html.match(/<h1[^>]*>/g)).toEqual(["<h1>", "<h1>", '<h1 id="a">', '<h1 id="a-b">']);
});

describe("text", () => {
  it.each([
    "<script>alert(1)</script>",
    'a <img src="x" onerror="alert(1)"> b',
    "```\n</code><script>\n```",
    "`<script>`",
    "## <script>",
    "[<script>](x)",
    "![<script>](x)",
    "| <script> |\n| --- |\n| <script> |",
  ])("%j becomes no markup", (source) => {
    expect(htmlOf(source)).not.toMatch(/<(?:script|img)/);
    expect(htmlOf(source)).toMatch(/&lt;(?:script|img|\/code)/);
  });

  it("leaves comments out, and what stands beside one stays", () => {
    expect(htmlOf("before\n\n<!-- prettier-ignore -->\n\nafter")).toBe("<p>before</p>\n<p>after</p>\n");
    expect(htmlOf("a <!-- b --> c")).toBe("<p>a &lt;!-- b --&gt; c</p>\n");
  });

  it("has no style of its own, so that no cell is aligned", () => {
    expect(htmlOf("| a |\n|:-:|\n| b |")).toMatch(
      /^<div class="wide" tabindex="0"><table>\n<thead>\n<tr>\n<th>a<\/th>[^]*<td>b<\/td>[^]*<\/table><\/div>\n$/,
    );
  });

  it.each([
    ["quotes", ">".repeat(20_000)],
    ["emphasis", "**a".repeat(20_000)],
    ["lists", Array.from({ length: 1000 }, (_, depth) => `${" ".repeat(2 * depth)}- a`).join("\n")],
    ["brackets", "[".repeat(20_000)],
    ["fences", "```\n".repeat(20_001)],
  ])("reads many %s that never end", (_, source) => {
    expect(htmlOf(source)).not.toBe("");
    expect([...outline(source).anchors]).toEqual([]);
  });

  it("names the notation of a diagram, and shows no other word of a fence", () => {
    expect(htmlOf("```mermaid\na-->b\n```")).toContain(
      '<p class="caption">Diagram in Mermaid notation</p><pre',
    );
    expect(htmlOf("```sh untested\nls\n```")).toBe('<pre tabindex="0"><code>ls</code></pre>\n');
  });
});

const toOne = (href: string) => (href === "a.md" ? '/x?"' : null);

describe("links", () => {
  it("lead where the caller says, and are plain text otherwise", () => {
    const source =
      '[one](a.md "title") [two](javascript:alert(1)) [*three*](b.md) <data:,%D0%B0> ![four](a.md)';
    const { html } = renderMarkdown(source, toOne);
    expect(html).toBe('<p><a href="/x?&quot;">one</a> two <em>three</em> data:,%D0%B0 four</p>\n');
  });

  it("are listed as they are written, including those in tables and pictures", () => {
    const { links } = outline(
      "[a](b.md#c) [h](<ä b%20.md>) https://x.y x.y a@b.c\n\n| [d](e) |\n| --- |\n| ![f](g.svg) |",
    );
    expect(links).toEqual(["b.md#c", "ä b%20.md", "https://x.y", "e", "g.svg"]);
  });
});

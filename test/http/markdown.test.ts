/** Documents as pages: headings have GitHub's anchors, and nothing in a document becomes markup or a script. */
import { describe, expect, it } from "vitest";
import { outline, renderMarkdown } from "../../src/http/pages/markdown.ts";

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

  it("leaves comments out", () => {
    expect(htmlOf("before\n\n<!-- prettier-ignore -->\n\nafter")).not.toContain("prettier");
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
    const { html } = renderMarkdown("[one](a.md) [two](javascript:alert(1)) [three](b.md)", toOne);
    expect(html).toBe('<p><a href="/x?&quot;">one</a> two three</p>\n');
  });

  it("are listed as they are written, including those in tables and pictures", () => {
    const { links } = outline("[a](b.md#c)\n\n| [d](e) |\n| --- |\n| ![f](g.svg) |");
    expect(links).toEqual(["b.md#c", "e", "g.svg"]);
  });
});

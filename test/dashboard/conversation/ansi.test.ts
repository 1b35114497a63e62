import { describe, expect, it } from "vitest";
import { readTerminal } from "../../../dashboard/conversation/text/ansi.ts";

const ESC = "\u001b";

/** Lines as `text` or `text{look}`. */
const shapeOf = (output: string): readonly string[] =>
  readTerminal(output).map((line) =>
    line.map(({ text, look }) => (look === "" ? text : `${text}{${look}}`)).join(""),
  );

const coloured = (parameters: string) => shapeOf(`${ESC}[${parameters}mx`)[0];

describe("a terminal's output", () => {
  it("is read as lines, without an empty one at the end", () => {
    expect(shapeOf("one\ntwo\r\n\nthree\n")).toEqual(["one", "two", "", "three"]);
    expect(shapeOf("")).toEqual([]);
  });

  it("has the sixteen colours and the styles by name, until they are reset", () => {
    expect(shapeOf(`${ESC}[31mred${ESC}[0m ${ESC}[1;32mgood${ESC}[22m still${ESC}[39m plain`)).toEqual([
      "red{text-red} good{bold text-green} still{text-green} plain",
    ]);
    expect(shapeOf(`${ESC}[2;3;4ma${ESC}[22mb${ESC}[23mc${ESC}[24md${ESC}[mend`)).toEqual([
      "a{dim italic underline}b{italic underline}c{underline}dend",
    ]);
    expect(shapeOf(`${ESC}[90mgrey${ESC}[91mred${ESC}[m`)).toEqual(["grey{text-grey}red{text-red}"]);
    // A style goes on in the next line.
    expect(shapeOf(`${ESC}[34ma\nb`)).toEqual(["a{text-blue}", "b{text-blue}"]);
  });

  it("shows other colours as the nearest of these, and no text in the colour of its ground", () => {
    expect(coloured("38;5;196")).toBe("x{text-red}");
    expect(coloured("38;5;46")).toBe("x{text-green}");
    expect(coloured("38;5;244")).toBe("x{text-grey}");
    expect(coloured("38;2;255;215;0")).toBe("x{text-yellow}");
    expect(coloured("38;2;30;30;220")).toBe("x{text-blue}");
    // Black, white and concealed text are the reader's own colour.
    for (const own of ["30", "37", "97", "8", "38;5;16", "38;5;231", "38;2;0;0;0"])
      expect(coloured(own), own).toBe("x");
    expect(coloured("31;41")).toBe("x{ground-red}");
    expect(coloured("31;7")).toBe("x{ground-red}");
    expect(coloured("7")).toBe("x{ground-ink}");
    expect(coloured("48;5;21;1")).toBe("x{bold ground-blue}");
  });

  it("writes over a line as a progress bar does", () => {
    expect(shapeOf("10 %\r50 %\r100 %\ndone")).toEqual(["100 %", "done"]);
    expect(shapeOf("longer\rshort")).toEqual(["shortr"]);
    expect(shapeOf(`longer\r${ESC}[Kshort`)).toEqual(["short"]);
    expect(shapeOf(`abc${ESC}[2K\rx`)).toEqual(["x  "]);
    expect(shapeOf("|\b/\b-")).toEqual(["-"]);
  });

  it("drops all other sequences, and keeps what is none", () => {
    expect(
      shapeOf(`${ESC}[2J${ESC}[1;1H${ESC}[?25la${ESC}]0;title\u0007b${ESC}]8;;https://x.y${ESC}\\c${ESC}(Bd`),
    ).toEqual(["abcd"]);
    expect(shapeOf(`a${ESC}[99999999mb${ESC}[38;5mc${ESC}[48md`)).toEqual(["abcd"]);
    // What makes text visible sees the rest.
    expect(shapeOf(`\u0007bell \u202e turned ${ESC}`)).toEqual([`\u0007bell \u202e turned ${ESC}`]);
  });

  it("reads a long output with many sequences", () => {
    const count = 20_000;
    const lines = readTerminal(`${ESC}[32mx${ESC}[0m\n`.repeat(count));
    expect(lines.length).toBe(count);
    expect(readTerminal(`${ESC}]0;`.repeat(count)).length).toBe(1);
  });
});

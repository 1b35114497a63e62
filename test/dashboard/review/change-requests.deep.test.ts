import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID } from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const CHANGE = `#/projects/${PROJECT_ID}/change-requests/7`;

/** A file's diff. */
const fileDiff = (name: string, lines: readonly string[]): string =>
  [`diff --git a/${name} b/${name}`, `--- a/${name}`, `+++ b/${name}`, `@@ -1,9 +1,9 @@`, ...lines, ""].join(
    "\n",
  );

const title = hasChromium
  ? "a change request's diff"
  : "a change request's diff (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();
  const openWith = async (diff: string, change: Readonly<Record<string, unknown>> = {}) => {
    const all = world();
    const opened = await start({
      ...all,
      diff,
      changes: [{ ...all.changes[0], files_changed: [], files_changed_total: 0, ...change }],
    });
    await opened.visit(CHANGE);
    await opened.page.getByText("Write notes/6113728.md").waitFor();
    return opened;
  };

  it("is shown in one column or side by side, as it was chosen last", async () => {
    const { page } = await openWith(fileDiff("a.sh", ["-old", "+new", "+newer", " same"]));
    await page.locator(".diff.numbered").waitFor();
    expect(await page.locator(".split").count()).toBe(0);
    await page.getByRole("button", { name: "Side by side" }).click();
    const lines = (side: string) => page.getByLabel(side, { exact: true }).locator("> span").allInnerTexts();
    expect(await lines("Before")).toEqual(["@@ -1,9 +1,9 @@\n", "-old\n", "\n", " same\n"]);
    expect(await lines("After")).toEqual(["@@ -1,9 +1,9 @@\n", "+new\n", "+newer\n", " same\n"]);
    await page.reload();
    await page.locator(".split").waitFor();
    await page.keyboard.press("s");
    await page.locator(".split").waitFor({ state: "detached" });
    expect(await page.getByRole("button", { name: "One column" }).getAttribute("aria-pressed")).toBe("true");
  });

  it("has the colours of its language in both views, and the same text", async () => {
    const text = ["@@ -1,9 +1,9 @@\n", "-a = 'b' # c\n", "+a = 1\n", " same\n"];
    const { page } = await openWith(fileDiff("a.py", ["-a = 'b' # c", "+a = 1", " same"]));
    const removed = page.locator(".diff .removed.coloured");
    await removed.locator(".code-string", { hasText: "'b'" }).waitFor();
    await removed.locator(".code-comment").waitFor();
    await page.locator(".diff .added.coloured .code-number").waitFor();
    expect(await page.locator(".diff > span").allInnerTexts()).toEqual(text);
    await page.getByRole("button", { name: "Side by side" }).click();
    await page.getByLabel("After", { exact: true }).locator(".code-number").waitFor();
    expect(await page.locator(".sign").allInnerTexts()).toEqual(["-", " ", "+", " "]);
  });

  it("is read file by file with the keyboard, and folded", async () => {
    const { page } = await openWith(["a.sh", "b.sh", "c.sh"].map((name) => fileDiff(name, ["+x"])).join(""));
    const open = () => page.locator("details.file[open]").count();
    const focused = () => page.evaluate<string>("document.activeElement.textContent");
    await page.getByRole("button", { name: "Fold all", exact: true }).click();
    expect(await open()).toBe(0);
    await page.keyboard.press("j");
    expect(await focused()).toContain("a.sh");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    expect(await focused()).toContain("c.sh");
    await page.keyboard.press("k");
    expect(await focused()).toContain("b.sh");
    expect(await open()).toBe(3);
    await page.keyboard.press("Enter");
    expect(await open()).toBe(2);
    await page.locator("summary", { hasText: "3 files" }).click();
    await page.locator(".file-list").getByRole("button", { name: "c.sh" }).click();
    expect(await focused()).toContain("c.sh");
    await page.getByRole("button", { name: "Unfold all" }).click();
    expect(await open()).toBe(3);
  });

  it("folds a long and a generated file, and shows the others; each is shown when it is asked for", async () => {
    const many = Array.from({ length: 4100 }, (_, at) => `+${String(at)}`);
    const { page } = await openWith(
      [
        fileDiff("long.txt", many),
        fileDiff("package-lock.json", ["+locked"]),
        fileDiff("next.txt", ["+next"]),
      ].join(""),
      { files_changed: [], files_changed_total: 3 },
    );
    await page.locator(".diff", { hasText: "+next" }).waitFor();
    await page.getByText("2 files are not shown.").waitFor();
    expect(await page.locator(".file > summary").allInnerTexts()).toEqual([
      "long.txt +4100 −0 not shown",
      "package-lock.json +1 −0 not shown",
      "next.txt +1 −0",
    ]);
    await page.getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByRole("dialog").getByText("2 files are not shown.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Show this file: package-lock.json" }).click();
    await page.locator(".diff", { hasText: "+locked" }).waitFor();
    await page.getByText("1 file is not shown.").waitFor();
    await page.getByRole("button", { name: "Show this file: long.txt" }).click();
    await page.locator(".diff", { hasText: "+4099" }).waitFor();
    await page.getByText(/not shown/).waitFor({ state: "detached" });
  });

  it("lists files that the service cut off, and reads each of them alone", async () => {
    const cut = "[The diff is longer than 1048576 bytes and was cut here.]\n";
    const listed = ["a.txt", "big.txt", "z.txt"].map((path) => ({ path, additions: 7, deletions: 2 }));
    const { page, fake } = await openWith(
      `${fileDiff("a.txt", ["+a"])}${fileDiff("big.txt", ["+b"])}${cut}`,
      {
        files_changed: listed,
        files_changed_total: 5,
      },
    );
    await page.getByText("4 files are not shown.").waitFor();
    await page.getByText("2 more files changed.").waitFor();
    fake.world.fileDiffs = {
      "z.txt": fileDiff("z.txt", ["+z"]),
      "big.txt": fileDiff("big.txt", ["+b"]) + cut,
    };
    await page.getByRole("button", { name: "Show this file: z.txt" }).click();
    await page.locator(".diff", { hasText: "+z" }).waitFor();
    await page.getByRole("button", { name: "Show this file: big.txt" }).click();
    await page.getByText("The diff is longer than 1048576 bytes and was cut here.").waitFor();
    await page.getByText("2 files are not shown.").waitFor();
  });

  it("cuts a line that no screen can hold", async () => {
    const { page } = await openWith(fileDiff("min.js", [`+${"x".repeat(5000)}`]));
    await page.getByText("… 4,001 more characters").waitFor();
  });

  it("names the paths in conflict, and how to resolve them, without a word that a shell obeys", async () => {
    const hostile = "$(touch owned);'<b>.md";
    const { page } = await openWith(fileDiff("a.sh", ["+x"]), {
      mergeable: false,
      conflicts: [hostile],
      head_ref: "it's;a",
      session_id: null,
    });
    const callout = page.locator(".merge-box");
    await callout.getByText(hostile).waitFor();
    const lines = await callout.locator("pre").innerText();
    expect(lines).toContain(String.raw`git switch 'it'\''s;a'`);
    expect(lines).toContain("git merge origin/main");
    expect(lines).not.toContain("owned");
  });
});

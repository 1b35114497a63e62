/** The operator's logo (PLATFORM_LOGO) is read at the start, which says why it refuses one, and stands on the pages of a sign-in. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import { HttpServerResponse } from "effect/http";
import { afterAll, expect, test } from "vitest";
import { readLogo } from "../../../src/http/pages/logo.ts";
import { doorPage, InstallationLook } from "../../../src/http/pages/look.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";

const { directory, remove } = guardedDirectory("logo-");
afterAll(remove);

const written = (name: string, content: string | Buffer): string => {
  const file = path.join(directory, name);
  writeFileSync(file, content);
  return file;
};

test("is a picture whose first bytes say its kind, whatever the file is called", () => {
  const svg = '\uFEFF<?xml version="1.0"?>\n<!-- ours -->\n<svg xmlns="http://www.w3.org/2000/svg"/>';
  expect(readLogo(written("a.txt", svg)).name).toBe("logo.svg");
  expect(readLogo(written("b", Buffer.from("\x89PNG\r\n\x1a\nrest", "latin1"))).name).toBe("logo.png");
});

test.each([
  ["page.svg", "<html><svg/></html>", /page\.svg, which is neither an SVG nor a PNG picture$/],
  [
    "large.svg",
    `<svg>${" ".repeat(64 * 1024)}`,
    /large\.svg, which has 65541 bytes; a logo has at most 65536$/,
  ],
])("refuses %s with the reason", (name, content, reason) => {
  expect(() => readLogo(written(name, content))).toThrow(reason);
});

test.each(["/dev/null", "/tmp"])("does not open %s, which is no file and may have no end", (file) => {
  expect(() => readLogo(file)).toThrow(`PLATFORM_LOGO names ${file}, which is no file`);
});

test("refuses a missing file with the setting's name", () => {
  expect(() => readLogo(path.join(directory, "none.svg"))).toThrow(
    /^PLATFORM_LOGO names .*none\.svg, which cannot be read: ENOENT$/,
  );
});

test("stands before the installation's name on the pages of a sign-in, whose policy lets it load", async () => {
  const look = { name: "Ada & Co", logo: readLogo(written("a.svg", "<svg ></svg>")) };
  const page = doorPage({ title: "Sign in", body: "" }).pipe(Effect.provideService(InstallationLook, look));
  const { status, headers, text } = await Effect.runPromise(
    Effect.map(page, (response) => ({ ...response, text: HttpServerResponse.toWeb(response).text() })),
  );
  expect([status, headers["content-security-policy"]]).toEqual([
    200,
    expect.stringContaining("img-src 'self';"),
  ]);
  expect(await text).toContain('<header><img class="logo" src="/logo.svg" alt="">Ada &amp; Co</header>');
});

import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import {
  linkSecret,
  localPreviews,
  parsePreviewUrl,
  previewCookieName,
  previewCookies,
  previewLink,
  previewNamed,
  previewOrigin,
  setsPreviewCookie,
  withoutPreviewCookie,
} from "../../../src/domain/session/preview.ts";

const SESSION = "01995f2c-1e5b-7b0e-8a44-b7d15c2a90de";
const PLACE = { sessionId: SESSION, port: 5173 };
const LOCAL = localPreviews(8080);
const WILDCARD = Result.getOrThrow(parsePreviewUrl("https://*.Preview.example.com"));
const SECRET = "s".repeat(43);

describe("the address of previews", () => {
  it.each([
    ["https://*.preview.example.com", "https", ".preview.example.com", ""],
    ["https://*.preview.example.com:443/", "https", ".preview.example.com", ""],
    ["http://*.preview.example.com:8081", "http", ".preview.example.com", ":8081"],
    ["HTTP://*.LOCALHOST:80", "http", ".localhost", ""],
    ["http://*.lan:443", "http", ".lan", ":443"],
  ])("is read from %s", (text, scheme, suffix, port) => {
    expect(parsePreviewUrl(text)).toEqual(Result.succeed({ scheme, suffix, port }));
  });

  it.each(
    (
      "preview.example.com|https://preview.example.com|*.example.com|ftp://*.example.com|https://*|https://*.|" +
      "https://a*.example.com|https://*.*.example.com|https://*.example.com/path|https://*.example.com/?q|" +
      "https://*.example.com#f|https://u:p@*.example.com|https://*.example.com.|https://*.-x.com|https://*.example..com|" +
      "https://*.127.0.0.1|https://*.example.com:0|https://*.example.com:65536|https://*.example.com:08080|" +
      "https://*.exa mple.com|https://*.exämple.com|https://*.example.com\n"
    )
      .split("|")
      .concat(`https://*.${"a".repeat(64)}.com`, `https://*${".abc".repeat(53)}`),
  )("is not read from %j", (text) => {
    expect(Result.isFailure(parsePreviewUrl(text))).toBe(true);
  });
});

describe("the host of a preview", () => {
  it("has one form, which links use", () => {
    expect(previewOrigin(LOCAL, PLACE)).toBe(`http://p5173-${SESSION}.localhost:8080`);
    expect(previewOrigin(localPreviews(80), PLACE)).toBe(`http://p5173-${SESSION}.localhost`);
    expect(previewOrigin(WILDCARD, PLACE)).toBe(`https://p5173-${SESSION}.preview.example.com`);
    expect(linkSecret(previewLink(LOCAL, PLACE, SECRET).slice(previewOrigin(LOCAL, PLACE).length))).toBe(
      SECRET,
    );
  });

  it.each([`p5173-${SESSION}.localhost:8080`, `P5173-${SESSION.toUpperCase()}.LocalHost:8080`])(
    "is recognised by %s [X17]",
    (host) => {
      expect(previewNamed(LOCAL, host)).toEqual(PLACE);
    },
  );

  it("may contain the scheme's own port", () => {
    const host = `p5173-${SESSION}.preview.example.com`;
    expect(previewNamed(WILDCARD, host)).toEqual(PLACE);
    expect(previewNamed(WILDCARD, `${host}:443`)).toEqual(PLACE);
    expect(previewNamed(WILDCARD, `${host}:80`)).toBe("stranger");
  });

  it.each([
    `p5173-${SESSION}.localhost`,
    `p5173-${SESSION}.localhost:80`,
    `p5173-${SESSION}.localhost:08080`,
    `p5173-${SESSION}.localhost:`,
    `p5173-${SESSION}.localhost:8080x`,
    `p5173-${SESSION}.localhost:8080:8080`,
    `p5173-${SESSION}.localhost.:8080`,
    `p5173-${SESSION}.localhost..:8080`,
    `p05173-${SESSION}.localhost:8080`,
    `p0-${SESSION}.localhost:8080`,
    `p65536-${SESSION}.localhost:8080`,
    `p+5173-${SESSION}.localhost:8080`,
    `p5173-${SESSION}.x.localhost:8080`,
    `x.p5173-${SESSION}.localhost:8080`,
    `u@p5173-${SESSION}.localhost:8080`,
    `p5173-${SESSION.replaceAll("-", "")}.localhost:8080`,
    `p5173-{${SESSION}}.localhost:8080`,
    `p5173-00000000-0000-0000-0000-000000000000.localhost:8080`,
    "p5173.localhost:8080",
    "other.localhost:8080",
    ".localhost:8080",
  ])("is not %s, which is not another host either [X17]", (host) => {
    expect(previewNamed(LOCAL, host)).toBe("stranger");
  });

  it.each([
    "localhost:8080",
    "127.0.0.1:8080",
    "[::1]:8080",
    "platform.internal",
    "",
    "localhost.evil.example",
    `p5173-${SESSION}.localhost.evil.example:8080`,
    `p5173-${SESSION}.preview.example.com`,
  ])("is not %j, which is another host [X17]", (host) => {
    expect(previewNamed(LOCAL, host)).toBe(null);
  });
});

describe("cookies between a browser and an app", () => {
  it("have the browser's own protection over https", () => {
    expect(previewCookieName(LOCAL)).toBe("platform_preview");
    expect(previewCookieName(WILDCARD)).toBe("__Host-platform_preview");
  });

  it("contain the platform's among others, at most four of that name", () => {
    const [a, b] = ["a".repeat(43), "b".repeat(43)];
    expect(
      previewCookies(LOCAL, `x=1; platform_preview=${a};platform_preview=short; platform_preview=${b}`),
    ).toEqual([a, b]);
    expect(previewCookies(LOCAL, Array(9).fill(`platform_preview=${a}`).join("; "))).toHaveLength(4);
    expect(previewCookies(LOCAL, `__Host-platform_preview=${a}; x_platform_preview=${a}`)).toEqual([]);
    expect(previewCookies(LOCAL, `Platform_Preview=${a}; platform_preview="${a}"`)).toEqual([]);
    expect(previewCookies(WILDCARD, `platform_preview=${b}; __Host-platform_preview=${a}`)).toEqual([a]);
    expect(previewCookies(LOCAL, "")).toEqual([]);
  });

  it.each([
    ["a=1; b=2", "a=1; b=2"],
    ["a=1;b=2", "a=1;b=2"],
    [`a=1; platform_preview=${SECRET}; b="x;y"`, 'a=1; b="x;y"'],
    [`platform_preview=${SECRET}; a=1`, "a=1"],
    [`platform_preview=${SECRET}`, null],
    [`platform_preview=${SECRET};platform_preview=x; __Host-platform_preview=y`, null],
    [`__host-Platform_Preview=${SECRET}; a=1`, "a=1"],
    ["platform_preview; a=1", "a=1"],
    ["xplatform_preview=1; platform_preview2=2", "xplatform_preview=1; platform_preview2=2"],
    ["", ""],
  ])("reach the app without the platform's: %j as %j", (header, passed) => {
    expect(withoutPreviewCookie(header)).toBe(passed);
  });

  it.each([
    "platform_preview=x",
    " platform_preview = x; Path=/",
    "=platform_preview=x",
    "PLATFORM_PREVIEW=x",
    "__Host-platform_preview=x; Secure; Path=/",
    "__HOST-platform_preview=x",
    "platform_preview",
    "\tplatform_preview=; Max-Age=0",
  ])("cannot be set under the platform's name: %j", (header) => {
    expect(setsPreviewCookie(header)).toBe(true);
  });

  it.each([
    "a=platform_preview",
    "a=1; platform_preview=x",
    "platform_preview_2=x",
    "x-platform_preview=1",
    "",
  ])("otherwise belong to the app: %j", (header) => {
    expect(setsPreviewCookie(header)).toBe(false);
  });
});

describe("the secret of a link", () => {
  it.each([
    [`/?platform_preview=${SECRET}`, SECRET],
    [`/?utm_source=mail&platform_preview=${SECRET}`, SECRET],
    ["/?platform_preview=", ""],
    [`/?platform_preview=${SECRET}x`, ""],
    ["/", null],
    ["/?q=platform_preview", null],
    [`/x?platform_preview=${SECRET}`, null],
    [`//?platform_preview=${SECRET}`, null],
  ])("of %s is %j", (target, secret) => {
    expect(linkSecret(target)).toBe(secret);
  });
});

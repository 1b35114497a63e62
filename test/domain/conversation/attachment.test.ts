import { describe, expect, it } from "vitest";
import {
  ATTACHMENT_NAME_MAX,
  attachmentName,
  isImage,
  detectMediaType,
  textIn,
} from "../../../src/domain/conversation/attachment.ts";

const latin = (text: string) => Buffer.from(text, "latin1");

describe("the name of an attachment", () => {
  it.each([
    ["error.log", "error.log"],
    ["/etc/passwd", "passwd"],
    ["..\\..\\evil.exe", "evil.exe"],
    ["..", "file"],
    ["a/..", "file"],
    ["", "file"],
    ["  \t ", "file"],
    ["a\u0000b\nc.txt", "abc.txt"],
    ["invoice\u202efdp.exe", "invoicefdp.exe"],
    ["\ud800.txt", "\ufffd.txt"],
    [".env", ".env"],
  ])("of %j is %j", (given, name) => {
    expect(attachmentName(given)).toBe(name);
    expect(attachmentName(name)).toBe(name);
  });

  it("that is long is cut before its extension, in whole characters", () => {
    const name = attachmentName(`${"ü".repeat(300)}.tar`);
    expect(name).toMatch(/^ü+\.tar$/);
    expect(Buffer.byteLength(name)).toBe(ATTACHMENT_NAME_MAX);
  });
});

describe("the media type of an attachment", () => {
  it.each([
    ["its bytes, whatever the sender says", "text/plain", "\x89PNG\r\n\x1a\n...", "image/png"],
    ["its bytes, if the sender says nothing", null, "\xff\xd8\xff\xe0", "image/jpeg"],
    ["GIF", null, "GIF89a", "image/gif"],
    ["WebP", null, "RIFF....WEBPVP8 ", "image/webp"],
    ["PDF", null, "%PDF-1.7", "application/pdf"],
    ["what the sender says", "Application/JSON; charset=utf-8", "{}", "application/json"],
    ["text, if curl knows nothing", "application/x-www-form-urlencoded", "a", "text/plain"],
    ["not an image that it is not", "image/png", "<svg/>", "text/plain"],
    ["unknown, if the bytes are no text", "image/png", "\x00\x01", "application/octet-stream"],
    ["not what is no media type", "a b", "\xff", "application/octet-stream"],
  ])("is %s", (_, said, bytes, mediaType) => {
    expect(detectMediaType(said, latin(bytes))).toBe(mediaType);
  });

  it("is shown as an image only for the four kinds that browsers decode without scripts", () => {
    const shown = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    const others = ["image/svg+xml", "application/pdf", "text/html"];
    expect([...shown, ...others].filter((type) => isImage(type))).toEqual(shown);
  });
});

it("bytes are text if they are UTF-8 without NUL", () => {
  expect(textIn(Buffer.from("grüße"))).toBe("grüße");
  expect(textIn(latin("\xff"))).toBe(null);
  expect(textIn(latin("a\0"))).toBe(null);
});

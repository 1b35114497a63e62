import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import {
  isMailAddress,
  MAIL_FROM_EXPECTED,
  MAIL_SERVER_EXPECTED,
  parseMailFrom,
  parseMailServer,
} from "../../../src/domain/service/mail-server.ts";

describe("a mail server", () => {
  it.each([
    ["smtp://mail.example.com", { host: "mail.example.com", port: 587, isSecure: false, login: null }],
    ["smtps://mail.example.com/", { host: "mail.example.com", port: 465, isSecure: true, login: null }],
    ["smtp://[::1]:25", { host: "[::1]", port: 25, isSecure: false, login: null }],
    [
      "smtp://ada%40example.com:p%3Aq%2f@10.0.0.7:2525",
      { host: "10.0.0.7", port: 2525, isSecure: false, login: { user: "ada@example.com", password: "p:q/" } },
    ],
  ])("is read from %s", (text, server) => {
    expect(Result.getOrThrow(parseMailServer(text))).toEqual(server);
  });

  it.each([
    "mail.example.com",
    "https://mail.example.com",
    "smtp://",
    "smtp://ada@mail.example.com",
    "smtp://:word@mail.example.com",
    "smtp://ada:%zz@mail.example.com",
    "smtp://mail.example.com/inbox",
    "smtp://mail.example.com?tls=no",
  ])("is not %s", (text) => {
    expect(parseMailServer(text)).toEqual(Result.fail(MAIL_SERVER_EXPECTED));
  });
});

describe("a sender of mail", () => {
  it.each([
    ["platform@example.com", "platform@example.com"],
    ["Platform <platform@example.com>", "Platform <platform@example.com>"],
    ["<platform@example.com>", "<platform@example.com>"],
  ])("is %s", (text, from) => {
    expect(parseMailFrom(text)).toEqual(Result.succeed(from));
  });

  it.each([
    "platform",
    "a@example.com, b@example.com",
    "A, B <a@example.com>",
    "Platform <a@example.com> <b@example.com>",
    "Platform\r\nBcc: b@example.com <a@example.com>",
    "Caf\u00e9 <a@example.com>",
  ])("is not %j", (text) => {
    expect(parseMailFrom(text)).toEqual(Result.fail(MAIL_FROM_EXPECTED));
  });
});

it.each([
  ["ada@example.com", true],
  ["ada.b+c@sub.example.com", true],
  ["ada@example.com, eve@example.com", false],
  ["Ada <ada@example.com>", false],
  ["ada@example.com\nBcc: eve@example.com", false],
  ["ada\u202e@example.com", false],
  ["ada@", false],
  [`${"a".repeat(64)}@${"b".repeat(200)}.example.com`, false],
])("%j is the address of one mailbox: %s", (text, isAddress) => {
  expect(isMailAddress(text)).toBe(isAddress);
});

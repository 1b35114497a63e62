/** The mailer, against a real mail server. */
import * as Effect from "effect/Effect";
import { afterEach, describe, expect, it } from "vitest";
import {
  examineMailServer,
  makeMailer,
  type MailerOptions,
} from "../../../src/features/notifications/mailer.ts";
import {
  MAIL_CERTIFICATE,
  type MailServerOptions,
  TestMailServer,
} from "../../support/servers/mail-server.ts";

const LOGIN = { user: "platform@example.org", password: "right: password" };
const MAIL = { to: "ada@example.org", id: "evt_1", subject: "greeter: café", text: "Look.\n" };

let server: TestMailServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

const open = async (options: MailServerOptions = {}): Promise<TestMailServer> => {
  server = await TestMailServer.open(options);
  return server;
};

type Options = Partial<MailerOptions> & { readonly login?: typeof LOGIN };

const optionsOf = (port: number, { login, ...rest }: Options): MailerOptions => ({
  server: { host: "mail.example.org", port, isSecure: false, login: login ?? null },
  from: "Platform <platform@example.org>",
  ca: MAIL_CERTIFICATE,
  network: { resolve: () => Promise.resolve(["127.0.0.1"]) },
  ...rest,
});
const send = (port: number, options: Options = {}, mail = MAIL) =>
  Effect.runPromise(makeMailer(optionsOf(port, options))(mail));

describe("a mail", () => {
  it("is handed to the mail server, for one mailbox and under its own id", async () => {
    const { port, received } = await open();
    expect(await send(port)).toMatchObject({ status: 250, error: null, answer: "250 2.0.0 taken" });
    expect(received).toMatchObject([
      { from: "platform@example.org", to: "ada@example.org", isSecure: false },
    ]);
    const [{ text = "" } = {}] = received;
    expect(text).toMatch(/^From: Platform <platform@example\.org>$/m);
    expect(text).toMatch(/^Subject: =\?UTF-8\?Q\?greeter=3A_caf=C3=A9\?=$/m);
    expect(text).toMatch(/^Message-ID: <evt_1@example\.org>$/m);
    expect(text).toMatch(/^Auto-Submitted: auto-generated$/m);
    expect(text).toMatch(/\n\nLook\.$/);
  });

  it("has a subject that readers do not decode", async () => {
    const { port, received } = await open();
    const subject = `=?utf-8?q?Bcc=0D=0A?= ${"long ".repeat(20)}`.trim();
    expect(await send(port, {}, { ...MAIL, subject })).toMatchObject({ status: 250 });
    const [, lines = ""] = /^Subject: ((?:.|\n )*)$/m.exec(received[0]?.text ?? "") ?? [];
    const words = [...lines.matchAll(/=\?UTF-8\?B\?([^?]*)\?=/g)];
    expect(words.map(([word]) => word).join("")).toBe(lines.replaceAll(/\s/g, ""));
    expect(words.map(([, text = ""]) => Buffer.from(text, "base64").toString()).join("")).toBe(subject);
  });

  it("goes over TLS where the server offers it", async () => {
    const { port, received } = await open({ hasTls: true });
    expect(await send(port)).toMatchObject({ status: 250 });
    expect(received).toMatchObject([{ isSecure: true }]);
  });

  it("goes to no server that has signed its certificate itself", async () => {
    const { port, received } = await open({ hasTls: true });
    const outcome = await send(port, { ca: "" });
    expect(outcome).toMatchObject({ status: null, error: expect.stringContaining("self-signed") });
    expect(outcome.ends).toBe(undefined);
    expect(received).toEqual([]);
  });

  it("goes to no server that speaks no TLS where it has to, which is said in plain words", async () => {
    const { port } = await open();
    const tls = { host: "mail.example.org", port, isSecure: true, login: null };
    const { error } = await send(port, { server: tls });
    expect(error).toBe("The mail server gives no safe connection: wrong version number");
  });

  it("is handed in with user and password over TLS", async () => {
    const { port, received } = await open({ hasTls: true, login: LOGIN });
    expect(await send(port, { login: LOGIN })).toMatchObject({ status: 250 });
    expect(received).toMatchObject([{ isSecure: true }]);
  });

  it("waits until the operator has corrected a wrong password, and says what the server said", async () => {
    const { port, received } = await open({ hasTls: true, login: LOGIN });
    const outcome = await send(port, { login: { ...LOGIN, password: "wrong" } });
    expect(outcome).toMatchObject({
      status: 535,
      error: "The mail server refuses the service's user and password: 535 5.7.8 wrong user or password",
    });
    expect(outcome.ends).toBe(undefined);
    expect(received).toEqual([]);
  });

  it("sends no password without TLS", async () => {
    const { port, lines, received } = await open({ login: LOGIN });
    expect(await send(port, { login: LOGIN })).toMatchObject({
      error: expect.stringContaining("no safe connection"),
    });
    expect(lines.filter((line) => line.startsWith("AUTH"))).toEqual([]);
    expect(received).toEqual([]);
  });

  it("to an address that the server refuses is not sent again", async () => {
    const { port, replies } = await open();
    replies.set("RCPT", "550 5.1.1 no such user here");
    expect(await send(port)).toMatchObject({
      status: 550,
      error: "The mail server refuses the address: 550 5.1.1 no such user here",
      ends: "failed",
    });
  });

  it.each([
    ["RCPT", "451 4.7.1 greylisted", 451, "The mail server refuses the address: 451 4.7.1 greylisted"],
    [
      "MAIL",
      "553 5.7.1 not your address",
      553,
      "The mail server refuses the sender in PLATFORM_MAIL_FROM: 553 5.7.1 not your address",
    ],
  ])("is tried later if the server answers %s with %s", async (command, reply, status, error) => {
    const { port, replies } = await open();
    replies.set(command, reply);
    const outcome = await send(port);
    expect(outcome).toMatchObject({ status, error });
    expect(outcome.ends).toBe(undefined);
  });

  it("that the server refuses as a whole is not sent again", async () => {
    const { port, replies } = await open();
    replies.set(".", "554 5.7.1 this is spam");
    expect(await send(port)).toMatchObject({
      status: 554,
      error: "The mail server refuses the mail: 554 5.7.1 this is spam",
      ends: "failed",
    });
  });

  it("is tried later if the server is away, or does not answer in time", async () => {
    const { port } = await open();
    await server?.close();
    server = undefined;
    const away = await send(port);
    expect(away).toMatchObject({ status: null, error: expect.stringContaining("cannot be reached") });
    expect(away.ends).toBe(undefined);
    const silent = await open();
    silent.replies.set("EHLO", "250-but nothing follows");
    expect(await send(silent.port, { timeoutMs: 50 })).toMatchObject({
      status: null,
      error: "The mail server did not take the mail within 0.05 s.",
    });
  });
});

it("the server says before any mail whether it takes the login", async () => {
  const { port, received } = await open({ hasTls: true, login: LOGIN });
  const examine = (password: string) =>
    Effect.runPromise(examineMailServer(optionsOf(port, { login: { ...LOGIN, password } })));
  expect(await examine(LOGIN.password)).toBe(null);
  expect(await examine("wrong")).toBe(
    "The mail server refuses the service's user and password: 535 5.7.8 wrong user or password",
  );
  expect(received).toEqual([]);
});

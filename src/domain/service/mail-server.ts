/** The operator's mail server and the sender of the service's mail, as PLATFORM_SMTP_URL and PLATFORM_MAIL_FROM name them. */
import * as Result from "effect/Result";
import { decodePercent } from "../text.ts";

export interface MailServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte, as with `smtps://`. Otherwise STARTTLS. */
  readonly isSecure: boolean;
  /** Null if the server asks for no credentials. */
  readonly login: { readonly user: string; readonly password: string } | null;
}

export interface MailSettings {
  readonly server: MailServer;
  /** `Name <address>`, or an address alone. */
  readonly from: string;
}

/** Ports of `smtp` with STARTTLS for programs that hand mail in, and of `smtps`. */
const SUBMISSION_PORT = 587;
const SECURE_PORT = 465;

export const MAIL_SERVER_EXPECTED =
  "smtp:// or smtps:// with a host, for example smtps://user:password@mail.example.com, with percent escapes in user and password";
export const MAIL_FROM_EXPECTED =
  "an address or `Name <address>` in one line of ASCII, for example Platform <platform@example.com>";

/** @returns the server, or what was expected; never the given value, which may have a password */
export const parseMailServer = (text: string): Result.Result<MailServer, string> => {
  const url = URL.parse(text);
  const isKnown = url !== null && (url.protocol === "smtp:" || url.protocol === "smtps:");
  if (!isKnown || url.hostname === "" || !/^\/?$/.test(url.pathname) || url.search !== "" || url.hash !== "")
    return Result.fail(MAIL_SERVER_EXPECTED);
  const [user, password] = [decodePercent(url.username), decodePercent(url.password)];
  // A user without a password, or the reverse, is a mistake in writing the URL.
  if (user === null || password === null || (user === "") !== (password === ""))
    return Result.fail(MAIL_SERVER_EXPECTED);
  const isSecure = url.protocol === "smtps:";
  return Result.succeed({
    host: url.hostname,
    port: url.port === "" ? (isSecure ? SECURE_PORT : SUBMISSION_PORT) : Number(url.port),
    isSecure,
    login: user === "" ? null : { user, password },
  });
};

const ADDRESS = /^[^\s\p{C}<>"(),:;@\\[\]]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/u;

/** Whether it is an address of one mailbox, without a name, a list or a comment. */
export const isMailAddress = (text: string): boolean => text.length <= 254 && ADDRESS.test(text);

/** @returns the sender as mails name it, or what was expected */
export const parseMailFrom = (text: string): Result.Result<string, string> => {
  const [, name, bracketed] = /^([^<>",;:@\\]*)<([^<>]+)>$/.exec(text) ?? [];
  const address = bracketed ?? text;
  if (!/^[ -~]+$/.test(text) || !isMailAddress(address)) return Result.fail(MAIL_FROM_EXPECTED);
  return Result.succeed(name === undefined ? address : `${name.trim()} <${address}>`.trim());
};

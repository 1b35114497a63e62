/**
 * Which service is asked and with which token: the sandbox's injected variables (PLATFORM_API_URL, PLATFORM_CLI_TOKEN),
 * else what `platform login` wrote.
 *
 *  L1 A token goes to the address that it was given with and to no other: one from the file never to an address that a
 *     variable names, whoever set it.
 *  L2 The file is its owner's alone (0600, its directory 0700), and is never half written.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import * as path from "node:path";
import { tokenKind } from "../domain/ids.ts";
import type { Connection } from "./client.ts";
import { EXIT, Failure } from "./failure.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What `platform login` keeps. */
export interface Login {
  readonly apiUrl: string;
  readonly token: string;
}

const unauthorised = (code: string, message: string): Failure =>
  new Failure(EXIT.unauthorised, code, { message });

/** Where the configuration lies, by the XDG Base Directory Specification: a relative path there counts for none. */
export const configurationFile = (environment: Environment): string => {
  const given = environment["XDG_CONFIG_HOME"] ?? "";
  const home = path.isAbsolute(given) ? given : path.join(environment["HOME"] ?? homedir(), ".config");
  return path.join(home, "platform", "config.json");
};

/**
 * The API's address as it is kept: with `/v1`, whether or not it was written.
 *
 * @returns null for what is no http or https address, or has credentials or a query in it.
 */
export const parseAddress = (written: string): string | null => {
  const url = URL.parse(written.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return null;
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return null;
  const base = url.href.replace(/\/+$/, "");
  return base.endsWith("/v1") ? base : `${base}/v1`;
};

const addressOf = (written: string, source: string): string => {
  const address = parseAddress(written);
  if (address === null)
    throw new Failure(EXIT.usage, "bad_address", {
      message: `${source} must be an http or https URL without a user, a query and a fragment.`,
    });
  return address;
};

/** A token by its form; what is wrong with it is never shown, it may be a secret of something else. */
export const checkedToken = (written: string, source: string): string => {
  if (tokenKind(written) === null)
    throw unauthorised(
      "malformed_token",
      `${source} is not a token. A token is platform_pat_ followed by at least 27 letters, digits, _ or -.`,
    );
  return written;
};

const unreadable = (file: string, reason: string): Failure =>
  new Failure(EXIT.refused, "bad_configuration", {
    message: `${file} ${reason}. Fix it, or run \`platform login\` again.`,
  });

/** What the file says; null where there is none. */
export const readLogin = (file: string): Login | null => {
  let text: string;
  try {
    // Like a key of ssh's: a token that others could read is theirs as well.
    if ((statSync(file).mode & 0o077) !== 0)
      throw unreadable(file, "can be read or written by other users (its mode must be 0600)");
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Failure) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw unreadable(file, `cannot be read (${code ?? "unknown"})`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unreadable(file, "is not valid JSON");
  }
  if (typeof value !== "object" || value === null) throw unreadable(file, "is not a JSON object");
  const [apiUrl, token]: unknown[] = [Reflect.get(value, "api_url"), Reflect.get(value, "token")];
  if (typeof apiUrl !== "string" || typeof token !== "string")
    throw unreadable(file, "has no api_url or no token");
  return {
    apiUrl: addressOf(apiUrl, `api_url in ${file}`),
    token: checkedToken(token, `token in ${file}`),
  };
};

export const writeLogin = (file: string, { apiUrl, token }: Login): void => {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify({ api_url: apiUrl, token }, null, 2)}\n`, { mode: 0o600 });
  // A draft that somebody left keeps the mode that it had.
  chmodSync(draft, 0o600);
  renameSync(draft, file);
};

const given = (environment: Environment, name: string): string | null => {
  const value = environment[name];
  return value === undefined || value === "" ? null : value;
};

/** Who is asked, as whom. @throws Failure where that is not known */
export const connectionFrom = (environment: Environment): Connection => {
  const [writtenUrl, writtenToken] = [
    given(environment, "PLATFORM_API_URL"),
    given(environment, "PLATFORM_CLI_TOKEN"),
  ];
  const apiUrl = writtenUrl === null ? null : addressOf(writtenUrl, "PLATFORM_API_URL");
  const token = writtenToken === null ? null : checkedToken(writtenToken, "PLATFORM_CLI_TOKEN");
  if (apiUrl !== null && token !== null) return { apiUrl, token, environment };
  const file = configurationFile(environment);
  const login = readLogin(file);
  if (login === null)
    throw unauthorised(
      "not_logged_in",
      apiUrl === null && token === null
        ? "Not logged in. Run `platform login`, or set PLATFORM_API_URL and PLATFORM_CLI_TOKEN."
        : `${apiUrl === null ? "PLATFORM_API_URL" : "PLATFORM_CLI_TOKEN"} is not set. Set both PLATFORM_API_URL and PLATFORM_CLI_TOKEN, or run \`platform login\`.`,
    );
  if (apiUrl !== null && apiUrl !== login.apiUrl)
    throw unauthorised(
      "not_logged_in",
      `PLATFORM_API_URL is not the service of ${file}, and the saved token is only sent to that service. Set PLATFORM_CLI_TOKEN too.`,
    );
  return { apiUrl: login.apiUrl, token: token ?? login.token, environment };
};

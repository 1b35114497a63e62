/**
 * Chooses the service and the token: the sandbox's injected variables (PLATFORM_API_URL, PLATFORM_CLI_TOKEN), otherwise
 * the file that `platform login` wrote.
 *
 *  L1 A token is sent only to the address that it was given with. The file's token is never sent to an address from a
 *     variable.
 *  L2 Only its owner can read the file (0600, its directory 0700), and it is written atomically.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import * as path from "node:path";
import { tokenKind } from "../domain/ids.ts";
import type { Connection } from "./client.ts";
import { EXIT, Failure } from "./failure.ts";
import { parseJson } from "../ground/record.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The content of the file. */
export interface Login {
  readonly apiUrl: string;
  readonly token: string;
  /** The token was made for this file, by a login in the page. Nothing else has it. */
  readonly isOwn: boolean;
}

const unauthorisedFailure = (code: string, message: string): Failure =>
  new Failure(EXIT.unauthorised, code, { message });

/** The configuration's path by the XDG Base Directory Specification, which ignores relative paths. */
export const configurationFile = (environment: Environment): string => {
  const override = environment["XDG_CONFIG_HOME"] ?? "";
  const home = path.isAbsolute(override) ? override : path.join(environment["HOME"] ?? homedir(), ".config");
  return path.join(home, "platform", "config.json");
};

/**
 * The API's address in its stored form: always with `/v1`.
 *
 * @returns null if it is not an http or https address, or contains credentials or a query.
 */
export const parseAddress = (text: string): string | null => {
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return null;
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return null;
  const base = url.href.replace(/\/+$/, "");
  return base.endsWith("/v1") ? base : `${base}/v1`;
};

const readAddress = (text: string, source: string): string => {
  const address = parseAddress(text);
  if (address === null)
    throw new Failure(EXIT.usage, "bad_address", {
      message: `${source} must be an http or https URL without a user, a query and a fragment.`,
    });
  return address;
};

/** Checks a token's form. An invalid token is never shown, because it may be another secret. */
export const checkedToken = (text: string, source: string): string => {
  if (tokenKind(text) === null)
    throw unauthorisedFailure(
      "malformed_token",
      `${source} is not a token. A token is platform_pat_ followed by at least 27 letters, digits, _ or -.`,
    );
  return text;
};

const unreadable = (file: string, reason: string): Failure =>
  new Failure(EXIT.refused, "bad_configuration", {
    message: `${file} ${reason}. Fix it, or run \`platform login\` again.`,
  });

/** The content of the file. Null if it does not exist. */
export const readLogin = (file: string): Login | null => {
  let text: string;
  try {
    // As with ssh keys, others must not be able to read the token.
    if ((statSync(file).mode & 0o077) !== 0)
      throw unreadable(file, "can be read or written by other users (its mode must be 0600)");
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Failure) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw unreadable(file, `cannot be read (${code ?? "unknown"})`);
  }
  const value = parseJson(text);
  if (value === undefined) throw unreadable(file, "is not valid JSON");
  if (typeof value !== "object" || value === null) throw unreadable(file, "is not a JSON object");
  const [apiUrl, token]: unknown[] = [Reflect.get(value, "api_url"), Reflect.get(value, "token")];
  if (typeof apiUrl !== "string" || typeof token !== "string")
    throw unreadable(file, "has no api_url or no token");
  return {
    apiUrl: readAddress(apiUrl, `api_url in ${file}`),
    token: checkedToken(token, `token in ${file}`),
    isOwn: Reflect.get(value, "own_token") === true,
  };
};

export const writeLogin = (file: string, { apiUrl, token, isOwn }: Login): void => {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify({ api_url: apiUrl, token, own_token: isOwn }, null, 2)}\n`, {
    mode: 0o600,
  });
  // A leftover draft would keep its former mode.
  chmodSync(draft, 0o600);
  renameSync(draft, file);
};

const readVariable = (environment: Environment, name: string): string | null => {
  const value = environment[name];
  return value === undefined || value === "" ? null : value;
};

/** The service and the token. @throws Failure if they are unknown */
export const connectionFrom = (environment: Environment): Connection => {
  const [writtenUrl, writtenToken] = [
    readVariable(environment, "PLATFORM_API_URL"),
    readVariable(environment, "PLATFORM_CLI_TOKEN"),
  ];
  const apiUrl = writtenUrl === null ? null : readAddress(writtenUrl, "PLATFORM_API_URL");
  const token = writtenToken === null ? null : checkedToken(writtenToken, "PLATFORM_CLI_TOKEN");
  if (apiUrl !== null && token !== null) return { apiUrl, token, environment };
  const file = configurationFile(environment);
  const login = readLogin(file);
  if (login === null)
    throw unauthorisedFailure(
      "not_logged_in",
      apiUrl === null && token === null
        ? "Not logged in. Run `platform login`, or set PLATFORM_API_URL and PLATFORM_CLI_TOKEN."
        : `${apiUrl === null ? "PLATFORM_API_URL" : "PLATFORM_CLI_TOKEN"} is not set. Set both PLATFORM_API_URL and PLATFORM_CLI_TOKEN, or run \`platform login\`.`,
    );
  if (apiUrl !== null && apiUrl !== login.apiUrl)
    throw unauthorisedFailure(
      "not_logged_in",
      `PLATFORM_API_URL is not the service of ${file}, and the saved token is only sent to that service. Set PLATFORM_CLI_TOKEN too.`,
    );
  return { apiUrl: login.apiUrl, token: token ?? login.token, environment };
};

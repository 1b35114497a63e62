/**
 * Hosts in an operator's settings. Each is compared with the host of an address alone, so an entry with a scheme, a port
 * or a path would silently allow nothing. The start is refused for it.
 */
// Only the pure part of node:net.
import { isIP } from "node:net";
import * as Result from "effect/Result";
import { comparableHost, withoutBrackets } from "../../ground/net/address.ts";

/** No host has one of these. Names that only the operator's own resolver knows may have any other character. */
const NEVER_IN_A_NAME = /[\s/\\:;@?#%*[\]]|^\.|^$/;

const isHost = (text: string): boolean => {
  const host = withoutBrackets(text);
  return isIP(host) === 6 ? !host.includes("%") : !NEVER_IN_A_NAME.test(text);
};

/** A wrong entry of a list, and what was expected instead. */
interface WrongHost {
  readonly entry: string;
  readonly expected: string;
}

/** A URL may contain a password, and the refusal is read by many. */
const displayEntry = (entry: string): string => (entry.includes("@") ? "(hidden)" : entry);

const wrongIn = (entries: readonly string[], expected: string, isRight: (entry: string) => boolean) => {
  const wrong = entries.find((entry) => !isRight(entry));
  return wrong === undefined ? null : Result.fail<WrongHost>({ entry: displayEntry(wrong), expected });
};

const HOSTS =
  "host names or IP addresses without scheme, port, path and wildcard, for example git.example.com,10.0.0.7";

/** Reads hosts that are trusted more than others. */
export const readHosts = (entries: readonly string[]): Result.Result<readonly string[], WrongHost> =>
  wrongIn(entries, HOSTS, isHost) ?? Result.succeed(entries.map(comparableHost));

const PATTERNS =
  "host names without scheme, port and path, *. before a domain for all hosts below it, or * alone, for example api.example.com,*.example.org";

/** Reads the hosts of an egress list (src/sandbox/egress-policy.ts E4), which stay as they are written. */
export const readHostPatterns = (entries: readonly string[]): Result.Result<readonly string[], WrongHost> =>
  wrongIn(entries, PATTERNS, (entry) => entry === "*" || isHost(entry.replace(/^\*\./, ""))) ??
  Result.succeed(entries);

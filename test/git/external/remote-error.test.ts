/** The meaning of a failed call to a repository's server, by git's and ssh's own words. */
import { expect, it } from "vitest";
import { remoteError } from "../../../src/git/upstream/remote.ts";

const OBJECT = "a".repeat(40);
const URL = "https://code.example/o/r.git";

it.each([
  ["a full disk here", "fatal: write error: No space left on device", "disk_full", "disk"],
  ["a web page", `fatal: ${URL}/info/refs not valid: is this a git repository?`, "refused", "web page"],
  [
    "a credential that may only read",
    "error: RPC failed; HTTP 403 curl 22\nfatal: x",
    "refused",
    "rejected the credential",
  ],
  ["a refusal half way", "error: RPC failed; HTTP 413 curl 22\nfatal: x", "refused", "HTTP 413"],
  ["a wrong password", `fatal: Authentication failed for '${URL}/'`, "refused", "Authentication failed"],
  ["a missing repository", `fatal: repository '${URL}/' not found`, "refused", "not found"],
  [
    "an unknown host key",
    "Host key verification failed.\nfatal: Could not read from remote repository.",
    "refused",
    "Host key verification failed",
  ],
  [
    "a closed port",
    "fatal: unable to access 'x': Failed to connect to code.example port 443",
    "unavailable",
    "(address 192.0.2.1)",
  ],
  [
    "an unknown name",
    "fatal: unable to access 'x': Could not resolve host: code.example",
    "unavailable",
    "Could not resolve host",
  ],
  [
    "an object that git's check refuses",
    `error: object ${OBJECT}: gitmodulesUrl: disallowed submodule url: -u\nfatal: fsck error in packed object\nfatal: index-pack failed`,
    "refused",
    `The object ${OBJECT} has a fault that is not accepted: gitmodulesUrl, disallowed submodule url: -u`,
  ],
  [
    "words that git does not have today",
    "fatal: the flux capacitor is empty",
    "unavailable",
    "the flux capacitor is empty",
  ],
  ["no word at all", "", "unavailable", "git printed nothing"],
] as const)("%s", (_, stderr, code, words) => {
  const error = remoteError(stderr, null, "192.0.2.1");
  expect(error.code).toBe(code);
  expect(error.message).toContain(words);
});

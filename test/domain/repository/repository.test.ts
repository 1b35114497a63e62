import * as fc from "fast-check";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { expect, test } from "vitest";
import {
  RepositoryRequest,
  parseImportSource,
  parseRepositoryUrl,
  repositorySource,
} from "../../../src/domain/repository/repository.ts";

const nowhere: ReadonlySet<string> = new Set();
const accepts = (url: string, allow = nowhere): boolean => Result.isSuccess(parseRepositoryUrl(url, allow));

test.each([
  ["https://github.com/owner/name.git", "https", "github.com"],
  ["https://GitHub.com/owner/name", "https", "github.com"],
  ["https://git.example.org:8443/a/b", "https", "git.example.org"],
  ["https://93.184.216.34/a", "https", "93.184.216.34"],
  ["https://[2606:4700::1111]/a", "https", "2606:4700::1111"],
  ["ssh://git@github.com/owner/name.git", "ssh", "github.com"],
  ["ssh://git@github.com:2222/owner/name.git", "ssh", "github.com"],
  ["ssh://github.com/~user/name", "ssh", "github.com"],
])("reads %s [G03]", (url, scheme, host) => {
  expect(parseRepositoryUrl(url, nowhere)).toEqual(Result.succeed({ scheme, host, href: url }));
});

test.each([
  "",
  "github.com/owner/name",
  "git@github.com:owner/name.git",
  "ext::sh -c id",
  "ext::sh",
  "file:///etc/passwd",
  "/etc/passwd",
  "git://github.com/owner/name",
  "ftp://example.org/x",
  "HTTPS://example.org/x",
  "javascript:alert(1)",
  "-oProxyCommand=id",
  "ssh://-oProxyCommand=id/x",
  "ssh://-oProxyCommand=id@example.org/x",
  "ssh://git@-oProxyCommand=id/x",
  "ssh://git:pw@example.org/x",
  "https://user:pw@example.org/x",
  "https://user@example.org/x",
  "https://@example.org/x",
  "https://a@b@example.org/x",
  "https:///x",
  "https://:443/x",
  "https:/example.org/x",
  "https://example.org",
  "https://example.org/",
  "https://example.org/x\n",
  "https://example.org/x\r\nHost: y",
  "https://exa mple.org/x",
  "https://example.org/x y",
  "https://example.org\\@evil.example/x",
  "https://example.org/x?upload-pack=y",
  "https://example.org/x#y",
  "https://example.org:0/x",
  "https://example.org:65536/x",
  "https://example.org:080808/x",
  "https://exämple.org/x",
  "https://exa%6dple.org/x",
  "https://[::1/x",
  "https://[fe80::1%25eth0]/x",
  `https://example.org/${"x".repeat(2048)}`,
])("refuses %j [G03]", (url) => {
  expect(accepts(url)).toBe(false);
});

test.each([
  "https://localhost/x",
  "https://LOCALHOST/x",
  "https://localhost./x",
  "https://db.localhost/x",
  "https://metadata.google.internal/x",
  "https://printer.local/x",
  "https://127.0.0.1/x",
  "https://127.1/x",
  "https://0/x",
  "https://0x7f000001/x",
  "https://2130706433/x",
  "https://017700000001/x",
  "https://169.254.169.254/latest",
  "https://10.1.2.3/x",
  "https://172.16.0.1/x",
  "https://192.168.0.1/x",
  "https://100.64.0.1/x",
  "https://[::1]/x",
  "https://[::]/x",
  "https://[::ffff:127.0.0.1]/x",
  "https://[::ffff:a9fe:a9fe]/x",
  "https://[fd00:ec2::254]/x",
  "https://[fe80::1]/x",
  "ssh://git@127.1/x",
  "ssh://git@0x7f.1/x",
])("refuses the private host of %s, in any spelling [G03] [X03]", (url) => {
  expect(accepts(url)).toBe(false);
});

test("accepts http and private hosts if the operator allows the host", () => {
  const allow = new Set(["git.example.org", "127.0.0.1", "::1", "localhost"]);
  expect(accepts("http://git.example.org/x", allow)).toBe(true);
  expect(accepts("http://GIT.example.org/x", allow)).toBe(true);
  expect(accepts("http://127.0.0.1:8080/x", allow)).toBe(true);
  expect(accepts("https://127.1/x", allow)).toBe(true);
  expect(accepts("https://[::1]/x", allow)).toBe(true);
  expect(accepts("https://localhost/x", allow)).toBe(true);
  expect(accepts("http://example.org/x", allow)).toBe(false);
  expect(accepts("http://user:pw@git.example.org/x", allow)).toBe(false);
});

test("no refusal repeats a part of the URL, which may contain a password [G05]", () => {
  for (const url of [
    "https://u:canary@example.org/x",
    "canary",
    "http://canary.example/x",
    "https://canary.local/x",
  ]) {
    const result = parseRepositoryUrl(url, nowhere);
    expect(Result.isFailure(result) && result.failure).not.toContain("canary");
    expect(Result.isFailure(result)).toBe(true);
  }
});

test("never throws, and URL parsers see the same host in an accepted URL", () => {
  const piece = fc.constantFrom(
    "https://",
    "ssh://",
    "git@",
    "a.example",
    ":",
    "/",
    "x",
    "@",
    "[",
    "]",
    "%",
    "127.1",
    "\\",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join("")),
      ),
      (url) => {
        const result = parseRepositoryUrl(url, nowhere);
        if (Result.isSuccess(result) && result.success.scheme === "https") {
          expect(new URL(url).hostname).toBe(result.success.host);
        }
      },
    ),
    { seed: 20261120, numRuns: 3000 },
  );
});

test("distinguishes an import from a path from one from a URL", () => {
  expect(parseImportSource("/srv/repos/demo", nowhere)).toEqual(
    Result.succeed({ kind: "path", path: "/srv/repos/demo" }),
  );
  expect(parseImportSource("https://github.com/o/n", nowhere)).toEqual(
    Result.succeed({
      kind: "url",
      url: { scheme: "https", host: "github.com", href: "https://github.com/o/n" },
    }),
  );
});

test.each([
  "",
  "relative/path",
  "../up",
  "file:///srv",
  "ssh://git@github.com/o/n",
  "--upload-pack=id",
  "/srv/a\nb",
  "/srv/a\0",
  `/${"a".repeat(4096)}`,
  "http://example.org/x",
])("refuses to import from %j", (value) => {
  expect(Result.isFailure(parseImportSource(value, nowhere))).toBe(true);
});

const decode = Schema.decodeUnknownResult(RepositoryRequest, { onExcessProperty: "error" });

test.each([
  { kind: "hosted" },
  { kind: "hosted", import_from: "/srv/demo" },
  { kind: "git", url: "https://example.org/x", username: "u", password: "p" },
  { kind: "git", url: "ssh://git@example.org/x", ssh_private_key: "k", known_hosts: "h" },
  { kind: "github", owner: "o", name: "n.git", token: "t", pull_requests: true },
  { kind: "github", owner: "o", name: "n", app: { app_id: "1", installation_id: "2", private_key: "k" } },
])("decodes the repository %j", (repository) => {
  expect(decode(repository)).toEqual(Result.succeed(repository));
});

test.each([
  {},
  { kind: "svn" },
  { kind: "hosted", url: "https://example.org/x" },
  { kind: "git" },
  { kind: "github", owner: "-o", name: "n" },
  { kind: "github", owner: "o/p", name: "n" },
  { kind: "github", owner: "o", name: ".." },
  { kind: "github", owner: "o", name: "n/../m" },
])("refuses the repository %j", (repository) => {
  expect(Result.isFailure(decode(repository))).toBe(true);
});

test("stores no credential of a repository", () => {
  expect(repositorySource({ kind: "hosted", import_from: "/srv/demo" })).toEqual({ kind: "hosted" });
  expect(
    repositorySource({ kind: "git", url: "https://example.org/x", username: "u", password: "canary" }),
  ).toEqual({ kind: "git", url: "https://example.org/x" });
  expect(
    repositorySource({ kind: "github", owner: "o", name: "n", token: "canary", pull_requests: true }),
  ).toEqual({ kind: "github", owner: "o", name: "n", pull_requests: true });
});

import * as Result from "effect/Result";
import { describe, expect, test } from "vitest";
import { readHostPatterns, readHosts } from "../../../src/domain/service/host-list.ts";

const READERS = { hosts: readHosts, patterns: readHostPatterns };

describe.each(Object.entries(READERS))("a list of %s", (_, read) => {
  test.each([
    "https://git.example.com",
    "git.example.com:8443",
    "git.example.com/team",
    "10.0.0.0/8",
    "git.*.com",
    "*.",
    ".example.com",
    "a b",
    "fe80::1%eth0",
    "[::1]:80",
  ])("refuses %j, which no host can match", (entry) => {
    const answer = read(["good.example.com", entry]);
    expect(Result.isFailure(answer) && answer.failure.entry).toBe(entry);
  });

  test("does not repeat a password", () => {
    const refused = read(["https://me:secret@git.example.com"]);
    expect(Result.isFailure(refused) && refused.failure.entry).toBe("(hidden)");
  });
});

test("hosts are read as they are compared: lower case, no brackets, no dot at the end", () => {
  const hosts = readHosts(["Git.Example.com", "[::1]", "10.0.0.7", "under_score.internal"]);
  expect(Result.getOrThrow(hosts)).toEqual(["git.example.com", "::1", "10.0.0.7", "under_score.internal"]);
  expect(Result.isFailure(readHosts(["*.example.com"]))).toBe(true);
});

test("patterns may be all hosts, or all below a domain", () => {
  const patterns = ["*", "*.example.org", "api.example.com"];
  expect(Result.getOrThrow(readHostPatterns(patterns))).toEqual(patterns);
});

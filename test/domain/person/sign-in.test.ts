import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import {
  groupRefusal,
  isInGroup,
  isOfDomain,
  parseIssuer,
  personName,
  returnPath,
  signUpRefusal,
  verifiedAddress,
} from "../../../src/domain/person/sign-in.ts";

describe("the path after a sign-in", () => {
  it("is one of the page", () => {
    for (const path of ["/#/", "/#/account", "/#/projects/0198/fires?status=failed&cursor=a%2Bb"])
      expect(returnPath(path)).toBe(path);
  });

  it("is / for everything else [T13]", () => {
    for (const wish of [
      null,
      undefined,
      "",
      "/",
      "//evil.example",
      "/\\evil.example",
      "\\\\evil.example",
      "%2f%2fevil.example",
      "https://evil.example/#/",
      "javascript:alert(1)",
      "/#/\r\nx: y",
      "/#/\u2028",
      "/#/a b",
      "/#x",
      " /#/",
      "/#/\n",
      `/#/${"a".repeat(500)}`,
    ])
      expect(returnPath(wish)).toBe("/");
  });
});

describe("an issuer", () => {
  it("keeps its spelling, also its last slash", () => {
    for (const text of ["https://sso.example.com", "https://sso.example.com/o/app/", "http://localhost:9000"])
      expect(parseIssuer(text)).toEqual(Result.succeed(text));
  });

  it("is https, or loopback, and nothing but an address", () => {
    for (const text of [
      "http://sso.example.com",
      "http://localhost.evil.example",
      "sso.example.com",
      "https://sso.example.com?x=1",
      "https://sso.example.com#x",
      "https://user@sso.example.com",
      "ftp://sso.example.com",
    ])
      expect(Result.isFailure(parseIssuer(text))).toBe(true);
  });
});

it("an address is of a domain only by all that follows its last @ [T13]", () => {
  const domains = ["example.com"];
  expect(isOfDomain("ada@example.com", domains)).toBe(true);
  expect(isOfDomain("ada@EXAMPLE.com", domains)).toBe(true);
  for (const email of ["ada@sub.example.com", "ada@example.com@evil.test", "@example.com", "example.com", ""])
    expect(isOfDomain(email, domains)).toBe(false);
});

it("a person's name is the first text that there is, in one line and of at most 100 characters", () => {
  expect(personName(undefined, " ", 7, "Ada\u0000\n Lovelace ")).toBe("Ada Lovelace");
  expect(personName("\u200d", "ශ්‍රී")).toBe("ශ්‍රී");
  expect(Array.from(personName("😀".repeat(120))).length).toBe(100);
  expect(personName(null)).toBe("New person");
});

it.each([
  ["the group in a list", ["sales", "engineering"], true],
  ["the group as text", "engineering", true],
  ["the group among 10,000", [...Array.from({ length: 10_000 }, (_, of) => `g${of}`), "engineering"], true],
  ["another spelling", ["Engineering", "engineering "], false],
  ["a list in the list", [["engineering"]], false],
  ["an object", { engineering: true }, false],
  ["no group", [], false],
  ["no claim", undefined, false],
])("%s is looked for as it is written [T13]", (_, claim, isIn) => {
  expect(isInGroup(claim, ["engineering"])).toBe(isIn);
});

describe("who may sign up", () => {
  const options = { allowedDomains: ["example.com"], groups: null };
  const email = "ada@example.com";
  it.each([
    [{ email, email_verified: true }, null],
    [{ email, email_verified: "true" }, null],
    [{ email, email_verified: "True" }, null],
    [{ email, email_verified: 1 }, null],
    [{ email, xms_edov: "1" }, null],
    [{ email, xms_edov: true }, null],
    [{ email, email_verified: false, xms_edov: true }, "email_unverified"],
    [{ email, email_verified: "false" }, "email_unverified"],
    [{ email, email_verified: 0 }, "email_unverified"],
    [{ email, email_verified: "yes" }, "email_verified_unreadable"],
    [{ email }, "email_verified_missing"],
    [{ email_verified: true }, "email_missing"],
    [{ email: 7, email_verified: true }, "email_missing"],
    [{ email: "ada@other.example", email_verified: true }, "other_domain"],
  ])("%j", (claims, cause) => {
    expect(signUpRefusal(claims, options)).toBe(cause);
  });

  it("an issuer whose addresses count as verified may leave the claim out, but not deny it", () => {
    const trusting = { ...options, trustsAddresses: true };
    expect(signUpRefusal({ email }, trusting)).toBe(null);
    expect(signUpRefusal({ email, email_verified: false }, trusting)).toBe("email_unverified");
    expect(signUpRefusal({}, trusting)).toBe("email_missing");
  });

  it("mail goes to an address that the provider verified, or whose issuer counts as right", () => {
    const addresses = [
      [{ email, email_verified: true }, false],
      [{ email }, true],
      [{ email }, false],
      [{ email, email_verified: false }, true],
      [{ email: `${email}, eve@example.com`, email_verified: true }, false],
    ] as const;
    expect(addresses.map(([claims, trusts]) => verifiedAddress(claims, trusts))).toEqual([
      email,
      email,
      null,
      null,
      null,
    ]);
  });

  it("without domains, the groups say who does", () => {
    const groups = { claim: "groups", allowed: ["a"] };
    expect(signUpRefusal({}, { allowedDomains: [], groups })).toBe(null);
    expect(signUpRefusal({}, { allowedDomains: [], groups: null })).toBe("no_domains");
  });
});

describe("who is kept out by groups", () => {
  const groups = { claim: "groups", allowed: ["a"] };
  it.each([
    [{ groups: ["a"] }, null],
    [{ groups: ["b"] }, "not_in_a_group"],
    [{ groups: [] }, "not_in_a_group"],
    [{}, "groups_missing"],
    [{ _claim_names: { groups: "src1" }, _claim_sources: { src1: { endpoint: "x" } } }, "too_many_groups"],
    [{ _claim_names: { other: "src1" } }, "groups_missing"],
    [{ hasgroups: true }, "too_many_groups"],
    [{ hasgroups: "true" }, "too_many_groups"],
  ])("%j", (claims, cause) => {
    expect(groupRefusal(claims, groups)).toBe(cause);
    expect(groupRefusal(claims, null)).toBe(null);
  });
});

/** The settings of sign-in providers, and what refuses a start. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig, type Environment } from "../../src/settings/config.ts";
import { makeProviders } from "../../src/sign-in/providers.ts";
import { settingProblems } from "../support/settings.ts";

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "sign-in-"));
  writeFileSync(path.join(directory, "secret"), "  the secret\n");
  writeFileSync(path.join(directory, "empty"), "\n");
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const OIDC = {
  PLATFORM_OIDC_ISSUER: "https://sso.example.com/o/app/",
  PLATFORM_OIDC_CLIENT_ID: "platform",
  PLATFORM_OIDC_CLIENT_SECRET_FILE: "secret",
};
const GITHUB = {
  PLATFORM_GITHUB_LOGIN_CLIENT_ID: "Iv1.1",
  PLATFORM_GITHUB_LOGIN_SECRET_FILE: "secret",
};

const MONTH_MS = 30 * 86_400_000;

const read = (environment: Environment) => readConfig(environment, directory).signIn;
const problems = (environment: Environment) => settingProblems(environment, directory);

describe("sign-in providers", () => {
  it("are none without settings", () => {
    expect(read({})).toEqual({ oidc: null, github: null, signUp: "invited", tokenSignInMs: MONTH_MS });
    expect(makeProviders(read({}))).toEqual([]);
  });

  it("are those that are set, each with its label", () => {
    const both = { ...OIDC, ...GITHUB, PLATFORM_OIDC_ALLOWED_DOMAINS: "Example.com, example.org" };
    expect(read(both)).toEqual({
      oidc: {
        issuer: OIDC.PLATFORM_OIDC_ISSUER,
        clientId: "platform",
        secretFile: path.join(directory, "secret"),
        allowedDomains: ["example.com", "example.org"],
        groups: null,
      },
      github: { clientId: "Iv1.1", secretFile: path.join(directory, "secret"), organization: null },
      signUp: "invited",
      tokenSignInMs: MONTH_MS,
    });
    expect(read({ ...both, PLATFORM_TOKEN_SIGN_IN_MS: "3600000" }).tokenSignInMs).toBe(3_600_000);
    expect(makeProviders(read(both)).map(({ id, label }) => [id, label])).toEqual([
      ["oidc", "sso.example.com"],
      ["github", "GitHub"],
    ]);
  });

  it.each([
    ...Object.keys(OIDC).map((name) => [name, OIDC] as const),
    ...Object.keys(GITHUB).map((name) => [name, GITHUB] as const),
  ])("stop the start if %s is missing, with its name", (name, whole) => {
    const half = { ...whole, [name]: "" };
    expect(problems(half)).toEqual([
      expect.stringMatching(new RegExp(`^${name} is not set; PLATFORM_\\w+ needs it$`)),
    ]);
  });

  it("stop the start if the issuer is no https URL", () => {
    expect(problems({ ...OIDC, PLATFORM_OIDC_ISSUER: "http://sso.example.com" })).toEqual([
      'PLATFORM_OIDC_ISSUER is "http://sso.example.com"; expected an https URL, or http on loopback, without query and fragment',
    ]);
  });

  it.each([
    ["missing", "ENOENT"],
    ["empty", "is empty"],
  ])("stop the start if a secret's file is %s", (file, why) => {
    const { signIn } = readConfig({ ...GITHUB, PLATFORM_GITHUB_LOGIN_SECRET_FILE: file }, directory);
    expect(() => makeProviders(signIn)).toThrow(
      new RegExp(`^PLATFORM_GITHUB_LOGIN_SECRET_FILE names ${path.join(directory, file)}, which .*${why}`),
    );
  });
});

describe("groups", () => {
  const CLAIM = { PLATFORM_OIDC_GROUPS_CLAIM: "https://example.com/groups" };
  const ALLOWED = { PLATFORM_OIDC_ALLOWED_GROUPS: "Engineering, data platform" };

  it("are read with their claim, and are a list of who may sign up", () => {
    const both = { ...OIDC, ...CLAIM, ...ALLOWED, PLATFORM_SIGN_UP: "allowed" };
    expect(read(both).oidc?.groups).toEqual({
      claim: "https://example.com/groups",
      allowed: ["Engineering", "data platform"],
    });
  });

  it("stop the start if the claim or the groups are missing [T13]", () => {
    expect(problems({ ...OIDC, ...CLAIM })).toEqual([
      "PLATFORM_OIDC_ALLOWED_GROUPS is not set; PLATFORM_OIDC_GROUPS_CLAIM needs it",
    ]);
    expect(problems({ ...OIDC, ...ALLOWED })).toEqual([
      "PLATFORM_OIDC_GROUPS_CLAIM is not set; PLATFORM_OIDC_ALLOWED_GROUPS needs it",
    ]);
  });
});

describe("signing up", () => {
  it("needs a list of domains or an organization, of a provider that is set [T13]", () => {
    const allowed = { PLATFORM_SIGN_UP: "allowed" };
    const refusal = [
      expect.stringMatching(/^PLATFORM_SIGN_UP is "allowed"; expected also PLATFORM_OIDC_ALLOWED_DOMAINS/),
    ];
    for (const open of [
      {},
      OIDC,
      GITHUB,
      { PLATFORM_OIDC_ALLOWED_DOMAINS: "example.com" },
      { PLATFORM_GITHUB_LOGIN_ORG: "acme" },
    ])
      expect(problems({ ...allowed, ...open })).toEqual(refusal);
    expect(read({ ...allowed, ...OIDC, PLATFORM_OIDC_ALLOWED_DOMAINS: "example.com" }).signUp).toBe(
      "allowed",
    );
    expect(read({ ...allowed, ...GITHUB, PLATFORM_GITHUB_LOGIN_ORG: "acme" }).signUp).toBe("allowed");
  });
});

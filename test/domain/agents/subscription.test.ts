import { describe, expect, it } from "vitest";
import {
  launchedSubscription,
  renewalFault,
  SUBSCRIPTION_BYTES_MAX,
  subscriptionFault,
  subscriptionSecrets,
  usedSubscription,
} from "../../../src/domain/agents/subscription.ts";
import { ACP } from "../../../src/domain/runtimes/acp.ts";
import { CLAUDE_CODE } from "../../../src/domain/runtimes/claude-code.ts";
import { CODEX } from "../../../src/domain/runtimes/codex.ts";
import { GEMINI } from "../../../src/domain/runtimes/gemini.ts";
import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";
import { isHistoryPath } from "../../../src/domain/runtimes/history.ts";
import type { Runtime, RuntimeSubscription } from "../../../src/domain/runtimes/runtime.ts";
import { withCommand } from "../../../src/domain/runtimes/runtimes.ts";

const NOW = Date.UTC(2026, 10, 30);
const of = ({ subscription }: Runtime): RuntimeSubscription => {
  if (subscription === null) throw new Error("it has none");
  return subscription;
};
const TOKEN = "sk-ant-oat01-canary";
const auth = (fields: object = {}, last_refresh: unknown = new Date(NOW - 1000).toISOString()): string =>
  JSON.stringify({
    last_refresh,
    tokens: { access_token: "access-canary-of-a-file", refresh_token: "r", account_id: "acc-1", ...fields },
  });

const used = (record: Runtime, model: string | null, secretNames: readonly string[] = []) =>
  usedSubscription({ runtime: withCommand(record, record.command ?? []) }, model, {
    secretNames,
    kept: ["claude-code"],
  });

describe("the subscription that an agent uses", () => {
  it("is that of its runtime, without a model or with one of the runtime's own", () => {
    expect(used(CLAUDE_CODE, null)).toBe(CLAUDE_CODE.subscription);
    expect(used(CLAUDE_CODE, "opus")).toBe(CLAUDE_CODE.subscription);
    for (const record of [CODEX, OPENCODE, ACP]) expect(used(record, null)).toBe(null);
  });

  it("gives way to a model of a provider, and to a key that is a secret of the project", () => {
    expect(used(CLAUDE_CODE, "acme/large")).toBe(null);
    expect(used(CLAUDE_CODE, null, ["ANTHROPIC_API_KEY"])).toBe(null);
  });
});

describe("what a person saves", () => {
  it("is the token as its command prints it", () => {
    expect(subscriptionFault(of(CLAUDE_CODE), TOKEN)).toBe(null);
    for (const wrong of ["sk-ant-api03-key", `${TOKEN}\nmore`, `${TOKEN} x`, "{}"])
      expect(subscriptionFault(of(CLAUDE_CODE), wrong)).toContain("claude setup-token");
  });

  it("is the file of a sign-in, and its fault names what is missing", () => {
    expect(subscriptionFault(of(CODEX), auth())).toBe(null);
    expect(subscriptionFault(of(GEMINI), '{"access_token":"a","refresh_token":"r"}')).toBe(null);
    expect(subscriptionFault(of(CODEX), "no json")).toContain("~/.codex/auth.json, which is a JSON object");
    expect(subscriptionFault(of(CODEX), "[]")).toContain("a JSON object");
    expect(subscriptionFault(of(CODEX), '{"OPENAI_API_KEY":"sk-1","tokens":null}')).toContain(
      "it has no tokens.access_token",
    );
    expect(subscriptionFault(of(CODEX), auth({ refresh_token: "" }))).toContain("tokens.refresh_token");
    expect(subscriptionFault(of(CODEX), auth({ more: "x".repeat(SUBSCRIPTION_BYTES_MAX) }))).toContain(
      "64 KiB",
    );
  });

  it("is never a file of a runtime's own record, which is saved", () => {
    for (const { history, subscription } of [CLAUDE_CODE, CODEX, GEMINI])
      for (const file of [subscription?.file?.path ?? "x", ...(subscription?.traces ?? [])])
        expect(isHistoryPath(file, history ?? [], "0123456789ab")).toBe(false);
  });
});

const fault = (given: string, kept = auth()) => renewalFault(of(CODEX), { kept, given, now: NOW });
const gemini = (expiry_date: number) =>
  JSON.stringify({ access_token: "a", refresh_token: "r", expiry_date });

describe("a file that a sandbox gives back", () => {
  it("is taken if it is newer, and of two the newer one stays", () => {
    const newer = auth({ access_token: "another" }, new Date(NOW).toISOString());
    expect(fault(newer)).toBe(null);
    expect(fault(auth(), newer)).toContain("as new");
    expect(fault(newer, newer)).toContain("as new");
    expect(renewalFault(of(GEMINI), { kept: gemini(NOW), given: gemini(NOW + 3_600_000), now: NOW })).toBe(
      null,
    );
  });

  it("is not taken if it is of another account, malformed, or says that it is of the future", () => {
    const later = new Date(NOW).toISOString();
    expect(fault(auth({ account_id: "acc-2" }, later))).toContain("another account");
    expect(fault("{}")).toContain("has no tokens");
    expect(fault(auth({}, "2999-01-01T00:00:00Z"))).toContain("future");
    expect(fault(auth({}, "no date"))).toContain("as new");
    expect(renewalFault(of(CLAUDE_CODE), { kept: TOKEN, given: TOKEN, now: NOW })).toContain(
      "does not renew",
    );
  });
});

it("masks the whole and each long text of a file", () => {
  expect(subscriptionSecrets(TOKEN)).toEqual([TOKEN]);
  expect(subscriptionSecrets(auth())).toContain("access-canary-of-a-file");
});

it("is launched as a variable or a file, with the settings that its runtime then needs", () => {
  const agent = { variables: { ANTHROPIC_MODEL: "opus" }, files: { "gemini-settings.json": "of a key" } };
  expect(launchedSubscription(of(CLAUDE_CODE), TOKEN, agent)).toMatchObject({
    variable: "CLAUDE_CODE_OAUTH_TOKEN",
    file: null,
    variables: { ANTHROPIC_MODEL: "opus" },
  });
  const google = launchedSubscription(of(GEMINI), "{}", agent);
  expect(google).toMatchObject({ variable: null, file: ".gemini/oauth_creds.json", isRenewed: true });
  expect(google.files["gemini-settings.json"]).toContain("oauth-personal");
});

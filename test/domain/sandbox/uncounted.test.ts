import { describe, expect, it } from "vitest";
import { CLAUDE_CODE } from "../../../src/domain/runtimes/claude-code.ts";
import { CODEX } from "../../../src/domain/runtimes/codex.ts";
import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";
import { withCommand } from "../../../src/domain/runtimes/runtimes.ts";
import { type CallingSession, uncountedReason } from "../../../src/domain/sandbox/uncounted.ts";

const acme = { owner: "account", name: "acme", kind: "anthropic", models: ["large"] } as const;

const reasonOf = (fields: Partial<CallingSession> = {}): string | null =>
  uncountedReason({
    agent: { runtime: withCommand(OPENCODE, ["opencode"]), model: null },
    agentModel: null,
    secretNames: ["DATABASE_URL"],
    providers: [acme],
    kept: [],
    bringsModel: false,
    ...fields,
  });

describe("a session where a limit of spend applies", () => {
  it("is counted if all models that it can use belong to the account or to the gateway", () => {
    expect(reasonOf()).toBe(null);
    expect(reasonOf({ providers: [], agentModel: "managed/default" })).toBe(null);
    const claude = { runtime: withCommand(CLAUDE_CODE, CLAUDE_CODE.command ?? []), model: "opus" };
    expect(reasonOf({ agent: claude })).toBe(null);
  });

  it("is not with a key of a provider in its sandbox, whatever model it names", () => {
    expect(reasonOf({ secretNames: ["OPENAI_API_KEY"], agentModel: "acme/large" })).toContain(
      "OPENAI_API_KEY",
    );
    const claude = { runtime: withCommand(CLAUDE_CODE, CLAUDE_CODE.command ?? []), model: null };
    expect(reasonOf({ agent: claude, secretNames: ["CLAUDE_CODE_OAUTH_TOKEN"] })).toContain(
      "CLAUDE_CODE_OAUTH_TOKEN",
    );
  });

  it("is not with a provider of its repository, a hosted model, or a runtime that uses no provider of the account", () => {
    expect(reasonOf({ bringsModel: true })).toContain("opencode.json");
    expect(reasonOf({ agentModel: "opencode/free" })).toContain("opencode/free");
    const codex = { runtime: withCommand(CODEX, CODEX.command ?? []), model: null };
    expect(reasonOf({ agent: codex })).toContain("the runtime codex uses no model provider");
  });
});

import * as Result from "effect/Result";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBlank } from "../../../src/domain/text.ts";
import { parseManifest } from "../../../src/domain/manifest/manifest.ts";
import { changeManifest } from "../../../src/domain/manifest/edit.ts";
import type { TriggerWish } from "../../../src/domain/manifest/trigger-lines.ts";

const NIGHTLY: TriggerWish = { type: "cron", slug: "nightly", cron: "0 30 2 * * *", prompt: "Update." };
const PUSHED: TriggerWish = {
  type: "webhook",
  slug: "on-push",
  secret_env: "HOOK_SECRET",
  prompt: "Review {{ body.after }}",
};

const added = (file: string, wish: TriggerWish) => {
  const made = changeManifest(Buffer.from(file), { kind: "add", wish });
  if (Result.isFailure(made)) expect.fail(JSON.stringify(made.failure));
  return { text: made.success, manifest: parseManifest(Buffer.from(made.success)) };
};
const refusal = (file: string, wish: TriggerWish) => {
  const made = changeManifest(Buffer.from(file), { kind: "add", wish });
  return Result.isFailure(made) ? made.failure : expect.fail("it was added");
};
const faultsAt = (file: string, wish: TriggerWish) => {
  const refused = refusal(file, wish);
  return refused.kind === "wish" ? refused.faults.map(({ path }) => path) : expect.fail(refused.kind);
};

describe("a trigger's lines", () => {
  it("begin a manifest, with the name of the secret declared", () => {
    const { text, manifest } = added("", { ...PUSHED, events: ["push"], branches: ["main", "v/*"] });
    expect(text).toBe(`[env]
optional = ["HOOK_SECRET"]

[[triggers]]
slug = "on-push"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "Review {{ body.after }}"

[webhooks.on-push]
events = ["push"]
branches = ["main", "v/*"]
`);
    expect(manifest.errors).toEqual([]);
    expect(manifest.env.optional).toEqual(["HOOK_SECRET"]);
  });

  it("are added at the end of a file, whose other entries, comments and errors stay", () => {
    const file = `# ours\n[env]\noptional = [ "A" ] # names\n[[triggers]]\nslug = "old"\ntype = "cron"\ncron = "bad"\nprompt = "x"`;
    const { text, manifest } = added(file, PUSHED);
    expect(text.startsWith(file.replace('[ "A" ]', '["HOOK_SECRET",  "A" ]'))).toBe(true);
    expect(manifest.errors.map(({ path }) => path)).toEqual(["triggers[0].cron"]);
    expect(manifest.triggers.map(({ slug }) => slug)).toEqual(["on-push"]);
    expect(added(text, NIGHTLY).manifest.triggers.map(({ slug }) => slug)).toEqual(["on-push", "nightly"]);
  });

  it("leave a list of names alone that cannot be changed safely", () => {
    const file = `env = { optional = ["A"] }\n`;
    expect(added(file, PUSHED).text.startsWith(file)).toBe(true);
  });

  it("hold every prompt that a manifest can hold, as it was typed", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 200 }), (prompt) => {
        fc.pre(!isBlank(prompt) && prompt.isWellFormed());
        const { manifest } = added("", { ...NIGHTLY, prompt });
        expect(manifest.triggers.map((trigger) => trigger.prompt)).toEqual([prompt]);
      }),
      { numRuns: 25 },
    );
    const hostile = 'a\n"""\n[[triggers]]\nslug = "\\u0022"\r\n\t\\';
    expect(added("", { ...NIGHTLY, prompt: hostile }).manifest.triggers).toHaveLength(1);
  });

  it("name the fields that are missing or wrong", () => {
    expect(faultsAt("", { type: "cron" })).toEqual(["slug", "prompt", "cron"]);
    expect(faultsAt("", { type: "webhook", slug: "A b\n]", prompt: " ", events: ["push"] })).toContain(
      "slug",
    );
    expect(faultsAt("", { ...NIGHTLY, cron: "* * *", timezone: "Berlin", agent: "../x" })).toEqual([
      "agent",
      "cron",
      "timezone",
    ]);
    expect(faultsAt("", { ...PUSHED, secret_env: "x", branches: [""] })).toEqual(["secret_env"]);
    expect(faultsAt("", { ...PUSHED, branches: [""] })).toEqual(["branches"]);
    expect(faultsAt("", { ...NIGHTLY, secret_env: "X" })).toEqual(["secret_env"]);
    expect(faultsAt(added("", NIGHTLY).text, NIGHTLY)).toEqual(["slug"]);
  });

  it("are refused where the file has a mistake, or would change by them", () => {
    const kinds = [
      "[[triggers\n",
      `triggers = [{ slug = "a", type = "cron", cron = "0 0 0 * * *", prompt = "x" }]\n`,
      `[webhooks.nightly]\nevents = ["push"]\n`,
    ].map((file) => refusal(file, { ...NIGHTLY }).kind);
    expect(kinds).toEqual(["file", "file", "file"]);
    expect(refusal("\n[[triggers\n", NIGHTLY)).toMatchObject({ message: expect.stringContaining("line 2") });
  });
});

import * as Result from "effect/Result";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBlank } from "../../../src/domain/text.ts";
import { changeManifest, type TriggerChange } from "../../../src/domain/manifest/edit.ts";
import { parseManifest } from "../../../src/domain/manifest/manifest.ts";
import type { TriggerWish } from "../../../src/domain/manifest/trigger-lines.ts";

const FILE = `# What runs here.

[env]
optional = ["HOOK_SECRET"]  # names

# Every night.
[[triggers]]
slug = "nightly"
type = "cron"
cron = "0 30 2 * * *"            # second minute hour
timezone = "Europe/Berlin"
prompt = """
Update.
# not a comment
[[triggers]]"""

# On each push,
# also of tags.
  [[triggers]]
  slug = 'on-push'
  type = "webhook" # signed
  secret_env = "HOOK_SECRET"
  prompt = '''
Review {{ body.after }}'''

# Few of them.
[webhooks.on-push]
events = ["push",  # commits
  "create"]
own_pushes = true

[[triggers]]
slug = "last"
type = "cron"
cron = "0 0 9 * * MON"
prompt = "Report."`;

const NIGHTLY: TriggerWish = {
  slug: "nightly",
  type: "cron",
  cron: "0 30 2 * * *",
  timezone: "Europe/Berlin",
  prompt: "Update.\n# not a comment\n[[triggers]]",
};
const PUSHED: TriggerWish = {
  slug: "on-push",
  type: "webhook",
  secret_env: "HOOK_SECRET",
  prompt: "Review {{ body.after }}",
  events: ["push", "create"],
};

const changed = (file: string, change: TriggerChange): string => {
  const made = changeManifest(Buffer.from(file), change);
  return Result.isSuccess(made) ? made.success : expect.fail(JSON.stringify(made.failure));
};
const refused = (file: string, change: TriggerChange) => {
  const made = changeManifest(Buffer.from(file), change);
  return Result.isFailure(made) ? made.failure : expect.fail("it was changed");
};
const replaced = (file: string, wish: TriggerWish) =>
  changed(file, { kind: "replace", slug: wish.slug ?? "", wish });
const switched = (file: string, slug: string, enabled: boolean) =>
  changed(file, { kind: "switch", slug, enabled });
const removed = (file: string, slug: string) => changed(file, { kind: "remove", slug });

/** The fields at fault. */
const paths = (slug: string, wish: TriggerWish) => {
  const refusal = refused(FILE, { kind: "replace", slug, wish });
  return refusal.kind === "wish" ? refusal.faults.map(({ path }) => path) : refusal.kind;
};

/** The lines that only one of the two texts has, in order. */
const difference = (before: string, after: string): readonly string[] => {
  const [old, made] = [before.split("\n"), after.split("\n")];
  return [
    ...old.filter((line) => !made.includes(line)).map((line) => `- ${line}`),
    ...made.filter((line) => !old.includes(line)).map((line) => `+ ${line}`),
  ];
};

describe("a trigger in the manifest", () => {
  it.each<[string, TriggerWish, readonly string[]]>([
    [
      "a value, beside its comment",
      { ...NIGHTLY, cron: "0 0 3 * * *" },
      [
        '- cron = "0 30 2 * * *"            # second minute hour',
        '+ cron = "0 0 3 * * *"            # second minute hour',
      ],
    ],
    ["a field that was absent", { ...NIGHTLY, agent: "tidy" }, ['+ agent = "tidy"']],
    [
      "a field that is left out",
      { ...NIGHTLY, timezone: "UTC" },
      ['- timezone = "Europe/Berlin"', '+ timezone = "UTC"'],
    ],
    [
      "a text of several lines",
      { ...NIGHTLY, prompt: "Update." },
      ['- prompt = """', "- Update.", "- # not a comment", '- [[triggers]]"""', '+ prompt = "Update."'],
    ],
    ["an indented entry", { ...PUSHED, name: "On push" }, ['+   name = "On push"']],
    [
      "a condition of several lines",
      { ...PUSHED, events: ["push"] },
      ['- events = ["push",  # commits', '-   "create"]', '+ events = ["push"]'],
    ],
    [
      "a new condition",
      { ...PUSHED, branches: ["main"], if: { "body.forced": false } },
      ['+ branches = ["main"]', '+ if = { "body.forced" = false }'],
    ],
    [
      "conditions, except what only the file says",
      { ...PUSHED, events: [] },
      ['- events = ["push",  # commits', '-   "create"]'],
    ],
    [
      "the name of a secret, which is declared",
      { ...PUSHED, secret_env: "OTHER" },
      [
        '- optional = ["HOOK_SECRET"]  # names',
        '-   secret_env = "HOOK_SECRET"',
        '+ optional = ["OTHER", "HOOK_SECRET"]  # names',
        '+   secret_env = "OTHER"',
      ],
    ],
  ])("changes %s, and no other line", (_what, wish, lines) => {
    const made = replaced(FILE, wish);
    expect(difference(FILE, made)).toEqual(lines);
    const before = parseManifest(Buffer.from(FILE));
    const after = parseManifest(Buffer.from(made));
    expect(after.errors).toEqual([]);
    const others = ({ triggers }: typeof before) => triggers.filter(({ slug }) => slug !== wish.slug);
    expect(others(after)).toEqual(others(before));
  });

  it("says what is wanted after a change, with what a wish cannot say", () => {
    const made = replaced(FILE, { ...PUSHED, prompt: 'A "b"\nc', events: ["push"] });
    expect(parseManifest(Buffer.from(made)).triggers[1]).toMatchObject({
      prompt: 'A "b"\nc',
      filter: { events: ["push"], includes: ["own_push"] },
    });
  });

  it("gets its table of conditions below it, and loses it with the last one", () => {
    const wish: TriggerWish = { ...PUSHED, events: [], prompt: "x" };
    const file = `[env]\noptional = ["HOOK_SECRET"]\n\n${changed("", { kind: "add", wish }).split("\n\n")[1] ?? ""}\n[[triggers]]\nslug = "z"\ntype = "cron"\ncron = "0 0 0 * * *"\nprompt = "z"\n`;
    const made = replaced(file, { ...wish, branches: ["main"] });
    expect(made).toContain(
      'prompt = "x"\n\n[webhooks.on-push]\nbranches = ["main"]\n\n[[triggers]]\nslug = "z"',
    );
    expect(replaced(made, wish).replaceAll(/\n+/g, "\n")).toBe(file.replaceAll(/\n+/g, "\n"));
  });

  it.each(["nightly", "on-push", "last"])(
    "is paused in one line, and resumed to the former text: %s",
    (slug) => {
      const paused = switched(FILE, slug, false);
      expect(difference(FILE, paused).map((line) => line.replace(/ +/, " "))).toEqual(["+ enabled = false"]);
      const { triggers } = parseManifest(Buffer.from(paused));
      expect(triggers.filter(({ enabled }) => !enabled).map((trigger) => trigger.slug)).toEqual([slug]);
      expect(switched(paused, slug, true)).toBe(FILE);
    },
  );

  it.each<[string, string]>([
    ["nightly", FILE.replace(/# Every night[^]*?"""\n[^]*?"""\n\n/, "")],
    ["on-push", FILE.replace(/# On each push[^]*?own_pushes = true\n\n/, "")],
    ["last", FILE.replace(/\n\n\[\[triggers\]\]\nslug = "last"[^]*/, "\n")],
  ])("is removed with its conditions and the comment above it: %s", (slug, left) => {
    expect(removed(FILE, slug)).toBe(left);
  });

  it("leaves a comment at the file's beginning, and one that an empty line sets apart", () => {
    const entry = `[[triggers]]\nslug = "a"\ntype = "cron"\ncron = "0 0 0 * * *"\nprompt = "x"\n`;
    expect(removed(`# ours\n${entry}`, "a")).toBe("# ours\n");
    expect(removed(`[env]\n# apart\n\n${entry}\n# end`, "a")).toBe("[env]\n# apart\n\n# end");
    expect(removed(entry, "a")).toBe("");
    const quotes = entry.replace('"x"', `"""\\" x""""" # [`);
    expect(removed(quotes + entry.replace('"a"', '"b"'), "a")).toBe(entry.replace('"a"', '"b"'));
  });

  it("is removed with conditions of every form", () => {
    const entry = `[[triggers]]\nslug = "on-push"\ntype = "webhook"\nsecret_env = "S"\nprompt = "x"\n`;
    const forms = [
      `webhooks.on-push.events = ["push"]\n`,
      `[webhooks]\n"on-push" = { events = ["push"] }\n`,
      `[webhooks.'on-push'.if]\n"body.x" = 1\n`,
      `[webhooks]\non-push.events = ["push"]\n`,
    ];
    for (const form of forms) {
      const made = form.startsWith("webhooks") ? `${form}${entry}` : `${entry}${form}`;
      const after = parseManifest(Buffer.from(removed(`${made}`, "on-push")));
      expect([after.triggers, after.errors]).toEqual([[], []]);
    }
  });

  it("keeps the line ends of a file from Windows", () => {
    const file = FILE.replaceAll("\n", "\r\n");
    const paused = switched(file, "on-push", false);
    expect(paused).toContain('type = "webhook" # signed\r\n  enabled = false\r\n');
    expect(switched(paused, "on-push", true)).toBe(file);
    expect(replaced(file, { ...NIGHTLY, agent: "tidy" })).toBe(
      file.replace('"Europe/Berlin"\r\n', '"Europe/Berlin"\r\nagent = "tidy"\r\n'),
    );
    expect(removed(file, "last").endsWith("own_pushes = true\r\n")).toBe(true);
    const added = changed(file, { kind: "add", wish: { ...NIGHTLY, slug: "other" } });
    expect(added.startsWith(`${file}\r\n\r\n[[triggers]]\r\nslug = "other"\r\n`)).toBe(true);
  });

  it("is refused where its form cannot be changed safely", () => {
    const inline = `triggers = [{ slug = "a", type = "cron", cron = "0 0 0 * * *", prompt = "x" }]\n`;
    const table = `webhooks = { on-push = { events = ["push"] } }\n[[triggers]]\nslug = "on-push"\ntype = "webhook"\nsecret_env = "S"\nprompt = "x"\n`;
    for (const [file, slug] of [
      [inline, "a"],
      [table, "on-push"],
      ["[[triggers\n", "a"],
    ] as const)
      expect(refused(file, { kind: "remove", slug })).toMatchObject({ kind: "file" });
    const deep = `x.${"a.".repeat(100_000)}a = 1\n${FILE}`;
    expect(refused(deep, { kind: "remove", slug: "last" })).toMatchObject({ kind: "file" });
    expect(refused(FILE, { kind: "remove", slug: "lost" })).toEqual({ kind: "unknown" });
    expect(refused(FILE, { kind: "switch", slug: "last", enabled: true })).toEqual({ kind: "same" });
    expect(refused(FILE, { kind: "replace", slug: "nightly", wish: NIGHTLY })).toEqual({ kind: "same" });
  });

  it("is not changed into another one, and not into one with a mistake", () => {
    expect(paths("nightly", { ...NIGHTLY, slug: "other" })).toEqual(["slug"]);
    expect(paths("nightly", { ...PUSHED, slug: "nightly" })).toEqual(["type"]);
    expect(paths("nightly", { ...NIGHTLY, cron: "* * *", prompt: "" })).toEqual(["prompt", "cron"]);
    expect(paths("on-push", { ...PUSHED, if: { "head.x": 1 } })).toEqual(["if"]);
  });

  it("leaves no trace when it is added and removed again, whatever its prompt", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 200 }), (prompt) => {
        fc.pre(!isBlank(prompt) && prompt.isWellFormed());
        const wish: TriggerWish = { ...PUSHED, slug: "a-b", prompt };
        const added = changed(FILE, { kind: "add", wish });
        const next = replaced(added, { ...wish, prompt: `${prompt}!`, if: { "body.x": prompt } });
        expect(parseManifest(Buffer.from(next)).errors).toEqual([]);
        expect(removed(next, "a-b")).toBe(`${FILE}\n`);
      }),
      { numRuns: 25 },
    );
  });
});

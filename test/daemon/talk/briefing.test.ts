/** What an agent hears of the saved work of its session's former sandboxes. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import type { Restoring } from "../../../daemon/adapters/adapter.ts";
import { type BriefingParts, recallFormer } from "../../../daemon/agent/briefing.ts";

const RESTORED = { wip: null, commits: 0, refs: [], files: 2, renamed: [], skipped: [], error: null };
const SESSION = { sessionId: "session", agentName: "default", model: null };

interface Former {
  readonly what: string;
  readonly wip?: string;
  readonly lacks?: string;
  readonly restored?: BriefingParts["report"]["restored"];
  readonly note: RegExp | null;
}

const noteOf = ({ wip, lacks, restored = null }: Former) => {
  const launch = { ...(wip !== undefined && { wip }), ...(lacks !== undefined && { wipLacks: lacks }) };
  const parts = { settings: { launch }, report: { restored } } as BriefingParts;
  return Effect.map(recallFormer(parts, SESSION), (recalled) => recalled?.note ?? null);
};

it.effect.each<Former>([
  { what: "without saved work", note: null },
  { what: "with saved work that was not wanted", wip: "c0ffee", note: /without its saved work/ },
  { what: "the same, while it has no commit", wip: "", note: /without its saved work/ },
  {
    what: "with saved work that came back",
    wip: "",
    restored: RESTORED,
    note: /restored: .* 2 changed files/,
  },
  { what: "whose work was all pushed", wip: "", restored: { ...RESTORED, files: 0 }, note: null },
  {
    what: "with a path that did not come back",
    wip: "",
    restored: { ...RESTORED, skipped: [{ path: "a", reason: "in_the_way" }] },
    note: /Not restored: a \(something else is in its place\)/,
  },
  {
    what: "with an older save elsewhere",
    wip: "",
    restored: { ...RESTORED, notes: ["The save of then is not here."] },
    note: /2 changed files.* The save of then is not here\./,
  },
  {
    what: "with work that no save has",
    lacks: "It is lost.",
    note: /^Not all unpushed work is saved: It is lost/,
  },
  {
    what: "with both",
    wip: "",
    lacks: "It is lost.",
    restored: RESTORED,
    note: /restored: .* 2 changed files.* It is lost/,
  },
])("a session $what", (former) =>
  Effect.gen(function* () {
    const said = yield* noteOf(former);
    if (former.note === null) expect(said).toBeNull();
    else expect(said).toMatch(former.note);
  }),
);

const HISTORY = {
  summary: null,
  items: [
    {
      kind: "message",
      role: "user",
      status: "completed",
      text: "And the docs?",
      files: [],
      tool: null,
      plan: [],
      model: null,
      agent: null,
      usage: null,
      error: null,
      created_at: 5,
      completed_at: 5,
    },
  ],
} as const;

it.effect.each<{ what: string; begun?: string; restoring: Restoring; note: RegExp; text: RegExp }>([
  {
    what: "has its own record",
    restoring: { outcome: "restored", until: 5 },
    note: /has the whole conversation so far/,
    text: /what people ask next\.$/,
  },
  {
    what: "has an older record",
    restoring: { outcome: "restored", until: 4 },
    note: /has the conversation so far, and a summary of what came after/,
    text: /A person: And the docs\?$/,
  },
  {
    what: "refuses its record",
    restoring: { outcome: "failed", why: "refused", message: "" },
    note: /has a summary .*, because its runtime did not take the conversation/,
    text: /^The summary\.$/,
  },
  {
    what: "has no record",
    restoring: { outcome: "failed", why: "missing", message: "" },
    note: /has a summary .*, because its runtime's own record of the conversation did not come back/,
    text: /^The summary\.$/,
  },
  {
    what: "begins from another session",
    begun: "Rename it",
    restoring: { outcome: "restored" },
    note: /^The session began from the session "Rename it"\. The agent has the whole conversation up to there/,
    text: /^This session began from another one, "Rename it"\. You have the conversation of that one up to there\./,
  },
  {
    what: "begins from another session, and can get a summary only",
    begun: "Rename it",
    restoring: { outcome: "failed", why: "missing", message: "" },
    note: /^The session began .* has a summary of the conversation up to there, not the conversation itself\.$/,
    text: /^The summary\.$/,
  },
])("an agent that $what", ({ begun, restoring, note, text }) =>
  Effect.gen(function* () {
    const recap = { text: "The summary.", history: HISTORY, agent: null, model: null, begun };
    const parts = {
      settings: { launch: { recap } },
      adapter: { restore: () => Effect.succeed(restoring) },
      log: () => undefined,
      report: { restored: null },
    } as unknown as BriefingParts;
    const recalled = yield* recallFormer(parts, SESSION);
    expect(recalled?.note).toMatch(note);
    expect(recalled?.text).toMatch(text);
  }),
);

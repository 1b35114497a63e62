/** What an agent hears of the saved work of its session's former sandboxes. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { type BriefingParts, recallFormer } from "../../daemon/agent/briefing.ts";

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

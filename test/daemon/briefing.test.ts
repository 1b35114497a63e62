/** What an agent hears of the saved work of its session's former sandboxes. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { type BriefingParts, recallFormer } from "../../daemon/agent/briefing.ts";

const RESTORED = { wip: null, commits: 0, refs: [], files: 2, renamed: [], skipped: [], error: null };
const SESSION = { sessionId: "session", agentName: "default", model: null };

const noteWith = (wip: string | undefined, restored: BriefingParts["report"]["restored"]) =>
  Effect.map(
    recallFormer(
      { settings: { launch: wip === undefined ? {} : { wip } }, report: { restored } } as BriefingParts,
      SESSION,
    ),
    (recalled) => recalled?.note ?? null,
  );

it.effect.each([
  { what: "without saved work", wip: undefined, restored: null, note: null },
  {
    what: "with saved work that was not wanted",
    wip: "c0ffee",
    restored: null,
    note: /without its saved work/,
  },
  { what: "the same, while it has no commit", wip: "", restored: null, note: /without its saved work/ },
  {
    what: "with saved work that came back",
    wip: "",
    restored: RESTORED,
    note: /restored: .* 2 changed files/,
  },
])("a session $what", ({ wip, restored, note }) =>
  Effect.gen(function* () {
    const said = yield* noteWith(wip, restored);
    if (note === null) expect(said).toBeNull();
    else expect(said).toMatch(note);
  }),
);

import { expect, it } from "vitest";
import { uncountedLines } from "../../../src/features/spend/commands.ts";

it("names the running sessions that a new limit does not count, with the command that stops each", () => {
  const session = { project_id: "p-1", id: "s-1", name: "Docs", reason: "It has a key of its own." };
  expect(uncountedLines({ uncounted_sessions: [] })).toBe("");
  const lines = uncountedLines({ uncounted_sessions: [session, { ...session, id: "s-2", name: null }] });
  expect(lines).toContain("The limit does not count 2 running sessions, which go on:");
  expect(lines).toMatch(/Docs +platform sessions stop s-1 --project p-1 +It has a key of its own\./);
  expect(lines).toMatch(/- +platform sessions stop s-2 /);
});

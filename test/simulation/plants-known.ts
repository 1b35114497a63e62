/** Runs planted bugs with their known seeds, in a process of its own. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { PlantResult } from "./plants-main.ts";

const program = fileURLToPath(new URL("plants-main.ts", import.meta.url));

/**
 * One process runs all of them: a start of Node costs more than a run.
 *
 * @param mode as plants-main.ts has it.
 * @returns what became of each bug, by name.
 */
export const runKnown = async (
  mode: "known" | "found",
  names: readonly string[],
): Promise<ReadonlyMap<string, PlantResult>> => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, mode, "1", "1", ...names], {
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  const results = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as PlantResult);
  return new Map(results.map((result) => [result.name, result]));
};

/** The checkers that saw a bug: the invariants' names, with which violations begin. */
export const checkersOf = ({ violations }: PlantResult): readonly string[] =>
  violations.map((violation) => violation.slice(0, violation.indexOf(" ")));

/** What `npm test` plants: for every checker that sees a bug one that is found quickly. The deep tests check it (plants.test.ts). */
export const SAMPLE = [
  "counter-mended-without-the-booting", // I1
  "fired-delivery-retried", // I2
  "directory-keeps-the-old", // I3
  "ping-taken-for-an-event", // I4
  "filtered-delivery-retried", // I5
  "deleted-restarts", // I6
  "sandbox-lost-not-reported", // I7
  "branch-after-sandbox", // I8
  "teardown-forgotten-at-stop", // I9
  "fires-overtake-the-queue", // I13
  "last-fired-moves-back", // I14
  "git-passwords-outlive-their-session", // I15
  "secrets-logged-as-they-are-sent", // I16
  "merge-with-a-lost-answer-taken-for-refused", // I17
  "sandbox-fence-forgotten", // I18
  "poll-without-a-pause", // I19
  "log-read-at-every-start", // I21
  "reason-of-failure-dropped", // I22
  "missed-instants-all-fired-late", // C13
  "stale-project-not-noticed", // C18
  "name-taken-that-is-not-text", // G12
  // src/store/ports/conversations.ts N1 to N3
  "reports-passed-over",
  "ended-sandboxes-write",
  "closed-items-reopened",
  // src/machines/conversation.ts M1 to M7
  "newest-message-first",
  "message-sent-during-a-turn",
  "later-turns-not-told",
  "message-does-not-resume-the-queue",
  "interrupt-of-a-turn-ends-the-next",
  "request-answered-twice",
  "trigger-waits-for-a-person",
  "accepted-message-sent-under-another-id", // src/domain/steering.ts Y1
  "sent-message-taken-back", // R02
  // src/machines/approval.ts B1, B2 and B5
  "second-decision-counts",
  "approved-call-made-by-each-node",
  "result-of-a-caller-that-left-kept-back",
  // sandboxes that wait: E17, E18, src/store/ports/warm-sandboxes.ts W3, src/duties/warm-pool.ts K3
  "waiting-sandbox-given-twice",
  "outdated-waiting-sandbox-taken",
  "claimed-sandbox-left-by-its-session",
  "one-more-waits-than-there-are-places",
  // src/duties/sweeper.ts Z1
  "idle-while-at-work",
] as const;

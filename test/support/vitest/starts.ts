/**
 * Counts what a run's tests start that costs more than memory: services, databases, daemons, sandboxes and browsers. Each start is
 * an empty file in one directory, so that all processes of a run count together, under any user. `starts.json` has the
 * committed numbers, and a whole run that starts more than them fails (reporter.ts). So a test file that starts a service of its
 * own is seen when it is added.
 */
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/**
 * The kinds that are counted. A service in the test's process and one in a process of its own count alike. Sandboxes are those that tests of
 * the providers describe; a service's own are not seen.
 */
const KINDS = ["services", "databases", "daemons", "sandboxes", "browsers"] as const;
export type Kind = (typeof KINDS)[number];
export type Starts = Readonly<Record<Kind, number>>;

const VARIABLE = "TEST_STARTS_DIRECTORY";

/** Counts one start. Outside of a run of vitest it does nothing. */
export const countStart = (kind: Kind): void => {
  const directory = process.env[VARIABLE];
  if (directory !== undefined) writeFileSync(path.join(directory, `${kind}.${randomUUID()}`), "");
};

/** @returns the run's starts so far, or null if nothing counts them. */
export const countedStarts = (): Starts | null => {
  const directory = process.env[VARIABLE];
  if (directory === undefined) return null;
  const starts = readdirSync(directory);
  const counts = KINDS.map((kind) => [kind, starts.filter((name) => name.startsWith(`${kind}.`)).length]);
  return Object.fromEntries(counts) as Starts;
};

/**
 * The committed numbers of a command, such as `npm test`. Those of services and databases are four above a measured run, because
 * the number of workers that get files with a shared service varies. Null: the command's starts are only counted.
 */
export const allowedStarts = (command: string): Starts | null => {
  const all = JSON.parse(readFileSync(path.join(import.meta.dirname, "starts.json"), "utf8")) as Record<
    string,
    Starts
  >;
  return all[command] ?? null;
};

/** @returns one sentence for each kind of which a run started more than the committed number. */
export const excessStarts = (starts: Starts, allowed: Starts): readonly string[] =>
  KINDS.filter((kind) => starts[kind] > allowed[kind]).map(
    (kind) =>
      `The tests started ${starts[kind]} ${kind}; ${allowed[kind]} are committed in test/support/vitest/starts.json. ` +
      "Share one, or raise the number and say why.",
  );

/** Vitest's global set-up: the directory of a run's counts. */
export const setup = (): (() => void) => {
  const directory = mkdtempSync(path.join(tmpdir(), "starts-"));
  // Some tests run as another user.
  chmodSync(directory, 0o1777);
  process.env[VARIABLE] = directory;
  return () => {
    rmSync(directory, { recursive: true, force: true });
  };
};

/**
 * `npm run bench:saves-beside [-- --files 10000 --changed 5000 --rounds 9]`: how much slower an agent's own tests are beside saves. `node --test` runs
 * files of its workspace, alone and beside a save as a daemon makes it in the background, of many changed files. The two take turns.
 * Prints the seconds of both, and the median of the rounds' ratios.
 */
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { parseArgs } from "node:util";
import type { WorkspaceCommand } from "../../daemon/saving/command.ts";
import { programCommand } from "../../daemon/saving/workspace-program.ts";
import { BACKGROUND_SHARE } from "../../src/domain/save/order.ts";
import { wholeFrame } from "../../src/domain/save/frames.ts";
import type { Listing } from "../../src/domain/save/listing.ts";
import { median, wholeFrom1 } from "./figures.ts";
import { env, guarded, makeTree, path, place, program, workspace } from "./saves/workspace.ts";

const { values } = parseArgs({
  options: {
    files: { type: "string", default: "10000" },
    changed: { type: "string", default: "5000" },
    rounds: { type: "string", default: "9" },
  },
});
const [FILES, CHANGED, ROUNDS] = [
  wholeFrom1("files", values.files),
  wholeFrom1("changed", values.changed),
  wholeFrom1("rounds", values.rounds),
];
/** Each takes about half a second of a core. */
const TEST_FILES = 8;

const TEST = `
import assert from "node:assert";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
test("sorts, hashes, and reads what it wrote", () => {
  const directory = mkdtempSync("tests-");
  for (let round = 0; round < 40; round += 1) {
    const words = Array.from({ length: 5000 }, (_, at) => createHash("sha1").update(round + "." + at).digest("hex")).sort();
    const text = JSON.stringify(words);
    writeFileSync(directory + "/" + round, text);
    assert.deepEqual(JSON.parse(readFileSync(directory + "/" + round, "utf8")), words);
  }
  rmSync(directory, { recursive: true });
});
`;

const commit = makeTree(FILES);
for (let at = 0; at < CHANGED; at += 1) appendFileSync(join(workspace, path(at)), "One line more.\n");
const tests = join(workspace, "tests");
mkdirSync(tests);
const files = Array.from({ length: TEST_FILES }, (_, at) => join(tests, `${at}.test.mjs`));
for (const file of files) writeFileSync(file, TEST);

const testSeconds = async (): Promise<number> => {
  const since = performance.now();
  const child = spawn(process.execPath, ["--test", ...files], { cwd: tests, env, stdio: "ignore" });
  const [code] = (await once(child, "exit")) as [number];
  if (code !== 0) throw new Error(`the tests ended with ${code}`);
  return (performance.now() - since) / 1000;
};

/** The end of the program's list: a line for the daemon, then the list itself. */
const itemsIn = (said: Buffer): Listing["items"] => {
  const { items } = JSON.parse(said.subarray(said.indexOf("\n") + 1).toString("utf8")) as Listing;
  return items;
};

/** A process of the workspace program, which ends by itself. @returns what it answered */
const asked = async (command: WorkspaceCommand): Promise<Buffer> => {
  const [node, ...args] = programCommand(program);
  const child = spawn(node, args, {
    cwd: workspace,
    env: { ...env, GIT_DIR: join(workspace, ".git"), GIT_WORK_TREE: workspace },
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.end(wholeFrame(Buffer.from(JSON.stringify(command))));
  return await buffer(child.stdout);
};

const save = async (): Promise<void> => {
  const request = { pushed: commit, base: commit, share: BACKGROUND_SHARE };
  const said = await asked({ ...place, command: "list", request, known: [], contentsSince: 0 });
  const items = itemsIn(said).flatMap(({ kind, path: name, object }) =>
    object === null ? [] : [{ kind, path: name, object }],
  );
  await asked({ ...place, command: "read", request: { items, share: BACKGROUND_SHARE } });
};

/** @returns the seconds of the tests, and of the save that began with them */
const besideSeconds = async (): Promise<readonly [number, number]> => {
  const since = performance.now();
  const saved = save().then(() => (performance.now() - since) / 1000);
  return [await testSeconds(), await saved];
};

const rounds: { readonly alone: number; readonly beside: number; readonly save: number }[] = [];
await testSeconds();
for (let round = 0; round < ROUNDS; round += 1) {
  // oxlint-disable no-await-in-loop -- they take turns
  const before = round % 2 === 0 ? await testSeconds() : null;
  const [beside, saved] = await besideSeconds();
  rounds.push({ alone: before ?? (await testSeconds()), beside, save: saved });
  // oxlint-enable no-await-in-loop
}
const result = {
  files: FILES,
  changed: CHANGED,
  alone_s: Number(median(rounds.map(({ alone }) => alone)).toFixed(2)),
  save_s: Number(median(rounds.map(({ save: seconds }) => seconds)).toFixed(2)),
  beside_s: Number(median(rounds.map(({ beside }) => beside)).toFixed(2)),
  ratio: Number(median(rounds.map(({ alone, beside }) => beside / alone)).toFixed(3)),
};
guarded.remove();
process.stdout.write(`${JSON.stringify(result)}\n`);

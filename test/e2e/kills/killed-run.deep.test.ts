/** A test run or a benchmark that is killed with -9 leaves nothing on the machine. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, it } from "vitest";
import type { Started, Word } from "../../support/programs/sandboxes/guarded-main.ts";
import { processesIn, programOf } from "../../support/machine/processes-in.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import { lacksPgbench } from "../../bench/webhook/pgbench.ts";
import { lacksEngine } from "../../support/machine/container-engine.ts";
import { nginxProgram, sandboxesStartHere } from "../../support/requirements.ts";

const PROGRAM = path.join(import.meta.dirname, "../../support/programs/sandboxes/guarded-main.ts");

let child: ChildProcess | null = null;
let started: Started | null = null;

const start = async (what: Word): Promise<Started> => {
  const { DATABASE_URL: _given, ...env } = process.env;
  const running = spawn(process.execPath, [PROGRAM, what], { env, stdio: ["ignore", "pipe", "inherit"] });
  child = running;
  for await (const line of createInterface({ input: running.stdout }))
    return (started = JSON.parse(line) as Started);
  throw new Error("the program ended before it was ready");
};

const runDirectories = (): readonly string[] =>
  readdirSync(tmpdir()).filter((name) => /^platform-[0-9a-f]{12}$/.test(name));

/** Also ends what a guard that fails would leave. */
afterEach(() => {
  child?.kill("SIGKILL");
  if (started === null) return;
  const { directory, sandboxId } = started;
  const left = [...processesIn(directory), ...(sandboxId === null ? [] : processesOfSandbox(sandboxId))];
  if (left.length > 0) spawnSync("kill", ["-9", ...left.map(String)]);
  rmSync(directory, { recursive: true, force: true });
  started = null;
});

it("a test run that is killed leaves no Postgres and no directory", async () => {
  const { directory } = await start("run");
  expect(processesIn(directory).map(programOf)).toContain("postgres");
  child?.kill("SIGKILL");
  await expect.poll(() => processesIn(directory)).toEqual([]);
  await expect.poll(() => existsSync(directory)).toBe(false);
});

it.runIf(sandboxesStartHere)(
  "a benchmark that is killed leaves no service, no Postgres and no sandbox",
  async () => {
    const before = new Set(runDirectories());
    const { directory, sandboxId } = await start("bench");
    const id = sandboxId ?? "";
    const runDir = runDirectories().find(
      (name) => !before.has(name) && existsSync(path.join(tmpdir(), name, "s", id)),
    );
    if (runDir === undefined) throw new Error("the sandbox has no run directory");
    expect(processesOfSandbox(id)).not.toEqual([]);
    expect(processesIn(directory).map(programOf)).toEqual(expect.arrayContaining(["node", "postgres"]));
    child?.kill("SIGKILL");
    await expect.poll(() => processesIn(directory)).toEqual([]);
    await expect.poll(() => processesOfSandbox(id)).toEqual([]);
    // The builder's directory begins with the same name.
    const ofService = (name: string) => name.startsWith(runDir);
    await expect.poll(() => readdirSync(tmpdir()).filter(ofService)).toEqual([]);
    await expect.poll(() => existsSync(directory)).toBe(false);
  },
);

/** Parts of benchmarks, each with its program and what it lacks here. */
const PARTS = [
  { word: "nginx", program: "nginx", lacks: nginxProgram === undefined ? "nginx" : null },
  { word: "pgbench", program: "pgbench", lacks: lacksPgbench },
  { word: "engine", program: "dockerd", lacks: lacksEngine },
] as const;

/**
 * `.ci/run` sets the variable if its machine has no rights of a container engine, and says so. It does not install pgbench: the package
 * brings a Postgres that starts by itself.
 */
const isLeftOut = (word: string): boolean =>
  (word === "engine" && process.env["PLATFORM_CI_WITHOUT_DOCKER"] === "1") ||
  (word === "pgbench" && process.env["CI"] === "true" && lacksPgbench !== null);

for (const { word, program, lacks } of PARTS.filter((part) => !isLeftOut(part.word))) {
  it.skipIf(lacks !== null)(
    `a benchmark that is killed leaves no ${program} and no directory of it ${lacks ?? ""}`,
    async () => {
      const { directory } = await start(word);
      expect(processesIn(directory).map(programOf)).toContain(program);
      child?.kill("SIGKILL");
      await expect.poll(() => processesIn(directory)).toEqual([]);
      await expect.poll(() => existsSync(directory)).toBe(false);
    },
  );
}

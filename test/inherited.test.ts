import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it } from "vitest";
import { descendants, sampleProcesses } from "../src/sandbox/local/processes.ts";
import { fileOf, plantedIn, withPlanted } from "./sandbox/local-descriptors.ts";

const PROBE = join(import.meta.dirname, "support/inherited-probe.mjs");
const program = (name: string): string => join(import.meta.dirname, "..", name);

let directory = "";
let planted: ReturnType<typeof plantedIn> = new Map();
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "platform-inherited-"));
  planted = plantedIn(directory);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Starts a program of this repository with planted descriptors. */
const start = (name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
  const { DATABASE_URL: _ours, ...environment } = process.env;
  const child = spawn(process.execPath, ["--import", PROBE, program(name), ...args], {
    cwd: directory,
    env: { ...environment, ...env },
    stdio: withPlanted(["ignore", "pipe", "pipe"], planted),
  });
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the program's output is piped");
  let errors = "";
  stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const ended = once(child, "close").then(() => errors);
  return { pid: child.pid ?? 0, stdout, ended, kill: () => child.kill("SIGTERM") };
};

/** The files behind a process's descriptors. */
const filesOf = (pid: number): readonly string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      const { dev, ino } = statSync(`/proc/${pid}/fd/${name}`);
      return [`${dev}:${ino}`];
    } catch {
      return []; // Closed meanwhile.
    }
  });

it("hands no program that the service starts a descriptor that the service inherited", async () => {
  const service = start("src/main.ts", [], {
    PLATFORM_PORT: "0",
    PLATFORM_DATA_DIR: join(directory, "data"),
    PLATFORM_SANDBOX_PROVIDER: "simulated",
  });
  for await (const line of createInterface({ input: service.stdout })) if (line.startsWith("ready ")) break;
  const files = new Set([...planted].flatMap(([, file]) => (file === "pipe" ? [] : [fileOf(file)])));
  const started = descendants(sampleProcesses(), service.pid);
  // Its Postgres, and the processes of that one.
  expect(started.length).toBeGreaterThan(1);
  for (const { pid } of started) expect(filesOf(pid).filter((file) => files.has(file))).toEqual([]);
  service.kill();
  expect(await service.ended).toContain("passes on: .");
});

it.each([
  ["the operator's command line", "src/cli.ts", ["--help"], {}],
  // Without git on its PATH it ends before it starts anything.
  ["the demo", "demo/main.ts", ["--once"], { PATH: "/nonexistent" }],
])("hands no program that %s starts a descriptor that it inherited", async (_who, name, args, env) => {
  expect(await start(name, args, env).ended).toContain("passes on: .");
});

it("plants descriptors that a program which does nothing about them passes on", async () => {
  const said = await start("test/support/inherited-probe.mjs", []).ended;
  expect(said).toMatch(/passes on: 63 64 (\d+ )*255 256 (\d+ )*1000\./);
});

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { rootCertificates } from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { descendants, sampleProcesses } from "../src/sandbox/machine/processes.ts";
import { fileOf, plantedIn, withPlanted } from "./sandbox/machine/machine-descriptors.ts";

const PROBE = join(import.meta.dirname, "support/programs/sandboxes/inherited-probe.mjs");
const CERTIFICATES = join(import.meta.dirname, "support/programs/certificates-main.mjs");
const ROOT = join(import.meta.dirname, "..");
const program = (name: string): string => join(ROOT, name);

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

it("passes no inherited descriptor of the service to the programs that it starts", async () => {
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
  ["the operator's command line", "src/operator.ts", ["--help"], {}],
  // Without git on its PATH it ends before it starts anything.
  ["the demo", "demo/main.ts", ["--once"], { PATH: "/nonexistent" }],
])("passes no inherited descriptor to the programs that %s starts", async (_who, name, args, env) => {
  expect(await start(name, args, env).ended).toContain("passes on: .");
});

it("leaves Node the file of certificates that it still reads", async () => {
  const pipe = join(directory, "certificates");
  execFileSync("mkfifo", [pipe]);
  // Opened for both, so that neither end waits for the other.
  const writer = openSync(pipe, "r+");
  const child = spawn(process.execPath, [CERTIFICATES], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: pipe },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const errors = text(child.stderr);
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (line !== "closing") continue;
    // More than one read takes: a descriptor that is closed meanwhile is noticed.
    writeSync(writer, rootCertificates.slice(0, 10).join("\n"));
    closeSync(writer);
  }
  expect(lines).toEqual(["closing", "closed"]);
  expect(await errors).toBe("");
});

it("plants descriptors that an unprepared program passes on", async () => {
  const said = await start("test/support/programs/sandboxes/inherited-probe.mjs", []).ended;
  expect(said).toMatch(/passes on: 63 64 (\d+ )*255 256 (\d+ )*1000\./);
});

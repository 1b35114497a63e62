/** The order in which a sandbox is started (src/sandbox/machine/boot/boot.ts), with a shell as the launcher. */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { boot, type BootRequest } from "../../src/sandbox/machine/boot/boot.ts";
import type { Installation } from "../../src/sandbox/machine/installation.ts";
import { DEFAULT_LIMITS } from "../../src/sandbox/machine/options.ts";
import type { Launcher } from "../../src/sandbox/machine/isolation/isolation.ts";
import {
  type SandboxPaths,
  type SandboxRecord,
  readRecord,
  sandboxPaths,
} from "../../src/sandbox/machine/disk/run-directory.ts";

let runDir: string;
let paths: SandboxPaths;
let record: SandboxRecord;

beforeEach(async () => {
  runDir = await mkdtemp(join(tmpdir(), "boot-"));
  const id = randomUUID();
  paths = sandboxPaths(runDir, id);
  await mkdir(paths.root, { recursive: true, mode: 0o700 });
  record = {
    version: 1,
    id,
    sessionId: id,
    installationId: "0e6f1c52-boot",
    nodeId: "node-1",
    uidBase: null,
    launcher: null,
    cgroups: [],
    egressAllow: [],
    secretNames: [],
    llmUpstream: null,
  };
});

afterEach(() => rm(runDir, { recursive: true }));

/** Only what a start by a launcher asks for. */
const installationWith = (launch: () => Promise<Launcher>): Installation =>
  ({
    options: { limits: DEFAULT_LIMITS },
    parts: {
      node: "/n",
      daemon: "/d",
      entrypoint: "/e",
      commandLine: "/c",
      agentBinaries: [],
      settings: {},
      library: {},
    },
    groupParents: [],
    isolation: { hostProcesses: (inside: number) => inside, start: { by: "launcher", launch } },
  }) as unknown as Installation;

const request = (beside: Promise<unknown>): BootRequest => ({
  paths,
  record,
  settings: {
    prefix: [],
    agentCommand: [],
    adapter: "plain",
    agentEnv: {},
    commonEnv: {},
    bootDeadlineMs: 0,
  },
  environment: {},
  image: null,
  beside,
});

const launcher = (script: string): Launcher => ({
  command: ["/bin/sh", "-c", script],
  environment: { PATH: process.env["PATH"] ?? "" },
  filter: null,
});

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
};

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

test("the launcher is let go when everything is made", async () => {
  const made = Promise.withResolvers<void>();
  const proof = join(runDir, "made");
  const script = `echo waiting; echo waiting >&3; read -r _; [ -e ${proof} ] && [ -e ${paths.launch} ] && echo up >&3`;
  const booting = boot(
    installationWith(() => Promise.resolve(launcher(script))),
    request(made.promise),
  );
  await until(() => existsSync(paths.log) && readFileSync(paths.log, "utf8") === "waiting\n");
  // A launcher that is not held back is let go in one of these turns.
  await turns(1000);
  expect((await readRecord(paths))?.launcher).toBeNull();
  await writeFile(proof, "");
  made.resolve();
  const booted = await booting;
  expect(await readRecord(paths)).toEqual(booted.record);
  expect(booted.record.launcher).not.toBeNull();
});

test("a start that fails ends after its last part, with its launcher", async () => {
  const launching = Promise.withResolvers<Launcher>();
  const order: string[] = [];
  const beside = Promise.reject(new Error("no proxy"));
  const booting = boot(
    installationWith(() => launching.promise),
    request(beside),
  ).then(
    () => order.push("booted"),
    (error: unknown) => order.push(String(error)),
  );
  beside.catch(() => undefined);
  await until(() => existsSync(paths.launch) && readFileSync(paths.launch, "utf8").endsWith("}"));
  // A start that does not wait for the launcher fails in one of these turns.
  await turns(1000);
  order.push("launched");
  launching.resolve(launcher(`echo $$; echo waiting >&3; read -r _ || exit 1; echo gone; echo up >&3`));
  await booting;
  expect(order).toEqual(["launched", "Error: no proxy"]);
  const [pid = "", ...more] = readFileSync(paths.log, "utf8").trim().split("\n");
  await until(
    () => !existsSync(`/proc/${pid}/stat`) || readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z"),
  );
  expect(more).toEqual([]);
});

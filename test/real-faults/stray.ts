/** A process as sandboxes have them, with files below the run directory, that no service has started. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { signal } from "../../src/sandbox/machine/processes.ts";
import type { FaultyService } from "./installation.ts";

/** bubblewrap itself, and what runs under it. */
const PROCESSES = 2;

export interface Stray {
  readonly id: string;
  /** Ends it and removes its files, if this has not happened yet. */
  readonly end: () => Promise<void>;
}

/** @param record what its record says beside its id; null: it has none. */
export const startStray = async (
  service: FaultyService,
  record: Readonly<Record<string, unknown>> | null,
): Promise<Stray> => {
  const id = randomUUID();
  const root = path.join(service.runDir, "s", id);
  const disk = path.join(root, "disk");
  mkdirSync(disk, { recursive: true });
  if (record !== null) writeFileSync(path.join(root, "record.json"), JSON.stringify({ id, ...record }));
  const child = spawn("bwrap", ["--dev-bind", "/", "/", "--bind", disk, "/mnt", "sleep", "600"]);
  const exited = once(child, "exit");
  const pids = () => service.machine().sandboxes.find((one) => one.id === id)?.pids ?? [];
  while (pids().length < PROCESSES && child.exitCode === null) await delay(10);
  return {
    id,
    end: async () => {
      child.kill("SIGKILL");
      for (const pid of pids()) signal(pid, "SIGKILL");
      await exited;
      rmSync(root, { recursive: true, force: true });
    },
  };
};

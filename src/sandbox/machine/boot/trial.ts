/** Chooses what isolates the sandboxes of this machine, by starting one sandbox of each kind, strongest first. */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { thrownText } from "../../../ground/thrown.ts";
import { boot } from "./boot.ts";
import { type Installation, install } from "../installation.ts";
import type { MachineOptions } from "../options.ts";
import type { Kind } from "../isolation/isolation.ts";
import {
  isRecorded,
  readRecord,
  sandboxIds,
  sandboxPaths,
  type SandboxRecord,
} from "../disk/run-directory.ts";
import { killSandbox, tearDown } from "../disk/teardown.ts";

/** Outside the uids of all real sandboxes. */
const TRIAL_UID_BASE = 299_999_000;

/** Replaces the installation's id: a sandbox with it has no owner once its start has died. */
const TRIAL = "trial";

/** Starts PID 1 and ends it. @throws Error with the machine's refusal */
const tryKind = async (options: MachineOptions, kind: Kind): Promise<Installation> => {
  const installation = await install(options, kind);
  const id = randomUUID();
  const paths = sandboxPaths(options.runDir, id);
  const record: SandboxRecord = {
    version: 1,
    id,
    sessionId: id,
    installationId: TRIAL,
    nodeId: options.nodeId,
    uidBase: installation.ownUids ? TRIAL_UID_BASE : null,
    launcher: null,
    cgroups: [],
    egressAllow: [],
    secretNames: [],
    llmUpstream: null,
  };
  const settings = {
    prefix: [],
    agentCommand: [],
    adapter: "plain" as const,
    agentEnv: {},
    commonEnv: {},
    bootDeadlineMs: 0,
  };
  try {
    await mkdir(paths.root, { mode: 0o700 });
    await boot(installation, { paths, record, settings, environment: {}, image: null });
    return installation;
  } finally {
    const left = (await readRecord(paths)) ?? record;
    // It contains nothing that needs a graceful end.
    await killSandbox(paths, left);
    await tearDown(paths, left);
  }
};

/** The kind that works on this machine, and the reasons against stronger ones. */
export interface OpenedInstallation {
  readonly installation: Installation;
  /** One sentence for each kind that was tried before. */
  readonly refusals: readonly string[];
}

/**
 * Prepares the first kind that works on this machine.
 * @param kinds strongest first
 * @throws Error that names what each kind lacks
 */
export const openInstallation = async (
  options: MachineOptions,
  kinds: readonly Kind[],
): Promise<OpenedInstallation> => {
  const refusals: string[] = [];
  for (const kind of kinds) {
    try {
      // eslint-disable-next-line no-await-in-loop -- the weaker kind is tried only where the stronger fails
      return { installation: await tryKind(options, kind), refusals };
    } catch (error) {
      refusals.push(`${kind.name}: ${thrownText(error)}`);
    }
  }
  throw new Error(`no sandbox can be started on this machine (${refusals.join("; ")})`);
};

/**
 * Removes the sandboxes of starts that were killed while they tried this machine. The caller owns the run directory and
 * creates no sandbox in it yet, so every directory without a record is a leftover.
 */
export const removeTrials = async (runDir: string): Promise<void> => {
  const ids = await sandboxIds(runDir);
  await Promise.all(
    ids.map(async (id) => {
      const paths = sandboxPaths(runDir, id);
      const record = await readRecord(paths);
      if (record?.installationId !== TRIAL && (await isRecorded(paths))) return;
      await killSandbox(paths, record);
      await tearDown(paths, record);
    }),
  );
};

/**
 * The sandboxes of one provider on this machine, by id: their records on disk, and the resources that this process holds for
 * each running one (proxy, exit).
 *
 *  L1 One operation a sandbox at a time: a destroy waits for a create under way, and the reverse.
 *  L2 A host uid belongs to one sandbox at a time, until its directory is gone.
 *  L3 The first reason for an end is the one that is reported.
 */
import { lstat, mkdir } from "node:fs/promises";
import { toError } from "../../ground/thrown.ts";
import { boot, launchSettings } from "./boot/boot.ts";
import { removeGroupNow } from "./limits/cgroup.ts";
import { reportContainer } from "./boot/container-boot.ts";
import { openImage } from "./boot/image.ts";
import { openRuntime } from "./boot/runtime.ts";
import type { EgressPolicy } from "../egress-policy.ts";
import { type Egress, openEgress } from "../egress.ts";
import type { Installation } from "./installation.ts";
import { readLogTail } from "./disk/log-tail.ts";
import {
  ABSENT_EXIT,
  type DaemonLink,
  type SandboxExit,
  type SandboxListing,
  type SandboxSpec,
} from "../port.ts";
import { OneAtATime } from "../operations.ts";
import { sandboxPackages } from "../packages/of-sandbox.ts";
import { isAlive, sampleProcesses } from "./processes.ts";
import {
  type SandboxPaths,
  type SandboxRecord,
  hasDirectory,
  readExit,
  readRecord,
  sandboxIds,
  sandboxPaths,
  treesInUse,
  writeExit,
  writeRecord,
} from "./disk/run-directory.ts";
import { endSandbox, killSandbox, tearDown } from "./disk/teardown.ts";
import { freeUids } from "./isolation/uids.ts";
import {
  LOG_KEPT_BYTES,
  type SandboxWatch,
  finalVerdict,
  kernelVerdict,
  measureDisk,
  measureProcesses,
  memoryUsed,
  newestLines,
  trimLog,
} from "./limits/watcher.ts";

/** A valid directory name that cannot lead elsewhere. */
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

interface Entry extends SandboxWatch {
  record: SandboxRecord;
  readonly egress: Egress;
  readonly exit: PromiseWithResolvers<SandboxExit>;
  ended: boolean;
  /** A walk over its files is under way. */
  walking: boolean;
  /** The last look found its processes gone. */
  missed: boolean;
  /** Why the last walk failed, until the next look reports it. */
  walkFailure: Error | null;
}

export class MachineSandboxes {
  readonly #installation: Installation;
  readonly #entries = new Map<string, Entry>();
  readonly #order = new OneAtATime();
  readonly #uidBases = new Map<string, number>();

  readonly #kill: typeof killSandbox;

  private constructor(installation: Installation, kill: typeof killSandbox) {
    this.#installation = installation;
    this.#kill = kill;
  }

  /**
   * Takes over the sandboxes of a former service: running ones get their proxy back, ended ones keep their reason.
   * @param kill ends a sandbox that exceeds a limit; tests make it fail
   */
  static async open(installation: Installation, kill = killSandbox): Promise<MachineSandboxes> {
    const sandboxes = new MachineSandboxes(installation, kill);
    const ids = await sandboxIds(installation.options.runDir);
    await Promise.all(ids.map((id) => sandboxes.#adopt(id)));
    return sandboxes;
  }

  /** Leaves the sandboxes running. */
  close(): void {
    for (const entry of this.#entries.values()) entry.egress.close();
    this.#entries.clear();
    // Succeeds only if no sandbox is left in it.
    for (const { directory } of this.#installation.groupParents) removeGroupNow(directory);
  }

  create(spec: SandboxSpec): Promise<void> {
    return this.#order.run(spec.id, async () => {
      const paths = this.#paths(spec.id);
      const earlier = await readRecord(paths);
      if (earlier?.launcher) return;
      // An earlier attempt died before it started a process. Without its directory it never began, and a tear-down would look at every
      // process of the machine.
      if (await hasDirectory(paths)) await tearDown(paths, earlier);
      await this.#start(spec, paths);
    });
  }

  async #start(spec: SandboxSpec, paths: SandboxPaths): Promise<void> {
    const { options } = this.#installation;
    const image = spec.image === null ? null : await openImage(this.#installation, spec.image);
    const { launch, tree } = await openRuntime(this.#installation, spec.runtime, image);
    const uidBase = this.#installation.ownUids ? this.#takeUids(spec.id) : null;
    const record: SandboxRecord = {
      version: 1,
      id: spec.id,
      sessionId: spec.sessionId,
      installationId: options.installationId,
      nodeId: options.nodeId,
      uidBase,
      launcher: null,
      cgroups: [],
      egressAllow: spec.egressAllow,
      secretNames: Object.keys(spec.secrets),
      llmUpstream: spec.llmUpstream,
      ...sandboxPackages(options.packageSources, spec),
      ...(image !== null && { image: image.digest }),
      ...(tree !== null && { agentRuntime: tree.digest }),
    };
    let opening: Promise<Egress> | null = null;
    try {
      await mkdir(paths.root, { mode: 0o700 });
      opening = this.#newEgress(paths, record);
      // The boot waits for it, and reports its failure.
      opening.catch(() => undefined);
      const booting = await boot(this.#installation, {
        paths,
        record,
        settings: launchSettings(this.#installation, { ...spec, runtime: launch }, { record, image }),
        environment: spec.environment,
        image,
        ...(tree !== null && { runtime: tree }),
        beside: opening,
      });
      const entry = this.#enter(paths, booting.record, await opening);
      booting.onEnd((message) => void this.#ended(entry, message));
    } catch (error) {
      const egress = await opening?.catch(() => null);
      egress?.close();
      await tearDown(paths, (await readRecord(paths)) ?? record);
      this.#uidBases.delete(spec.id);
      throw error;
    }
  }

  /** Settles when the sandbox has ended by itself, does not exist, or was destroyed. */
  awaitExit(id: string): Promise<SandboxExit> {
    return this.#entries.get(id)?.exit.promise ?? Promise.resolve(ABSENT_EXIT);
  }

  async list(): Promise<SandboxListing[]> {
    const { options } = this.#installation;
    const ids = await sandboxIds(options.runDir);
    const records = await Promise.all(ids.map((id) => readRecord(sandboxPaths(options.runDir, id))));
    return records
      .filter((record) => record !== null)
      .filter((record) => this.#isOurs(record))
      .map((record) => ({
        id: record.id,
        sessionId: record.sessionId,
        state: this.#isRunning(record) ? "running" : "exited",
      }));
  }

  /** A sandbox that is being created counts as running, so that it is not removed as a leftover. */
  #isRunning({ id, launcher }: SandboxRecord): boolean {
    return launcher === null ? this.#order.isBusy(id) : isAlive(launcher);
  }

  async link(id: string): Promise<DaemonLink> {
    const paths = this.#paths(id);
    if ((await readRecord(paths)) === null) throw new Error("the sandbox does not exist");
    // The directory is the daemon's to write: a link there could lead to another socket of this machine.
    const stats = await lstat(paths.daemonSocket).catch(() => null);
    if (stats !== null && !stats.isSocket()) throw new Error("the daemon's socket is not a socket");
    return { kind: "unix", path: paths.daemonSocket };
  }

  /** The names decide which model hosts are open. They are also recorded for the service's next life. */
  setSecretNames(id: string, secretNames: readonly string[]): Promise<void> {
    return this.#order.run(id, async () => {
      const entry = this.#entries.get(id);
      if (entry === undefined) throw new Error("the sandbox does not exist");
      entry.record = { ...entry.record, secretNames };
      await writeRecord(entry.paths, entry.record);
      entry.egress.follow(this.#policy(entry.record));
    });
  }

  async logs(id: string): Promise<string> {
    const paths = this.#paths(id);
    // The newer file is read first: output that moves to the older file meanwhile then appears twice, and is not lost.
    const recent = await readLogTail(paths.log, LOG_KEPT_BYTES);
    const old = await readLogTail(paths.oldLog, LOG_KEPT_BYTES);
    return newestLines(old + recent, LOG_KEPT_BYTES);
  }

  end(id: string): Promise<void> {
    return this.#order.run(id, async () => {
      const paths = this.#paths(id);
      await endSandbox(paths, await readRecord(paths));
      const entry = this.#entries.get(id);
      if (entry !== undefined) await this.#ended(entry, "it was stopped");
    });
  }

  destroy(id: string): Promise<void> {
    return this.#order.run(id, async () => {
      const paths = this.#paths(id);
      const entry = this.#entries.get(id);
      await tearDown(paths, await readRecord(paths));
      entry?.egress.close();
      entry?.exit.resolve({ code: "exited", message: "the sandbox was destroyed" });
      this.#entries.delete(id);
      this.#uidBases.delete(id);
    });
  }

  /** Removes images and runtimes that no name and no sandbox uses any more. */
  async pruneTrees(nowMs: number): Promise<void> {
    const { options, images, runtimes } = this.#installation;
    const usedTrees = await treesInUse(options.runDir);
    await images.prune(usedTrees, nowMs);
    await runtimes.prune(usedTrees, nowMs);
  }

  /** The memory of all running sandboxes, in bytes. */
  memoryBytes(): number {
    return memoryUsed(
      [...this.#entries.values()].filter((entry) => !entry.ended),
      sampleProcesses,
    );
  }

  /**
   * One look at every running sandbox. A sandbox over a limit is ended. Walks over files run in parallel, one a sandbox
   * at a time: a large tree delays neither the next look nor other sandboxes.
   */
  async watch(nowMs: number): Promise<void> {
    const running = [...this.#entries.values()].filter((entry) => !entry.ended);
    const { controls, options } = this.#installation;
    const rules = {
      limits: options.limits,
      kernelMemory: controls.has("memory"),
      kernelProcesses: controls.has("processes"),
    };
    const needsSamples = running.length > 0 && !(rules.kernelMemory && rules.kernelProcesses);
    const samples = needsSamples ? sampleProcesses() : [];
    const look = async (entry: Entry): Promise<void> => {
      if (entry.record.launcher === null || !isAlive(entry.record.launcher)) {
        // A child of this process reports its own exit soon, and only that report has the reason.
        if (entry.missed) await this.#ended(entry, "its processes ended");
        entry.missed = true;
        return;
      }
      await trimLog(entry, options.limits);
      const excess = kernelVerdict(entry.record, options.limits) ?? measureProcesses(entry, samples, rules);
      if (excess !== null) await this.#end(entry, excess);
      else if (!entry.walking) void this.#walk(entry, () => measureDisk(entry, rules, nowMs));
      const { walkFailure } = entry;
      entry.walkFailure = null;
      if (walkFailure !== null) throw walkFailure;
    };
    const looks = await Promise.allSettled(running.map(look));
    // A failed look at a sandbox that was destroyed meanwhile is ignored. Any other failure is reported after all
    // looks.
    const failure = looks.find(
      (result, index) =>
        result.status === "rejected" && this.#entries.get(running[index]?.record.id ?? "") === running[index],
    );
    if (failure?.status === "rejected") throw failure.reason;
  }

  async #walk(entry: Entry, measure: () => Promise<SandboxExit | null>): Promise<void> {
    entry.walking = true;
    try {
      const excess = await measure();
      if (excess !== null) await this.#end(entry, excess);
    } catch (error) {
      entry.walkFailure = toError(error);
    } finally {
      entry.walking = false;
    }
  }

  #paths(id: string): SandboxPaths {
    if (!ID.test(id)) throw new Error("a sandbox's id is a lower-case UUID");
    return sandboxPaths(this.#installation.options.runDir, id);
  }

  #isOurs(record: SandboxRecord): boolean {
    const { installationId, nodeId } = this.#installation.options;
    return record.installationId === installationId && record.nodeId === nodeId;
  }

  async #adopt(id: string): Promise<void> {
    const paths = sandboxPaths(this.#installation.options.runDir, id);
    const record = await readRecord(paths);
    if (record === null) return;
    if (record.uidBase !== null) this.#uidBases.set(id, record.uidBase);
    if (!this.#isOurs(record) || record.launcher === null) return;
    const exit = await readExit(paths);
    const entry = this.#enter(paths, record, await this.#openEgress(paths, record));
    if (exit !== null) {
      entry.ended = true;
      entry.exit.resolve(exit);
    } else if (!isAlive(record.launcher)) {
      await this.#ended(entry, "it ended while no service watched it");
    } else {
      reportContainer(record, (message) => void this.#ended(entry, message));
    }
  }

  async #newEgress(paths: SandboxPaths, record: SandboxRecord): Promise<Egress> {
    await mkdir(paths.proxy, { recursive: true });
    return this.#openEgress(paths, record);
  }

  #openEgress(paths: SandboxPaths, record: SandboxRecord): Promise<Egress> {
    const { packages, options, tellRefused } = this.#installation;
    const models = options.modelDoor?.serve(record.id);
    const tellRefusedHost = tellRefused?.({ sandbox: record.id, session: record.sessionId });
    const policy = this.#policy(record);
    return openEgress(paths.proxySocket, {
      policy,
      packages,
      models,
      ...(tellRefusedHost && { refused: tellRefusedHost }),
    });
  }

  #policy({ egressAllow, secretNames, llmUpstream, packages }: SandboxRecord): EgressPolicy {
    const { serviceUrl, serviceHosts } = this.#installation.options;
    return { allow: egressAllow, secretNames, serviceUrl, serviceHosts, llmUpstream, packages };
  }

  #enter(paths: SandboxPaths, record: SandboxRecord, egress: Egress): Entry {
    const exit = Promise.withResolvers<SandboxExit>();
    const entry: Entry = {
      paths,
      record,
      egress,
      exit,
      disk: null,
      ended: false,
      walking: false,
      missed: false,
      walkFailure: null,
    };
    this.#entries.set(record.id, entry);
    return entry;
  }

  /** Reports why a sandbox's processes are gone. */
  async #ended(entry: Entry, message: string): Promise<void> {
    const isOver = (): boolean => entry.ended || this.#entries.get(entry.record.id) !== entry;
    if (isOver()) return;
    const verdict = await finalVerdict(entry.record, this.#installation.options.limits);
    // Another reason came first (L3).
    if (!isOver()) await this.#settle(entry, verdict ?? { code: "exited", message });
  }

  /** Ends a sandbox with a reason. Its directory stays until it is destroyed. */
  async #end(entry: Entry, exit: SandboxExit): Promise<void> {
    if (entry.ended || this.#entries.get(entry.record.id) !== entry) return;
    await this.#settle(entry, exit, () => this.#kill(entry.paths, entry.record));
  }

  async #settle(entry: Entry, exit: SandboxExit, end: () => Promise<void> = async () => {}): Promise<void> {
    entry.ended = true;
    entry.egress.close();
    // If the sandbox was destroyed meanwhile, there is no directory for the record.
    const exitReport = await writeExit(entry.paths, exit).catch(() => exit);
    try {
      await end();
    } finally {
      // Reported even if a process does not end: its listener destroys the sandbox, which tries again.
      entry.exit.resolve(exitReport);
    }
  }

  #takeUids(id: string): number {
    const base = freeUids(this.#installation.options.installationId, new Set(this.#uidBases.values()));
    this.#uidBases.set(id, base);
    return base;
  }
}

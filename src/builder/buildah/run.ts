/**
 * One build: two phases under one watch, and the end of everything that they leave.
 *
 *  R1 When `run` settles, no process, mount, control group or file of the build is left, except the result in `output`.
 *  R2 The first reason to end a build is the one that is reported.
 *  R3 The service reads no file that the build wrote. What it needs, the second phase reports.
 */
import type { ChildProcess } from "node:child_process";
import { chown, lstat, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import * as Schema from "effect/Schema";
import { removeTree } from "../../sandbox/machine/disk/run-directory.ts";
import { groupDirectories, makeGroups, removeGroups } from "../../sandbox/machine/limits/cgroup.ts";
import { openEgress } from "../../sandbox/egress.ts";
import type { Stage } from "../../domain/environment/dockerfile.ts";
import type { BuildFailure } from "../../domain/environment/build-failure.ts";
import { type BuildEvent, type BuildRequest, ImageFile } from "../port.ts";
import { buildError, classifyFailure, PATH_MAX } from "./failure.ts";
import type { Installation } from "./installation.ts";
import type { InsideRequest } from "./inside/reports.ts";
import type { Phase } from "./launch.ts";
import type { LayerStore } from "./layer-stores.ts";
import { LimitWatch, LOOK_MS, measureSize } from "./limits.ts";
import { BuildOutput } from "./output.ts";
import { killPhase, type PhaseEnd, type PhaseRequest, runPhase } from "./phase.ts";
import { type BuildPlaces, makePlaces, buildPlaces, removePlaces } from "./places.ts";
import type { BuildTools } from "./requirements.ts";

/** How many refused hosts are kept for a failure. */
const REFUSED_MAX = 16;

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** What `export` reports (inside/reports.ts). It is decoded like a stranger's answer. */
const ExportedWire = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({
      kind: Schema.Literal("exported"),
      digest: ImageFile.fields.digest,
      env: Schema.Array(Schema.String),
      user: Schema.String,
      workdir: Schema.String,
      bytes: Schema.Int,
      files: Schema.Int,
    }),
    Schema.Struct({ kind: Schema.Literal("too_large"), what: Schema.Literals(["image", "files", "path"]) }),
    Schema.Struct({ kind: Schema.Literal("failed"), problem: Schema.String }),
  ]),
);
const decodeExported = Schema.decodeUnknownSync(ExportedWire);

const parseEnvironment = (lines: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    lines.flatMap((line) => {
      const at = line.indexOf("=");
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1)] as const] : [];
    }),
  );

export interface RunOptions {
  readonly installation: Installation;
  readonly tools: BuildTools;
  readonly request: BuildRequest;
  readonly stages: readonly Stage[];
  readonly store: LayerStore;
  readonly emit: (event: BuildEvent) => void;
}

export class BuildRun {
  readonly #options: RunOptions;
  readonly #places: BuildPlaces;
  readonly #groups: readonly string[];
  readonly #output: BuildOutput;
  readonly #over = new AbortController();
  #child: ChildProcess | null = null;
  #verdict: BuildFailure | null = null;
  #logged = 0;
  #refused: string[] = [];
  /** Whether buildah was killed while it may have written to its store. */
  #broken = false;

  constructor(options: RunOptions) {
    this.#options = options;
    const { installation, request, stages } = options;
    this.#places = buildPlaces(installation.directory, installation.runDir, request.id);
    this.#groups = groupDirectories(installation.groupParents, request.id);
    this.#output = new BuildOutput(stages, (event) => {
      if (event.kind === "step") this.#refused = [];
      options.emit(event);
    });
  }

  /** Ends the build for a reason. */
  stop(failure: BuildFailure): void {
    this.#verdict ??= failure;
    this.#child?.kill("SIGKILL");
  }

  /**
   * Runs the build to its end, and cleans up.
   * @throws BuildError, or Error if the machine fails
   */
  async run(): Promise<void> {
    const { request, store } = this.#options;
    let image: ImageFile | null = null;
    try {
      await this.#prepare();
      const watching = this.#watch();
      try {
        image = await this.#phases();
      } finally {
        this.#over.abort();
        await watching;
      }
    } finally {
      const hasImage = image !== null;
      await this.#cleanUp(hasImage);
      const after = this.#broken ? null : { ...(await measureSize([store.layers])), atMs: currentMs() };
      await store.release(after);
    }
    const { digest, env, user, workdir, bytes, files } = image;
    await writeFile(join(request.output, "image.json"), `${JSON.stringify(image)}\n`, { flag: "wx" });
    this.#options.emit({ kind: "built", digest, config: { env, user, workdir, bytes, files } });
  }

  async #prepare(): Promise<void> {
    const { request, store, installation } = this.#options;
    const inside: InsideRequest = {
      dockerfile: request.dockerfile,
      target: request.target,
      args: request.args,
      secrets: Object.keys(request.secrets),
      pull: request.pull,
      imageBytes: request.limits.imageBytes,
      imageFiles: request.limits.imageFiles,
    };
    await makePlaces(this.#places, { uid: store.uid, request: inside, secrets: request.secrets });
    await makeGroups(installation.groupParents, request.id, request.limits);
  }

  async #phases(): Promise<ImageFile> {
    const image = await this.#build();
    this.#options.emit({ kind: "exporting" });
    return this.#export(image);
  }

  /** The first phase. @returns the image's id in buildah's store */
  async #build(): Promise<string> {
    const { installation, request, stages } = this.#options;
    const egress = await openEgress(this.#places.proxySocket, {
      policy: {
        allow: request.egressAllow,
        secretNames: [],
        serviceUrl: null,
        serviceHosts: installation.serviceHosts,
        llmUpstream: null,
      },
      network: installation.network,
      refused: (host, reason) => this.#refuse(host, reason),
    });
    let end: PhaseEnd;
    try {
      end = await this.#phase("build", { files: request.contextDirectory }, (chunk) => this.#take(chunk));
    } finally {
      egress.close();
    }
    this.#output.end();
    this.#check();
    if (end.reports[0] !== "up") throw unavailable(end.complaint);
    if (end.reports[1] !== "context") throw buildError({ code: "context_missing", path: "." });
    this.#broken = false;
    const image = end.reports.find((line) => line.startsWith("image "))?.slice("image ".length);
    if (end.code === 0 && image !== undefined) return image;
    const failure = classifyFailure({
      code: end.code,
      output: this.#output,
      refused: this.#refused,
      diskBytes: request.limits.diskBytes,
      stages,
    });
    this.#broken = failure.code === "builder_unavailable";
    throw buildError(failure);
  }

  /** The second phase. All processes of the first one have ended. */
  async #export(image: string): Promise<ImageFile> {
    const { request, store } = this.#options;
    await chown(request.output, store.uid, store.uid);
    let stdout = "";
    const end = await this.#phase("export", { text: image }, (chunk) => {
      stdout = (stdout + chunk.toString()).slice(-4096);
    });
    this.#check();
    const [up, report] = end.reports;
    if (up !== "up" || report === undefined) throw unavailable(end.complaint || stdout);
    const exportResult = decodeExported(report);
    this.#broken = exportResult.kind === "failed";
    if (exportResult.kind === "failed") throw unavailable(exportResult.problem);
    if (exportResult.kind === "too_large") {
      const limit = exportResult.what === "image" ? request.limits.imageBytes : request.limits.imageFiles;
      throw buildError({
        code: "too_large",
        what: exportResult.what,
        limit: exportResult.what === "path" ? PATH_MAX : limit,
      });
    }
    const { digest, env, user, workdir, bytes, files } = exportResult;
    return { version: 1, digest, env: parseEnvironment(env), user, workdir, bytes, files };
  }

  async #phase(
    phase: Phase,
    input: PhaseRequest["input"],
    output: (chunk: Buffer) => void,
  ): Promise<PhaseEnd> {
    const { installation, tools, request, store } = this.#options;
    this.#check();
    this.#broken = true;
    const end = await runPhase({
      phase,
      tools,
      places: this.#places,
      mounts: [
        { name: "layers", source: store.layers },
        { name: "scratch", source: phase === "build" ? this.#places.scratch : this.#places.exportScratch },
        { name: "node", source: installation.nodePath },
        { name: "forwarder.cjs", source: here("../../../daemon/programs/forwarder.cjs") },
        { name: "programs", source: here("inside") },
        ...(phase === "export" ? [{ name: "output", source: request.output } as const] : []),
      ],
      limits: request.limits,
      uid: store.uid,
      gate: installation.gate,
      filter: installation.filter,
      groups: this.#groups,
      input,
      output,
      started: (child) => {
        this.#child = child;
        // It was stopped in between.
        if (this.#verdict !== null) child.kill("SIGKILL");
      },
    });
    await killPhase(this.#child, this.#places.run);
    this.#child = null;
    return end;
  }

  /** Throws the reason for which the build was ended, if there is one. */
  #check(): void {
    this.#verdict ??= this.#limits?.kernelVerdict() ?? null;
    if (this.#verdict !== null) throw buildError(this.#verdict);
  }

  #take(chunk: Buffer): void {
    const { logBytes } = this.#options.request.limits;
    const left = logBytes - this.#logged;
    this.#logged += chunk.length;
    if (left > 0) this.#output.write(chunk.subarray(0, left));
    if (chunk.length > left) this.stop({ code: "too_large", what: "log", limit: logBytes });
  }

  #refuse(host: string, reason: string): void {
    if (this.#refused.length >= REFUSED_MAX || this.#refused.includes(host)) return;
    this.#refused.push(host);
    this.#output.note(`egress proxy: refused ${host}: ${reason}`);
  }

  #limits: LimitWatch | null = null;

  /** Looks at the build until it is over. */
  async #watch(): Promise<void> {
    const { installation, request, store } = this.#options;
    const limits = new LimitWatch({
      limits: request.limits,
      groups: this.#groups,
      unenforced: installation.unenforced,
      directories: [store.layers, this.#places.disk, request.output],
      before: store,
      startedMs: currentMs(),
      launcher: () => this.#child?.pid ?? null,
    });
    this.#limits = limits;
    while (!this.#over.signal.aborted) {
      // eslint-disable-next-line no-await-in-loop -- one look after the other
      const failure = await limits.look(currentMs()).catch(() => null);
      if (failure !== null) this.stop(failure);
      // eslint-disable-next-line no-await-in-loop
      await sleep(LOOK_MS, undefined, { signal: this.#over.signal }).catch(() => undefined);
    }
  }

  async #cleanUp(keepOutput: boolean): Promise<void> {
    const { request } = this.#options;
    await killPhase(this.#child, this.#places.run);
    await removeGroups(this.#groups);
    await removePlaces(this.#places);
    await takeBackOutput(request.output, keepOutput);
  }
}

// eslint-disable-next-line no-restricted-properties -- the build's deadline is on the machine's clock, like its processes
const currentMs = (): number => Date.now();

const unavailable = (reason: string): Error =>
  buildError({ code: "builder_unavailable", problem: `no build can be started: ${reason.slice(-1000)}` });

/** The output belongs to the service again: the result, or nothing. */
const takeBackOutput = async (output: string, keep: boolean): Promise<void> => {
  const owner = process.geteuid?.() ?? 0;
  await chown(output, owner, owner);
  const entries = await readdir(output);
  if (
    keep &&
    entries.length === 1 &&
    entries[0] === "root" &&
    (await lstat(join(output, "root"))).isDirectory()
  )
    return;
  await Promise.all(entries.map((name) => removeTree(join(output, name))));
  if (keep) throw unavailable("the result is not a directory");
};

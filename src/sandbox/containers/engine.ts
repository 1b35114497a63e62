/**
 * A container engine of this machine, over its unix socket: Docker, or Podman with Docker's API. It knows containers and
 * one kind of image, and nothing about sandboxes.
 *
 *  C1 Every call has a deadline, except the one that waits for a container's end.
 *  C2 Every failure is an `EngineFailure` whose message says what to do.
 *  C3 Only containers and images with our own labels are listed or removed.
 */
import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import * as Schema from "effect/Schema";
import { pack } from "tar-stream";
import type { Control } from "../machine/limits/cgroup.ts";
import { askEngine, type EngineRequest, Refusal } from "./client.ts";
import type { ContainerOptions } from "./options.ts";

/** Where an engine has a container. It outlives the service, in the sandbox's record. */
export interface ContainerPlace {
  /** The engine's socket. */
  readonly socket: string;
  readonly name: string;
}

/** Why an engine did not do what was asked. */
export class EngineFailure extends Error {
  readonly reason: "absent" | "denied" | "disk_full" | "late" | "missing" | "refused";
  constructor(reason: EngineFailure["reason"], message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

/** What an engine says about itself. */
export interface EngineFacts {
  readonly product: "Docker" | "Podman";
  readonly version: string;
  /** The programs of its runtimes, by name. Empty: it does not say. */
  readonly runtimes: Readonly<Record<string, string>>;
  readonly defaultRuntime: string;
  /** E.g. `name=seccomp,profile=default`, `name=rootless`, `name=userns`. */
  readonly security: readonly string[];
  /** The limits that it can enforce. */
  readonly controls: ReadonlySet<Control>;
  readonly os: string;
}

/** A container's state. */
export interface ContainerState {
  readonly running: boolean;
  /** Of its first program, as this machine counts. 0: it does not run. */
  readonly pid: number;
  readonly exitCode: number;
  /** Whether the kernel killed a process of it for lack of memory. */
  readonly outOfMemory: boolean;
}

/** A container with one of our labels. */
export interface OwnContainer {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly running: boolean;
}

/** The content of an image of ours: directories, and links by path. */
export interface RootShape {
  readonly directories: readonly string[];
  readonly links: Readonly<Record<string, string>>;
}

/** Deadline of one call, in milliseconds. Starting a container on a busy machine takes seconds. */
const CALL_MS = 60_000;
/** A container that is about to end is gone after a few of them. */
const REMOVE_TRIES = 10;
const REMOVE_AGAIN_MS = 300;
/** How much of an engine's message is kept, in characters. */
const MESSAGE_MAX = 500;
/** With a registry's name, because Podman would look for it at a public one. */
const ROOT_REPOSITORY = "localhost/platform-sandbox-root";
/** On every image of ours. */
const ROOT_LABEL = "platform.root";

const Facts = Schema.Struct({
  ServerVersion: Schema.String,
  OSType: Schema.optionalKey(Schema.String),
  Runtimes: Schema.optionalKey(
    Schema.NullOr(Schema.Record(Schema.String, Schema.Struct({ path: Schema.optionalKey(Schema.String) }))),
  ),
  DefaultRuntime: Schema.optionalKey(Schema.String),
  SecurityOptions: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String))),
  MemoryLimit: Schema.optionalKey(Schema.Boolean),
  PidsLimit: Schema.optionalKey(Schema.Boolean),
  CpuCfsQuota: Schema.optionalKey(Schema.Boolean),
});

const Version = Schema.Struct({
  Components: Schema.optionalKey(Schema.Array(Schema.Struct({ Name: Schema.String }))),
});

const State = Schema.Struct({
  State: Schema.Struct({
    Running: Schema.Boolean,
    Pid: Schema.Finite,
    ExitCode: Schema.Finite,
    OOMKilled: Schema.Boolean,
  }),
});

const Containers = Schema.Array(
  Schema.Struct({
    Names: Schema.Array(Schema.String),
    Labels: Schema.NullOr(Schema.Record(Schema.String, Schema.String)),
    State: Schema.String,
  }),
);

const Images = Schema.Array(
  Schema.Struct({ RepoTags: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String))) }),
);

const Ended = Schema.Struct({ StatusCode: Schema.Finite });

/** A line of what an engine says while it makes an image. */
const IMPORT_PROBLEM = /"error":"([^"]*)"/;

const decodeCode = Schema.decodeUnknownOption(Schema.Struct({ code: Schema.String }));

const containerPath = (name: string): string => `/containers/${encodeURIComponent(name)}`;
/** An image's name has slashes, which stay. */
const imagePath = (name: string): string => `/images/${encodeURI(name)}`;
const labelFilter = (label: string): string => JSON.stringify({ label: [label] });

export class ContainerEngine {
  readonly socket: string;

  /** @param socket the path of the engine's unix socket */
  constructor(socket: string) {
    this.socket = socket;
  }

  /** @throws EngineFailure `absent` or `denied` if the engine does not answer */
  async facts(): Promise<EngineFacts> {
    const purpose = "asked about itself";
    const facts = await this.#read(purpose, { method: "GET", path: "/info" }, Facts);
    const version = await this.#read(purpose, { method: "GET", path: "/version" }, Version);
    const controls = { memory: facts.MemoryLimit, processes: facts.PidsLimit, cpu: facts.CpuCfsQuota };
    return {
      product: version.Components?.some(({ Name }) => /podman/i.test(Name)) === true ? "Podman" : "Docker",
      version: facts.ServerVersion,
      runtimes: Object.fromEntries(
        Object.entries(facts.Runtimes ?? {}).map(([name, { path }]) => [name, path ?? name]),
      ),
      defaultRuntime: facts.DefaultRuntime ?? "",
      security: facts.SecurityOptions ?? [],
      controls: new Set(
        (["memory", "processes", "cpu"] as const).filter((control) => controls[control] === true),
      ),
      os: facts.OSType ?? "linux",
    };
  }

  /**
   * Makes an image of directories and links alone, once for each shape. Idempotent.
   * @returns its name
   */
  async ensureRoot(shape: RootShape): Promise<string> {
    const tag = createHash("sha256").update(JSON.stringify(shape)).digest("hex").slice(0, 16);
    const image = `${ROOT_REPOSITORY}:${tag}`;
    const existing = await this.#call("asked for an image", {
      method: "GET",
      path: `${imagePath(image)}/json`,
    }).catch(ifMissing(null));
    if (existing === null) {
      const purpose = "given an image";
      // Podman ignores a tag of its own parameter.
      const query = { fromSrc: "-", repo: image, changes: `LABEL ${ROOT_LABEL}=1` };
      const body = await makeArchive(shape);
      const answer = await this.#call(purpose, { method: "POST", path: "/images/create", query, body });
      const problem = IMPORT_PROBLEM.exec(answer)?.[1];
      if (problem !== undefined) throw this.#failure(purpose, new Error(problem));
    }
    return image;
  }

  /** Removes the images of ours that no container uses. */
  async pruneRoots(): Promise<void> {
    const purpose = "asked to remove images";
    const query = { filters: labelFilter(ROOT_LABEL) };
    const images = await this.#read(purpose, { method: "GET", path: "/images/json", query }, Images);
    const tags = images.flatMap(({ RepoTags: names }) => names ?? []);
    // Another service may use one at this moment. The engine then refuses its removal.
    await Promise.allSettled(
      tags.map((name) => this.#call(purpose, { method: "DELETE", path: imagePath(name) })),
    );
  }

  /** Makes a container. @throws EngineFailure `missing` if its image is gone */
  async create(
    name: string,
    options: Pick<ContainerOptions, "Image"> & Partial<ContainerOptions>,
  ): Promise<void> {
    await this.#call("asked for a container", {
      method: "POST",
      path: "/containers/create",
      query: { name },
      body: options,
    });
  }

  /** Starts a container. Its first program runs, or has already ended. */
  async start(name: string): Promise<void> {
    await this.#call("asked to start a container", { method: "POST", path: `${containerPath(name)}/start` });
  }

  /** Null if the container does not exist. */
  async state(name: string): Promise<ContainerState | null> {
    const container = await this.#read(
      "asked about a container",
      { method: "GET", path: `${containerPath(name)}/json` },
      State,
    ).catch(ifMissing(null));
    if (container === null) return null;
    const { Running: running, Pid: pid, ExitCode: exitCode, OOMKilled: outOfMemory } = container.State;
    return { running, pid, exitCode, outOfMemory };
  }

  /** Settles when the container has ended, with its exit code. Null if the engine stopped answering, or removed it. */
  async ended(name: string): Promise<number | null> {
    try {
      const request = { method: "POST", path: `${containerPath(name)}/wait` } as const;
      return decode(Ended, await askEngine(this.socket, request)).StatusCode;
    } catch {
      return null;
    }
  }

  /** Sends a signal to the first program of a container. It may have ended. */
  async signal(name: string, signal: "SIGTERM"): Promise<void> {
    await this.#call("asked to signal a container", {
      method: "POST",
      path: `${containerPath(name)}/kill`,
      query: { signal },
    });
  }

  /**
   * Removes a container, running or not, with everything that the engine keeps of it. Idempotent.
   * @param tries how often the engine is asked, if it refuses
   */
  async remove(name: string, tries = REMOVE_TRIES): Promise<void> {
    try {
      await this.#call("asked to remove a container", {
        method: "DELETE",
        path: containerPath(name),
        query: { force: "true", v: "true" },
      });
    } catch (error) {
      if (!(error instanceof EngineFailure)) throw error;
      if (error.reason === "missing") return;
      // Podman refuses to remove a container that is about to end.
      if (tries <= 1 || error.reason !== "refused") throw error;
      await sleep(REMOVE_AGAIN_MS);
      await this.remove(name, tries - 1);
    }
  }

  /** All containers with this label, running or not. @param label `name`, or `name=value` */
  async containers(label: string): Promise<readonly OwnContainer[]> {
    const query = { all: "true", filters: labelFilter(label) };
    const request = { method: "GET", path: "/containers/json", query } as const;
    const containers = await this.#read("asked for its containers", request, Containers);
    return containers.map(({ Names: [name = ""], Labels: labels, State: state }) => ({
      name: name.replace(/^\//, ""),
      labels: labels ?? {},
      running: state === "running",
    }));
  }

  /** @param purpose what the engine was asked, for the message of a failure */
  async #call(purpose: string, request: EngineRequest): Promise<string> {
    const signal = AbortSignal.timeout(CALL_MS);
    try {
      return await askEngine(this.socket, { ...request, signal });
    } catch (error) {
      throw this.#failure(purpose, error, signal.aborted);
    }
  }

  async #read<A>(purpose: string, request: EngineRequest, schema: Schema.Codec<A, unknown>): Promise<A> {
    const answer = await this.#call(purpose, request);
    try {
      return decode(schema, answer);
    } catch (error) {
      throw this.#failure(purpose, error);
    }
  }

  #failure(purpose: string, error: unknown, isLate = false): EngineFailure {
    const where = `the container engine at ${this.socket}`;
    const fail = (reason: EngineFailure["reason"], message: string) =>
      new EngineFailure(reason, message, error);
    if (isLate) return fail("late", `${where} gave no answer in ${CALL_MS / 1000} s when it was ${purpose}`);
    const errorCode = decodeCode(error);
    const code = errorCode._tag === "Some" ? errorCode.value.code : null;
    if (code === "ENOENT" || code === "ECONNREFUSED" || code === "ENOTSOCK") {
      return fail(
        "absent",
        `${where} does not answer. Start it (for Docker: systemctl start docker), or name its socket in PLATFORM_DOCKER_SOCKET`,
      );
    }
    if (code === "EACCES" || code === "EPERM") {
      return fail("denied", `this user may not use ${where}. Run the service as root`);
    }
    const message = (error instanceof Error ? error.message : String(error)).trim().slice(0, MESSAGE_MAX);
    if (/no space left on device/i.test(message)) {
      return fail("disk_full", `the disk of ${where} is full (docker info names its directory): ${message}`);
    }
    const isMissing = error instanceof Refusal && error.status === 404;
    return fail(isMissing ? "missing" : "refused", `${where} failed when it was ${purpose}: ${message}`);
  }
}

/** The answer for what does not exist. Any other failure stays one. */
const ifMissing =
  <A>(value: A) =>
  (error: unknown): A => {
    if (error instanceof EngineFailure && error.reason === "missing") return value;
    throw error;
  };

/** @throws if the answer is not of this form */
const decode = <A>(schema: Schema.Codec<A, unknown>, answer: string): A =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema))(answer);

/** A tar archive that is the same for the same shape. */
const makeArchive = async ({ directories, links }: RootShape): Promise<Buffer> => {
  const archive = pack();
  const mtime = new Date(0);
  for (const name of directories) archive.entry({ name, type: "directory", mode: 0o755, mtime });
  for (const [name, linkname] of Object.entries(links)) {
    archive.entry({ name, type: "symlink", linkname, mtime });
  }
  archive.finalize();
  return buffer(archive);
};

const engines = new Map<string, ContainerEngine>();

/** The engine at a socket. */
export const engineAt = (socket: string): ContainerEngine => {
  const engine = engines.get(socket) ?? new ContainerEngine(socket);
  engines.set(socket, engine);
  return engine;
};

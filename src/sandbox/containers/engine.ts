/**
 * A container engine of this machine, over its unix socket: Docker, or Podman with Docker's API. It knows containers and
 * one kind of image, and nothing about sandboxes.
 *
 *  C1 Every call has a deadline, except the one that waits for a container's end.
 *  C2 Every failure is an `EngineFailure` whose message says what to do.
 *  C3 Only containers and images with our own labels are listed or removed.
 */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import * as Schema from "effect/Schema";
import { pack } from "tar-stream";
import type { Control } from "../machine/cgroup.ts";

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
const decodeFacts = Schema.decodeUnknownSync(Facts);

const Refusal = Schema.Struct({
  code: Schema.optionalKey(Schema.String),
  statusCode: Schema.optionalKey(Schema.Finite),
  json: Schema.optionalKey(Schema.Unknown),
  message: Schema.optionalKey(Schema.String),
});
const decodeRefusal = Schema.decodeUnknownOption(Refusal);
const decodeMessage = Schema.decodeUnknownOption(Schema.Struct({ message: Schema.String }));

/** Loads the client when the first engine is asked: it is large, and other providers do not need it. */
const clientOf = async (socketPath: string): Promise<Docker> => {
  const { default: Client } = await import("dockerode");
  return new Client({ socketPath });
};

export class ContainerEngine {
  readonly socket: string;
  readonly #client: () => Promise<Docker>;

  /** @param socket the path of the engine's unix socket */
  constructor(socket: string) {
    this.socket = socket;
    let client: Promise<Docker> | null = null;
    this.#client = () => (client ??= clientOf(socket));
  }

  /** @throws EngineFailure `absent` or `denied` if the engine does not answer */
  async facts(): Promise<EngineFacts> {
    const [found, version] = await this.#call("asked about itself", async (client) => [
      decodeFacts(await client.info()),
      (await client.version()) as { readonly Components?: readonly { readonly Name: string }[] },
    ]);
    const controls = { memory: found.MemoryLimit, processes: found.PidsLimit, cpu: found.CpuCfsQuota };
    return {
      product: version.Components?.some(({ Name }) => /podman/i.test(Name)) === true ? "Podman" : "Docker",
      version: found.ServerVersion,
      runtimes: Object.fromEntries(
        Object.entries(found.Runtimes ?? {}).map(([name, { path }]) => [name, path ?? name]),
      ),
      defaultRuntime: found.DefaultRuntime ?? "",
      security: found.SecurityOptions ?? [],
      controls: new Set(
        (["memory", "processes", "cpu"] as const).filter((control) => controls[control] === true),
      ),
      os: found.OSType ?? "linux",
    };
  }

  /**
   * Makes an image of directories and links alone, once for each shape. Idempotent.
   * @returns its name
   */
  async ensureRoot(shape: RootShape): Promise<string> {
    const tag = createHash("sha256").update(JSON.stringify(shape)).digest("hex").slice(0, 16);
    const image = `${ROOT_REPOSITORY}:${tag}`;
    const exists = await this.#call("asked for an image", (client) =>
      client
        .getImage(image)
        .inspect()
        .then(() => true, ifMissing(false)),
    );
    if (!exists) {
      await this.#call("given an image", async (client) => {
        // Podman ignores a tag of its own parameter.
        const options = { repo: image, changes: `LABEL ${ROOT_LABEL}=1` };
        const answer = await client.importImage(Readable.from([await archiveOf(shape)]), options);
        const said = await text(answer);
        const problem = /"error":"([^"]*)"/.exec(said)?.[1];
        if (problem !== undefined) throw new Error(problem);
      });
    }
    return image;
  }

  /** Removes the images of ours that no container uses. */
  async pruneRoots(): Promise<void> {
    await this.#call("asked to remove images", async (client) => {
      const found = await client.listImages({ filters: { label: [ROOT_LABEL] } });
      const tags = found.flatMap(({ RepoTags: names }) => names ?? []);
      // Another service may use one at this moment. The engine then refuses its removal.
      await Promise.allSettled(tags.map((name) => client.getImage(name).remove()));
    });
  }

  /** Makes a container. @throws EngineFailure `missing` if its image is gone */
  async create(name: string, options: Docker.ContainerCreateOptions): Promise<void> {
    await this.#call("asked for a container", (client) => client.createContainer({ ...options, name }));
  }

  /** Starts a container. Its first program runs, or has already ended. */
  async start(name: string): Promise<void> {
    await this.#call("asked to start a container", (client) => client.getContainer(name).start());
  }

  /** Null: the container does not exist. */
  async state(name: string): Promise<ContainerState | null> {
    return this.#call("asked about a container", (client) =>
      client
        .getContainer(name)
        .inspect()
        .then(
          ({ State: state }) => ({
            running: state.Running,
            pid: state.Pid,
            exitCode: state.ExitCode,
            outOfMemory: state.OOMKilled,
          }),
          ifMissing(null),
        ),
    );
  }

  /** Settles when the container has ended, with its exit code. Null: the engine stopped answering, or removed it. */
  async ended(name: string): Promise<number | null> {
    try {
      const { StatusCode: code } = (await (await this.#client()).getContainer(name).wait()) as {
        readonly StatusCode: number;
      };
      return code;
    } catch {
      return null;
    }
  }

  /** Sends a signal to the first program of a container. It may have ended. */
  async signal(name: string, signal: "SIGTERM"): Promise<void> {
    await this.#call("asked to signal a container", (client) => client.getContainer(name).kill({ signal }));
  }

  /**
   * Removes a container, running or not, with everything that the engine keeps of it. Idempotent.
   * @param tries how often the engine is asked, if it refuses
   */
  async remove(name: string, tries = REMOVE_TRIES): Promise<void> {
    try {
      await this.#call("asked to remove a container", (client) =>
        client
          .getContainer(name)
          .remove({ force: true, v: true })
          .then(() => undefined, ifMissing(undefined)),
      );
    } catch (error) {
      // Podman refuses to remove a container that is about to end.
      if (tries <= 1 || !(error instanceof EngineFailure && error.reason === "refused")) throw error;
      await sleep(REMOVE_AGAIN_MS);
      await this.remove(name, tries - 1);
    }
  }

  /** All containers with this label, running or not. @param label `name`, or `name=value` */
  async containers(label: string): Promise<readonly OwnContainer[]> {
    const found = await this.#call("asked for its containers", (client) =>
      client.listContainers({ all: true, filters: { label: [label] } }),
    );
    return found.map(({ Names: [name = ""], Labels: labels, State: state }) => ({
      name: name.replace(/^\//, ""),
      labels,
      running: state === "running",
    }));
  }

  async #call<A>(asked: string, body: (client: Docker) => Promise<A>): Promise<A> {
    const deadline = AbortSignal.timeout(CALL_MS);
    try {
      return await Promise.race([body(await this.#client()), rejection(deadline)]);
    } catch (error) {
      throw this.#failure(asked, error, deadline.aborted);
    }
  }

  #failure(asked: string, error: unknown, isLate: boolean): EngineFailure {
    const where = `the container engine at ${this.socket}`;
    const fail = (reason: EngineFailure["reason"], message: string) =>
      new EngineFailure(reason, message, error);
    if (isLate) return fail("late", `${where} gave no answer in ${CALL_MS / 1000} s when it was ${asked}`);
    const decoded = decodeRefusal(error);
    const refusal = decoded._tag === "Some" ? decoded.value : {};
    if (refusal.code === "ENOENT" || refusal.code === "ECONNREFUSED" || refusal.code === "ENOTSOCK") {
      return fail(
        "absent",
        `${where} does not answer. Start it (for Docker: systemctl start docker), or name its socket in PLATFORM_DOCKER_SOCKET`,
      );
    }
    if (refusal.code === "EACCES" || refusal.code === "EPERM") {
      return fail("denied", `this user may not use ${where}. Run the service as root`);
    }
    const answer = decodeMessage(refusal.json);
    const told = answer._tag === "Some" ? answer.value.message : (refusal.message ?? String(error));
    const said = told.trim().slice(0, MESSAGE_MAX);
    if (/no space left on device/i.test(said)) {
      return fail("disk_full", `the disk of ${where} is full (docker info names its directory): ${said}`);
    }
    return fail(
      refusal.statusCode === 404 ? "missing" : "refused",
      `${where} failed when it was ${asked}: ${said}`,
    );
  }
}

/** The answer for what does not exist. Any other failure stays one. */
const ifMissing =
  <A>(value: A) =>
  (error: { readonly statusCode?: number }): A => {
    if (error.statusCode === 404) return value;
    throw error;
  };

const rejection = (deadline: AbortSignal): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>();
  deadline.addEventListener("abort", () => reject(new Error("no answer")));
  return promise;
};

/** A tar archive that is the same for the same shape. */
const archiveOf = async ({ directories, links }: RootShape): Promise<Buffer> => {
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

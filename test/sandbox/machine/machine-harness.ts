/**
 * Runs the conformance suite and the probes over `local`, in both forms, as root and as an ordinary user, and over
 * `gvisor` and `docker` as root. The cases run in the test's process as its own user; a root process runs them once more in a child
 * of another user (machine-runner.ts, bundled into a directory which that user can read).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readRecord, sandboxIds, sandboxPaths } from "../../../src/sandbox/machine/disk/run-directory.ts";
import { tearDown } from "../../../src/sandbox/machine/disk/teardown.ts";
import { findTools } from "../../../src/sandbox/machine/tools.ts";
import { type Case, runCase } from "../../conformance/sandboxes/sandbox.ts";
import { machineCases, openService } from "./machine-cases.ts";
import { DESCRIPTOR_CASE, plantedIn, withPlanted } from "./machine-descriptors.ts";
import type { MachineSetup } from "./machine-subject.ts";
import { TEST_MS } from "../../support/patience.ts";

/** One case of each part: what shows that a provider is wired, where `local` runs all of them. */
export const SAMPLE_CASES: readonly string[] = [
  "lists a created sandbox as running, with its session, and links to it",
  "destroys a sandbox without a trace, and notifies callers that wait for its end [I9]",
  "lays the sandbox out as the specification does",
  "gives the token to the daemon alone and project secrets to the agent alone [S05]",
  "lets the agent work with git",
  "carries the agent's requests to the service, streams and tunnels included",
  "takes down with the sandbox whatever the agent left running",
];

const path = process.env["PATH"] ?? "";
const tools = findTools(path);
const isRoot = process.geteuid?.() === 0;
/** The user `nobody`, which every Linux system has. */
const OTHER_USER = 65_534;

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** What this machine lacks for a form, null where it lacks nothing. */
const missing = (form: MachineSetup["form"]): string | null => {
  const lacks = [...tools.missing, ...(form === "bubblewrap" && tools.bwrap === null ? ["bwrap"] : [])];
  return lacks.length === 0 ? null : `not installed: ${lacks.join(", ")}`;
};

const setupOf = (
  form: MachineSetup["form"],
  runDir: string,
  { image, runsc = null, socket = "", runtime = null }: Omit<Partial<Suite>, "image"> & Pick<Suite, "image">,
): MachineSetup => ({
  runDir,
  nodePath: process.execPath,
  daemon: here("../stand-in-daemon.mjs"),
  form,
  runsc,
  socket,
  runtime,
  path,
  planted: [],
  image,
  imagesDir: join(directory, "images"),
});

export interface Suite {
  /** The image of all sandboxes, in `imagesDir`. Null: they see the machine's root. */
  readonly image: string | null;
  /** Ends what the sandboxes need, after the last of them. */
  readonly close?: () => Promise<void>;
  /** Makes the image. */
  readonly prepare?: () => Promise<void>;
  /** gVisor's program, for that form. */
  readonly runsc?: string | null;
  /** The engine's socket, for `docker`. */
  readonly socket?: string;
  readonly runtime?: string | null;
  /** Why the machine cannot run the suite. Null if it can. */
  readonly lacks: string | null;
  readonly forms: readonly MachineSetup["form"][];
  /** The forms whose cases another user runs, too. */
  readonly others: readonly MachineSetup["form"][];
  /** The names of the cases that a form runs here. Null, as without it: all. */
  readonly only?: (form: MachineSetup["form"]) => readonly string[] | null;
}

const service = await openService();
const { port } = service.address() as AddressInfo;
/** Below /tmp: a sandbox's uid cannot reach into a home. */
export const directory = await mkdtemp("/tmp/platform-sb-");
await chmod(directory, 0o711);
const planted = plantedIn(directory);

/** Ends what a failed case left running. */
const clearSandboxes = async (runDir: string): Promise<void> => {
  const ids = await sandboxIds(runDir).catch(() => []);
  await Promise.all(
    ids.map(async (id) => {
      const paths = sandboxPaths(runDir, id);
      await tearDown(paths, await readRecord(paths));
    }),
  );
};

const closers: (() => Promise<void>)[] = [];

afterAll(async () => {
  service.close();
  const runDirs = ["", "other-", "planted-"].flatMap((who) =>
    ["bubblewrap", "namespaces", "gvisor", "docker"].map((form) => `${who}${form}`),
  );
  await Promise.all(runDirs.map((name) => clearSandboxes(join(directory, name))));
  await Promise.all(closers.map((close) => close()));
  await rm(directory, { recursive: true, force: true });
});

const results = (lines: AsyncIterable<string>, told: Map<string, PromiseWithResolvers<string | null>>) =>
  (async () => {
    for await (const line of lines) {
      const { name, failure } = JSON.parse(line) as {
        readonly name: string;
        readonly failure: string | null;
      };
      told.get(name)?.resolve(failure);
    }
    for (const one of told.values()) one.resolve("the other user's process ended before this case");
  })();

interface Child {
  readonly runner: string;
  readonly node: string;
  readonly daemon: string;
}

/** Copies what the children need to where the other user can read it, and bundles the cases into one file there. */
const prepareChildren = async (): Promise<Child> => {
  const root = join(directory, "other");
  // The bundle lies as deep as the provider's sources do, which find the entrypoint beside them.
  const runner = join(root, "bundle", "src", "sandbox", "runner.mjs");
  const node = join(root, "node");
  const daemon = join(root, "stand-in-daemon.mjs");
  await mkdir(join(root, "bundle", "src", "sandbox"), { recursive: true });
  await cp(here("../../../daemon"), join(root, "daemon"), { recursive: true });
  await Promise.all([
    cp(process.execPath, node),
    cp(here("../stand-in-daemon.mjs"), daemon),
    // The starter looks for its program beside itself.
    cp(here("../../../src/starter/program.mjs"), join(dirname(runner), "program.mjs")),
    // And so does the provider for the gate.
    cp(here(`../../../src/sandbox/native/${process.arch}`), join(dirname(runner), process.arch), {
      recursive: true,
    }),
    build({
      entryPoints: [here("machine-runner.ts")],
      outfile: runner,
      bundle: true,
      // For packages in CommonJS.
      banner: {
        js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
      },
      platform: "node",
      format: "esm",
      logLevel: "silent",
    }),
  ]);
  return { runner, node, daemon };
};

/** Start the children, all at the file's beginning: each form's cases run beside those of this process. */
const starts: ((child: Child) => Promise<void>)[] = [];
/** A child that runs cases of a form as a user, with planted descriptors; all of them unless one is named. */
interface Runner {
  readonly form: MachineSetup["form"];
  readonly name: string;
  readonly uid: number;
  readonly only?: string;
  readonly image: string | null;
}

/** Registers a form's cases as a child tells of them. @returns what starts that child. */
const inChild = ({ form, name: directoryName, uid, only, image }: Runner) => {
  const runDir = join(directory, directoryName);
  const asked = { ...setupOf(form, runDir, { image }), planted: [...planted.keys()] };
  const told = new Map(
    machineCases(asked, port)
      .filter(({ name }) => only === undefined || name === only)
      .map(({ name }) => [name, Promise.withResolvers<string | null>()]),
  );
  const start = async ({ runner, node, daemon }: Child): Promise<void> => {
    await mkdir(runDir);
    await chown(runDir, uid, uid);
    const setup = { ...asked, nodePath: node, daemon };
    const child = spawn(node, [runner, JSON.stringify(setup), ...(only === undefined ? [] : [only])], {
      uid,
      gid: uid,
      cwd: "/",
      env: { PATH: path, HOME: runDir },
      stdio: withPlanted(["ignore", "pipe", "inherit"], planted),
    });
    const { stdout } = child;
    if (stdout === null) throw new Error("the child's output is piped");
    await once(child, "spawn");
    void results(createInterface({ input: stdout }), told);
  };
  for (const [name, { promise }] of told) {
    it(name, { timeout: TEST_MS }, async () => {
      expect(await promise).toBeNull();
    });
  }
  return start;
};

/** The cases of a suite's form, without those that it leaves out. */
const casesOf = (suite: Suite, form: MachineSetup["form"]): readonly Case[] => {
  const all = machineCases(setupOf(form, join(directory, form), suite), port);
  const only = suite.only?.(form) ?? null;
  if (only === null) return all;
  const strangers = only.filter((name) => all.every((one) => one.name !== name));
  if (strangers.length > 0) throw new Error(`not among all cases: ${strangers.join(", ")}`);
  return all.filter(({ name }) => only.includes(name));
};

/** Registers the suite's tests. */
export const machineSuites = (suite: Suite): void => {
  const { image, prepare, lacks: lacking, forms, others } = suite;
  if (suite.close !== undefined) closers.push(suite.close);
  beforeAll(async () => {
    await prepare?.();
    if (starts.length === 0) return;
    const child = await prepareChildren();
    await Promise.all(starts.map((start) => start(child)));
  });
  for (const form of forms) {
    const lacks = lacking ?? missing(form);
    const what = `${form === "gvisor" || form === "docker" ? "" : "local, "}${form}${image === null ? "" : ", on an image"}`;
    describe.skipIf(lacks !== null)(
      `${what}, as ${isRoot ? "root" : "an ordinary user"} ${lacks ?? ""}`,
      () => {
        for (const one of casesOf(suite, form)) it(one.name, () => runCase(one));
      },
    );
    const runners: readonly (readonly [string, Omit<Runner, "form" | "image">])[] = [
      ...(others.includes(form)
        ? [["as another user", { name: `other-${form}`, uid: OTHER_USER }] as const]
        : []),
      // Files have other numbers inside gVisor, so the case could not fail there. An engine's own process starts containers.
      ...(form === "gvisor" || form === "docker"
        ? []
        : [
            [
              "as root with planted descriptors",
              { name: `planted-${form}`, uid: 0, only: DESCRIPTOR_CASE },
            ] as const,
          ]),
    ];
    for (const [who, runner] of runners) {
      describe.skipIf(lacks !== null || !isRoot)(
        `${what}, ${who} ${lacks ?? (isRoot ? "" : "(only root can do this)")}`,
        () => {
          const start = inChild({ form, image, ...runner });
          if (lacks === null && isRoot) starts.push(start);
        },
      );
    }
  }
};

/** Which program of its agent runtime a sandbox is started with. */
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sandboxLayout, type OpenedImage, type Parts } from "../../src/sandbox/machine/boot/layout.ts";
import { openRuntime } from "../../src/sandbox/machine/boot/runtime.ts";
import { sandboxPaths } from "../../src/sandbox/machine/disk/run-directory.ts";
import { type RuntimeFacts, RuntimeStore } from "../../src/sandbox/runtimes/store.ts";
import { PLAIN_RUNTIME } from "../support/machine/plain-runtime.ts";

const PARTS: Parts = {
  node: "/node",
  daemon: "/daemon",
  entrypoint: "/entrypoint",
  commandLine: "/platform",
  agentBinaries: ["/parts/brought"],
  settings: {},
  library: {},
};
const START = { command: ["{node}", "{own}/one/main.js"], variables: { ONE_HOME: "{beside}" } };

/** Long after each was added, ms since the epoch. */
const LATER = 8e15;

let home: string;
let runtimes: RuntimeStore;
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "runtime-store-"));
  // Sandboxes of a root service have users of their own.
  chmodSync(home, 0o755);
  runtimes = new RuntimeStore(path.join(home, "runtimes"));
});
afterEach(() => rmSync(home, { recursive: true }));

const add = (version: string, more: Partial<RuntimeFacts> = {}) =>
  runtimes.add("one", async (draft) => {
    await mkdir(path.join(draft, "root"));
    await writeFile(path.join(draft, "root", "version"), version);
    const digest = `sha256:${version.slice(0, 1).repeat(64)}`;
    return { digest, version, integrity: "sha512-x", packages: 1, bytes: 1, ...more };
  });

const launch = (program: string) => ({
  ...PLAIN_RUNTIME,
  command: [program],
  variables: { OTHER: "kept" },
  packaged: { name: "one", start: START },
});
const open = (program = "no-such-program", image: OpenedImage | null = null) =>
  openRuntime({ runtimes, parts: PARTS }, launch(program), image);

it("is the version that was added last, seen read-only at a place of its own", async () => {
  await add("1.0.0");
  const { root } = await add("2.0.0");
  const { launch: started, tree } = await open();
  const place = "/opt/platform/runtimes/one/2.0.0";
  expect(started).toMatchObject({
    command: ["/opt/platform/lib/node", `${place}/own/node_modules/one/main.js`],
    variables: { OTHER: "kept", ONE_HOME: `${place}/beside/node_modules` },
  });
  const steps = sandboxLayout(sandboxPaths(home, "x"), PARTS, { image: null, runtime: tree });
  const targets = steps.map(({ target }) => target);
  expect(steps).toContainEqual({ kind: "read-only-bind", source: root, target: place });
  // Every user can enter the directories above it.
  for (const above of ["/opt/platform/runtimes", "/opt/platform/runtimes/one"])
    expect(targets.indexOf(above)).toBeLessThan(targets.indexOf(place));
  expect(targets.at(-1)).toBe("/");
});

it("stays for a sandbox that has an older version, and goes with the sandbox", async () => {
  const { digest } = await add("1.0.0");
  await add("2.0.0");
  const place = path.join(home, "runtimes", digest.replace(":", "-"));
  await runtimes.prune(new Set([digest]), LATER);
  expect(existsSync(place)).toBe(true);
  await runtimes.prune(new Set(), LATER);
  expect(existsSync(place)).toBe(false);
  expect((await open()).tree).not.toBeNull();
});

it("is the program on the PATH inside where the node has none: our own, the machine's or the image's", async () => {
  expect(await open("brought")).toEqual({ launch: launch("brought"), tree: null });
  expect((await open("sh")).tree).toBeNull();
  const image = { root: path.join(home, "image"), path: "/tools:/bin", bundle: "", digest: "", env: {} };
  await mkdir(path.join(image.root, "tools"), { recursive: true });
  await writeFile(path.join(image.root, "tools", "theirs"), "");
  expect((await open("theirs", image)).tree).toBeNull();
});

it("starts as the files of an entry of a registry say, and by no program of the name on the PATH", async () => {
  const entry = { ...launch("sh"), packaged: { name: "one", start: null } };
  const opened = () => openRuntime({ runtimes, parts: PARTS }, entry, null);
  await expect(opened()).rejects.toThrow(
    "this node has no runtime one. An operator adds it there with `platform runtimes add one --registry REGISTRY`",
  );
  await add("1.0.0", {
    start: { command: ["{place}/own/bin/one", "acp"], variables: { ONE_NODE: "{node}" } },
  });
  expect((await opened()).launch).toMatchObject({
    command: ["/opt/platform/runtimes/one/1.0.0/own/bin/one", "acp"],
    variables: { OTHER: "kept", ONE_NODE: "/opt/platform/lib/node" },
  });
});

it("refuses a sandbox by name where neither the node nor the sandbox has the program", async () => {
  await expect(open()).rejects.toThrow(
    "this node has no runtime one. An operator adds it there with `platform runtimes add one@VERSION`, or the project's environment brings no-such-program",
  );
});

/** How a kind of isolation is chosen on this machine, and why one is refused. */
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dockerKind } from "../../../src/sandbox/docker/docker.ts";
import { gvisorKind } from "../../../src/sandbox/gvisor/gvisor.ts";
import { findRunsc } from "../../../src/sandbox/gvisor/runsc.ts";
import { localKinds } from "../../../src/sandbox/local/local.ts";
import { openInstallation } from "../../../src/sandbox/machine/boot/trial.ts";
import { findTools } from "../../../src/sandbox/machine/tools.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { machineOptions, type MachineSetup } from "../machine/machine-subject.ts";

const path = process.env["PATH"] ?? "";
let directory = "";

beforeAll(async () => {
  // Below /tmp: a sandbox's uid cannot reach into a home.
  directory = await mkdtemp("/tmp/platform-kd-");
  await chmod(directory, 0o711);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** A program that says what a release of `runsc` says. As in gVisor, `flags` ends with an error code. */
const release = async (version: string, platforms: string): Promise<string> => {
  const file = join(directory, `runsc-${version}`);
  const script = `#!/bin/sh
case $1 in
  --version) echo "runsc version ${version}" ;;
  flags) echo "  -platform string: ${platforms}" >&2; exit 2 ;;
esac
`;
  await writeFile(file, script, { mode: 0o755 });
  return file;
};

const setup = (): MachineSetup => ({
  runDir: join(directory, "run"),
  nodePath: process.execPath,
  daemon: fileURLToPath(new URL("../stand-in-daemon.mjs", import.meta.url)),
  form: "bubblewrap",
  runsc: null,
  socket: "",
  path,
  planted: [],
  image: null,
  imagesDir: join(directory, "images"),
});

describe("gVisor's program", () => {
  it("is taken if it has the platform that needs neither KVM nor root", async () => {
    const program = await release("release-20240729.0", "systrap (default), ptrace, kvm");
    expect(await findRunsc(program, path)).toBe(program);
  });

  it("is refused if it is too old, with its version and what to install", async () => {
    const program = await release("0.0~20221219.0", "ptrace, kvm");
    await expect(findRunsc(program, path)).rejects.toThrow(
      `${program} 0.0~20221219.0 has no platform systrap. Install a release from 2023 or later, for example Debian 13's`,
    );
  });

  it("is refused if it is missing or cannot be run", async () => {
    await expect(findRunsc(null, join(directory, "empty"))).rejects.toThrow(/^not installed: runsc/);
    await expect(findRunsc(join(directory, "missing"), path)).rejects.toThrow(/missing cannot be run/);
  });

  it("is used by a service that runs as root only", async () => {
    const program = await release("release-20240729.0", "systrap");
    const options = machineOptions(setup(), "http://127.0.0.1:1");
    const asUser = gvisorKind(program).prepare({ options, tools: findTools(path), ownUids: false });
    await expect(asUser).rejects.toThrow("the service must run as root");
  });
});

const prepared = (socket: string, { ownUids = true, runtime = null as string | null } = {}) => {
  const options = machineOptions(setup(), "http://127.0.0.1:1");
  return dockerKind({ socket, runtime }).prepare({ options, tools: findTools(path), ownUids });
};

/** Says what an engine says about itself, and has no container. */
const saying = async (facts: Readonly<Record<string, unknown>>): Promise<string> => {
  const socket = join(directory, `engine-${Object.keys(facts).join("-")}`);
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ ServerVersion: "28.0.0", OSType: "linux", ...facts }));
  });
  server.listen(socket).unref();
  await once(server, "listening");
  return socket;
};

describe("a container engine", () => {
  it("is refused on another machine", async () => {
    await expect(prepared("tcp://10.0.0.1:2375")).rejects.toThrow(
      /^PLATFORM_DOCKER_SOCKET is tcp:.*The engine must run on this machine/,
    );
  });

  it("is refused with what to start or to set if none listens", async () => {
    await expect(prepared(`unix://${join(directory, "missing")}`)).rejects.toThrow(
      `the container engine at ${join(directory, "missing")} does not answer. Start it (for Docker: systemctl start docker), or name its socket in PLATFORM_DOCKER_SOCKET`,
    );
    const file = join(directory, "not-a-socket");
    await writeFile(file, "");
    await expect(prepared(file)).rejects.toThrow(/does not answer/);
  });

  it.each([
    [{ SecurityOptions: ["name=seccomp,profile=default", "name=rootless"] }, /engine is rootless/],
    [{ OSType: "windows" }, /containers of windows; sandboxes need Linux/],
    [{ MemoryLimit: "much" }, /MemoryLimit/],
  ])("is refused if it says %j", async (facts, problem) => {
    await expect(prepared(await saying(facts))).rejects.toThrow(problem);
  });

  it("is used by a service that runs as root only, and by one with limits that it can enforce", async () => {
    const socket = await saying({ MemoryLimit: true, PidsLimit: true, SecurityOptions: ["name=userns"] });
    await expect(prepared(socket, { ownUids: false })).rejects.toThrow(
      "PLATFORM_SANDBOX_PROVIDER=local works without root",
    );
    const { start, summary } = await prepared(socket, { runtime: "runsc" });
    expect(start.by === "engine" && [...start.controls]).toEqual(["memory", "processes"]);
    expect(summary).toBe("containers of Docker 28.0.0 (runsc), without a network");
  });
});

describe.skipIf(!sandboxesStartHere)("the choice of a kind (needs bubblewrap)", () => {
  it("takes the next kind where a stronger one does not start, and says why", async () => {
    // It answers as the real one does, and starts nothing.
    const program = await release("release-20240729.0", "systrap");
    const kinds = [gvisorKind(join(directory, "missing")), gvisorKind(program), ...localKinds("bubblewrap")];
    const { installation, refusals } = await openInstallation(
      machineOptions(setup(), "http://127.0.0.1:1"),
      kinds,
    );
    expect([installation.isolation.provider, installation.isolation.form]).toEqual(["local", "bubblewrap"]);
    expect(refusals.map((refusal) => refusal.split(":")[0])).toEqual(["gvisor", "gvisor"]);
    expect(refusals[0]).toContain("missing cannot be run");
  });

  it("fails with what each kind lacks where none starts", async () => {
    const opening = openInstallation(machineOptions(setup(), "http://127.0.0.1:1"), [
      gvisorKind(join(directory, "missing")),
    ]);
    await expect(opening).rejects.toThrow(/^no sandbox can be started on this machine \(gvisor: .*missing/);
  });
});

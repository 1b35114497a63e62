import { spawnSync } from "node:child_process";
import { constants, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type GateOptions, gateProgram } from "../../src/sandbox/machine/isolation/gate.ts";
import {
  knownArchitecture,
  machineArchitecture,
  seccompProgram,
} from "../../src/sandbox/machine/isolation/seccomp.ts";
import { withPlanted } from "./machine/machine-descriptors.ts";

const script = (text: string, ...args: readonly string[]) => ["/bin/sh", "-c", text, "sh", ...args];

describe.skipIf(knownArchitecture(process.arch) === null)("the gate (not on other processors)", () => {
  const architecture = machineArchitecture();
  const agentFilter = seccompProgram("agent", architecture);
  let directory = "";
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "platform-gate-"));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const run = (options: GateOptions, args: readonly string[], planted: readonly number[] = []) => {
    const gate = join(directory, "gate");
    rmSync(gate, { force: true });
    writeFileSync(gate, gateProgram(options, architecture), { mode: 0o755 });
    const root = openSync("/", constants.O_RDONLY | constants.O_DIRECTORY);
    const descriptors = new Map([[3, root], ...planted.map((number) => [number, root] as const)]);
    const { status, stdout, stderr } = spawnSync(gate, args, {
      env: { A: "b", PATH: process.env["PATH"] },
      encoding: "utf8",
      stdio: withPlanted(["ignore", "pipe", "pipe"], descriptors),
    });
    return { status, stdout, stderr };
  };

  it("becomes the program, with its arguments and its environment", () => {
    const { status, stdout } = run(
      { closeFrom: 3, filter: null },
      script('echo $# "$@" $A; exit 7', "x  y", "", "z"),
    );
    expect([status, stdout]).toEqual([7, "3 x  y  z b\n"]);
  });

  it.each([3, 4, 5, 64])("closes descriptors from %i on, and keeps lower ones", (closeFrom) => {
    const planted = [4, 5, 9, 10, 63, 64, 255, 1000];
    const open = script(`for fd in 3 ${planted.join(" ")}; do [ -e /proc/self/fd/$fd ] && echo $fd; done; :`);
    const kept = [3, ...planted].filter((descriptor) => descriptor < closeFrom);
    expect(run({ closeFrom, filter: null }, open, planted).stdout).toBe(
      kept.map((descriptor) => `${descriptor}\n`).join(""),
    );
  });

  it("installs the filter, also for the program's children", () => {
    const { status, stdout, stderr } = run(
      { closeFrom: 3, filter: agentFilter },
      script("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; unshare --user true"),
    );
    expect(stdout).toBe("NoNewPrivs:\t1\nSeccomp:\t2\n");
    expect([status, stderr]).toEqual([1, "unshare: unshare failed: Operation not permitted\n"]);
  });

  it("installs no filter if it gets none", () => {
    const { stdout } = run({ closeFrom: 3, filter: null }, ["/bin/cat", "/proc/self/status"]);
    expect(stdout).toMatch(/^Seccomp:\s0$/m);
  });

  it("never runs the program without its filter", () => {
    const unknown = Buffer.alloc(8, 0xff);
    expect(run({ closeFrom: 3, filter: unknown }, script("echo ran"))).toEqual({
      status: 126,
      stdout: "",
      stderr: "gate: the kernel refuses the seccomp filter\n",
    });
  });

  it.each([[["/nonexistent"]], [[]]])("reports that it cannot start %j", (args) => {
    expect(run({ closeFrom: 3, filter: agentFilter }, args)).toEqual({
      status: 127,
      stdout: "",
      stderr: "gate: the program cannot be started\n",
    });
  });
});

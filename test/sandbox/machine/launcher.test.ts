/** PID 1's script (machine/boot/launcher.ts), run by the shells that a sandbox may have. */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { AGENT_INIT } from "../../../src/sandbox/machine/boot/launcher.ts";

const isHere = ([program = ""]: readonly string[]): boolean =>
  spawnSync(program, ["--help"], { stdio: "ignore" }).error === undefined;

const SHELLS = [["/bin/dash"], ["busybox", "sh"], ["bash"]];

describe.each(SHELLS.filter(isHere).map((shell) => [shell.join(" "), shell] as const))(
  "PID 1's script in %s",
  (_, [program = "", ...args]) => {
    const run = (command: readonly string[], input: string) => {
      const script = [...args, "-c", AGENT_INIT, "agent", ...command];
      const { status, stdout, stderr } = spawnSync(program, script, { input, encoding: "utf8" });
      return { status, stdout, stderr };
    };

    it("gives the command its input", () => {
      expect(run(["cat"], "hello")).toEqual({ status: 0, stdout: "hello", stderr: "" });
    });

    it("exits with the command's code, and leaves it no descriptor of its own", () => {
      const command = ["sh", "-c", "[ -e /proc/self/fd/9 ] && echo open; exit 7"];
      expect(run(command, "")).toEqual({ status: 7, stdout: "", stderr: "" });
    });
  },
);

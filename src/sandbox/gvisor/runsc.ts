/** gVisor's program on this machine, `runsc`. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { thrownText } from "../../ground/thrown.ts";
import { findProgram } from "../machine/tools.ts";

const execute = promisify(execFile);

const ASK_TIMEOUT_MS = 10_000;
const OUTPUT_MAX = 1024 * 1024;

/** The platform that needs no KVM, no real root and no ptrace. It is in gVisor since 2023. */
export const PLATFORM = "systrap";

/**
 * @param setting the program, or null for the one on the PATH
 * @param path the service's PATH
 * @throws Error that says what to install
 */
export const findRunsc = async (setting: string | null, path: string): Promise<string> => {
  const program = setting ?? findProgram("runsc", path);
  if (program === null) {
    throw new Error(
      "not installed: runsc (Debian 13 has it as a package; PLATFORM_RUNSC names one elsewhere)",
    );
  }
  const flags = await say(program, ["flags"]);
  if (!flags.includes(PLATFORM)) {
    const version =
      /runsc version (\S+)/.exec(await say(program, ["--version"]))?.[1] ?? "of unknown version";
    throw new Error(
      `${program} ${version} has no platform ${PLATFORM}. Install a release from 2023 or later, for example Debian 13's`,
    );
  }
  return program;
};

/** What the program prints, on either stream. It ends with an error code for some of these commands. */
const say = async (program: string, args: readonly string[]): Promise<string> => {
  try {
    const { stdout, stderr } = await execute(program, args, {
      timeout: ASK_TIMEOUT_MS,
      maxBuffer: OUTPUT_MAX,
      env: {},
    });
    return stdout + stderr;
  } catch (error) {
    const { code, stdout, stderr } = error as {
      readonly code?: number | string;
      readonly stdout?: string;
      readonly stderr?: string;
    };
    if (typeof code === "number") return `${stdout ?? ""}${stderr ?? ""}`;
    throw new Error(`${program} cannot be run: ${thrownText(error)}`, {
      cause: error,
    });
  }
};

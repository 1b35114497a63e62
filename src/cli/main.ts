#!/opt/platform/lib/node
/**
 * `platform` as it is in every sandbox: the commands that ask the service, as one bundled file (bundle.ts). The first line
 * names the sandbox's own Node, whatever the agent's PATH leads to.
 */
import { commands } from "./commands.ts";
import { runProgram } from "./program.ts";

void runProgram(commands, process.argv.slice(2), process.env);

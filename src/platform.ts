#!/opt/platform/lib/node
/**
 * `platform` in every sandbox: the commands that call the service, as one bundled file (bundle.ts). The first line
 * names the sandbox's own Node, whatever Node the agent's PATH contains.
 */
import { commands } from "./assembly/commands.ts";
import { runProcess } from "./cli/program.ts";

void runProcess(commands, process.env);

/**
 * The `platform` command of a clone: the commands that also exist in a sandbox, and the operator's commands on the
 * service's machine.
 */
import { commands } from "./assembly/commands.ts";
import { runProcess } from "./cli/program.ts";
import { operatorCommands } from "./installation/operator/commands.ts";
import { closeInherited } from "./ground/inherited.ts";

closeInherited();
void runProcess([...commands, ...operatorCommands], process.env);

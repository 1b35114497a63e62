/**
 * The operator's commands, which work on the service's own machine. What performs them is loaded when it is needed: the
 * other commands start without it.
 */
import { command, type Command } from "../../command-line/command.ts";
import { EXIT, usage } from "../../command-line/failure.ts";
import { table } from "../../command-line/terminal.ts";
import { anyId } from "../../command-line/words.ts";
import { adminCommands } from "./admin.ts";
import { backupCommands } from "./backup-commands.ts";

const doctor = command({
  name: "doctor",
  about: "Start one real sandbox here and say what isolates it, and what does not",
  notes: "Ends with 1 where no sandbox can be started.",
  run: async ({ environment }) => {
    const { perform } = await import("./perform.ts");
    const { examine, readable } = await import("./doctor.ts");
    const report = await perform(examine(environment));
    // Beside what was found: a person wants to read why.
    if (!report.usable) process.exitCode = EXIT.refused;
    return { json: JSON.stringify(report), text: readable(report) };
  },
});

const prune = command({
  name: "branches prune",
  about: "Remove the branches of sessions whose change request is merged",
  options: {
    merged: { about: "Say that this is what is meant; there is no other kind yet" },
    project: { value: "ID", about: "Look at this project alone (all of them)" },
    "dry-run": { about: "Only tell what would be removed" },
  },
  notes: `A branch goes where its session has a merged change request and no open one, is not live, and has no commit that the branch
which it was merged into has not. Nothing is lost by it: the change request shows its commits as before, and what was
saved on refs/wip stays. Such a session cannot be restarted any more. Branches that people made are left alone, and so
are repositories that are not this installation's own: their servers have means for it.

Run it on the service's machine, as its user and with its settings. The service may run meanwhile.`,
  run: async ({ options: { merged, project, "dry-run": isDryRun }, environment }) => {
    if (!merged) throw usage("Say which branches: --merged.");
    const projectId = project === undefined ? null : anyId(project, "--project");
    const { perform } = await import("./perform.ts");
    const { pruneMerged } = await import("./prune.ts");
    const branches = await perform(pruneMerged(environment, { projectId, isDryRun }));
    const done = isDryRun ? "would be removed" : "removed";
    const rows = branches.map((branch) => [
      branch.project_id,
      branch.session_id,
      branch.outcome === "removed" ? done : `kept: ${branch.reason ?? ""}`,
    ]);
    const text = table(["PROJECT", "BRANCH", "OUTCOME"], rows, "No session has a branch that is merged.");
    return { json: JSON.stringify({ branches, dry_run: isDryRun }), text };
  },
});

export const operatorCommands: readonly Command[] = [...adminCommands, ...backupCommands, prune, doctor];

/**
 * The operator's commands, which work on the service's own machine. What performs them is loaded when it is needed: the
 * other commands start without it.
 */
import { command, type Command, type Outcome } from "../command.ts";
import type { Environment } from "../configuration.ts";
import { EXIT, usage } from "../failure.ts";
import { table } from "../terminal.ts";
import { anyId } from "../words.ts";
import { adminCommands } from "./admin.ts";
import { backupCommands } from "./backup-commands.ts";
import type { OrphanWish } from "./orphans.ts";

const orphans = async (wish: OrphanWish): Promise<Outcome> => {
  const { perform } = await import("./perform.ts");
  const { findOrphans } = await import("./orphans.ts");
  const found = await perform(findOrphans(wish));
  if (found.some(({ problem }) => problem !== null)) process.exitCode = EXIT.refused;
  const done = wish.end ? "ended" : "left";
  const rows = found.map((orphan) => [
    orphan.kind.replace("_", " "),
    orphan.what,
    orphan.pids.length === 0 ? "-" : orphan.pids.join(" "),
    orphan.data_dir ?? "-",
    orphan.problem === null ? done : `stays: ${orphan.problem}`,
  ]);
  const text = table(["KIND", "WHAT", "PROCESSES", "DATA DIRECTORY", "STATE"], rows, "Nothing is left.");
  return { json: JSON.stringify({ orphans: found, ended: wish.end }), text };
};

const tree = async (environment: Environment): Promise<Outcome> => {
  const { perform } = await import("./perform.ts");
  const { supervisionTree, treeText } = await import("./tree.ts");
  const root = await perform(supervisionTree(environment));
  return { json: JSON.stringify(root), text: treeText(root) };
};

const doctor = command({
  name: "doctor",
  about: "Check this installation, start one real sandbox here and say what isolates it",
  options: {
    tree: { about: "Print what the service supervises: actors, duties, periods and restart intensities" },
    orphans: { about: "List what services that do not run left here: sandboxes, databases, control groups" },
    end: { about: "With --orphans: end and remove it" },
    of: { value: "DIR", about: "With --orphans: only what belongs to this data directory or run directory" },
  },
  notes: `--tree asks no database and no running service; it shows the settings of this environment.

Ends with 1 where no sandbox can be started, or where something that is left cannot be ended.

A service that is stopped finds its sandboxes again at its next start; --orphans lists them too. Look at the list before you
add --end, and name the data directory with --of where other installations are on the machine. What belongs to a service that
runs is never listed. Run it as the service's user, or as root for every user's.`,
  run: async ({ environment, options }) => {
    if (options.tree) return tree(environment);
    if (options.orphans) return orphans({ end: options.end, of: options.of ?? null });
    if (options.end || options.of !== undefined) throw usage("--end and --of go with --orphans.");
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

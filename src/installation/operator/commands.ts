/**
 * The operator's commands, which work on the service's own machine. Their implementation is loaded only when it is
 * needed, so that the other commands start without it.
 */
import { command, type Call, type Command, type Outcome } from "../../cli/command.ts";
import type { Environment } from "../../cli/configuration.ts";
import { EXIT, usageFailure } from "../../cli/failure.ts";
import { localTable as table } from "../../cli/terminal.ts";
import { anyId } from "../../cli/words.ts";
import { adminCommands } from "./admin.ts";
import { backupCommands } from "./backup/backup-commands.ts";
import { imageCommands } from "./images/image-commands.ts";
import type { Orphan } from "./orphans.ts";
import { runtimeCommands } from "./runtimes/runtime-commands.ts";

const orphanTable = (list: readonly Orphan[], outcome: string): string => {
  const rows = list.map((orphan) => [
    orphan.kind.replace("_", " "),
    orphan.what,
    orphan.pids.length === 0 ? "-" : orphan.pids.join(" "),
    orphan.data_dir ?? orphan.installation_id ?? "-",
    orphan.problem === null ? outcome : `stays: ${orphan.problem}`,
  ]);
  return table(["KIND", "WHAT", "PROCESSES", "BELONGED TO", "STATE"], rows, "No leftovers.");
};

/** `--of all`: those of every installation on this machine. */
const ALL = "all";

interface OrphanOptions {
  readonly end: boolean;
  readonly yes: boolean;
  readonly of: string | undefined;
}

const orphans = async (
  { environment, input, note }: Pick<Call<unknown, unknown>, "environment" | "input" | "note">,
  { end, yes, of }: OrphanOptions,
): Promise<Outcome> => {
  const { perform } = await import("./perform.ts");
  const { podCluster, containerEngine, findOrphans, ownDataDirectory } = await import("./orphans.ts");
  const owner = of ?? (end ? ownDataDirectory(environment) : null);
  const wish = {
    of: owner === ALL ? null : owner,
    engine: containerEngine(environment),
    cluster: podCluster(environment),
  };
  if (end && !yes) {
    if (!input.isTerminal)
      throw usageFailure("Add --yes: --end asks before it ends anything, and this is no terminal.");
    const leftovers = await perform(findOrphans({ ...wish, end: false }));
    note(orphanTable(leftovers, "will end"));
    const isMeant = leftovers.length > 0 && /^y(?:es)?$/i.test((await input.line("End them? [y/N] ")).trim());
    if (!isMeant)
      return { json: JSON.stringify({ orphans: leftovers, ended: false }), text: "Nothing was ended." };
  }
  const all = await perform(findOrphans({ ...wish, end }));
  if (all.some(({ problem }) => problem !== null)) process.exitCode = EXIT.refused;
  return {
    json: JSON.stringify({ orphans: all, ended: end }),
    text: orphanTable(all, end ? "ended" : "left"),
  };
};

const tree = async (environment: Environment): Promise<Outcome> => {
  const { perform } = await import("./perform.ts");
  const { supervisionTree, treeText } = await import("./tree.ts");
  const root = await perform(supervisionTree(environment));
  return { json: JSON.stringify(root), text: treeText(root) };
};

const doctor = command({
  name: "doctor",
  about: "Check this installation and start one real sandbox to test its isolation",
  options: {
    tree: { about: "Print what the service supervises: actors, duties, periods and restart intensities" },
    orphans: {
      about:
        "List leftovers of services that do not run: sandboxes, databases, control groups, containers, Pods",
    },
    end: { about: "With --orphans: list those of this installation, ask, then stop and remove them" },
    yes: { about: "With --end: do not ask" },
    of: {
      value: "DIR|ID",
      about:
        "With --orphans: only leftovers of this data directory or run directory, or Pods of the installation with this id. With --end it is PLATFORM_DATA_DIR. `all`: those of every installation on this machine",
    },
  },
  notes: `--tree asks no database and no running service. It shows the settings of this environment.

The exit code is 1 if no sandbox can start, if its isolation has a problem, if a check of the installation fails, or if a leftover cannot be removed.

--orphans also lists the sandboxes of a stopped service, which that service finds again at its next start. Read the list before
you answer the question of --end. --orphans never lists anything of a
running service. Containers are listed with PLATFORM_SANDBOX_PROVIDER=docker. Pods of the
namespace are listed with PLATFORM_SANDBOX_PROVIDER=kubernetes, once their service was silent for an hour, whatever machine it ran on. Run the command as the service's user, or as root to include all users.`,
  run: async ({ environment, options, input, note }) => {
    if (options.tree) return tree(environment);
    if (options.orphans) return orphans({ environment, input, note }, options);
    if (options.end || options.yes || options.of !== undefined)
      throw usageFailure("Use --end, --yes and --of only with --orphans.");
    const { perform } = await import("./perform.ts");
    const { examine, readable } = await import("./doctor.ts");
    const report = await perform(examine(environment));
    // The report is still printed, because it contains the reasons.
    const isRefused = report.installation.some(({ state }) => state === "fail");
    if (!report.usable || report.problem !== null || isRefused) process.exitCode = EXIT.refused;
    return { json: JSON.stringify(report), text: readable(report) };
  },
});

const prune = command({
  name: "branches prune",
  about: "Delete session branches whose change request is merged",
  asks: ({ options }) =>
    options.merged && !options["dry-run"] ? "Delete the branches? Their sessions cannot be restarted." : null,
  options: {
    merged: { about: "Required. Selects merged branches, the only supported kind" },
    project: { value: "ID", about: "Only this project (all projects)" },
    "dry-run": { about: "Only list the branches" },
  },
  notes: `Deletes a session's branch if the session has a merged change request and no open one, is not live, and has no commits
beyond the branch that it was merged into. No work is lost: the change request still shows its commits, and saved work
on refs/wip stays. A session without its branch cannot be restarted. The command does not delete branches that people
created, and it does not change repositories on other servers.

Run the command on the service's machine, as its user and with its settings. The service can keep running.`,
  run: async ({ options: { merged, project, "dry-run": isDryRun }, environment }) => {
    if (!merged) throw usageFailure("Give --merged.");
    const projectId = project === undefined ? null : anyId(project, "--project");
    const { perform } = await import("./perform.ts");
    const { pruneMerged } = await import("./prune.ts");
    const branches = await perform(pruneMerged(environment, { projectId, isDryRun }));
    const outcome = isDryRun ? "would be removed" : "removed";
    const rows = branches.map((branch) => [
      branch.project_id,
      branch.session_id,
      branch.outcome === "removed" ? outcome : `kept: ${branch.reason ?? ""}`,
    ]);
    const text = table(["PROJECT", "BRANCH", "OUTCOME"], rows, "No merged session branches.");
    return { json: JSON.stringify({ branches, dry_run: isDryRun }), text };
  },
});

export const operatorCommands: readonly Command[] = [
  ...adminCommands,
  ...backupCommands,
  ...imageCommands,
  ...runtimeCommands,
  prune,
  doctor,
].map((one) => Object.assign(one, { isLocal: true }));

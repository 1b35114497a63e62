/** `platform backup` and `platform restore`. Their implementation is loaded only when it is needed. */
import path from "node:path";
import { command, type Command } from "../../../cli/command.ts";
import { megabytes, safeLine } from "../../../cli/terminal.ts";
import { quantity } from "../../../domain/counted.ts";

const load = async () => {
  const [{ perform }, { ofEmbedded }] = await Promise.all([
    import("../perform.ts"),
    import("../embedded-installation.ts"),
  ]);
  return { perform, ofEmbedded };
};

const backup = command({
  name: "backup",
  about: "Back up this installation to one file. The service can keep running",
  takes: ["FILE"],
  notes: `The file contains the database, the hosted repositories and the master key. Anyone who can read it can read every secret.
If the service uses PLATFORM_MASTER_KEY, set it for this command too. The file then does not contain the key.`,
  run: async ({ given, environment }) => {
    const [{ perform, ofEmbedded }, work] = await Promise.all([load(), import("./backup.ts")]);
    const report = await perform(
      ofEmbedded(environment, ({ dataDir, masterKey }) =>
        work.backup({ dataDir, masterKey, file: given.FILE }),
      ),
    );
    const { file, bytes, rows, repositories, includesKey } = report;
    const key = includesKey
      ? "It contains the master key. Anyone who can read it can read every secret."
      : "It does not contain the master key. Keep PLATFORM_MASTER_KEY in another place.";
    return {
      json: JSON.stringify({ file, bytes, rows, repositories, includes_key: includesKey }),
      text: safeLine(
        `${file}: ${megabytes(bytes)}, ${quantity(rows, "row")}, ${quantity(repositories, "repository", "repositories")}. ${key}`,
      ),
    };
  },
});

const restore = command({
  name: "restore",
  about: "Restore a backup into an empty data directory",
  takes: ["FILE"],
  options: {
    "take-over": {
      about:
        "The old installation no longer exists. Take over its sandboxes on this machine, and begin without a pause",
    },
  },
  notes:
    "The data directory is PLATFORM_DATA_DIR. Sessions that ran when the backup was made fail with sandbox_lost. The restored installation begins paused: no schedule, no queue, no webhook, no push to another server. `platform admin resume` lets it go.",
  run: async ({ given, options, environment }) => {
    const [{ perform, ofEmbedded }, work] = await Promise.all([load(), import("./restore.ts")]);
    const file = path.resolve(given.FILE);
    const report = await perform(
      ofEmbedded(environment, ({ dataDir, masterKey }) =>
        work.restore({ dataDir, file, masterKey, takeOver: options["take-over"] }),
      ),
    );
    const { dataDir, createdAt, rows, repositories, includesKey } = report;
    const key = includesKey ? "" : "Start it with the PLATFORM_MASTER_KEY of the old installation. ";
    const pauseNote = options["take-over"] ? "" : "It begins paused: `platform admin resume` lets it go.";
    return {
      json: JSON.stringify({
        data_dir: dataDir,
        created_at: createdAt,
        rows,
        repositories,
        includes_key: includesKey,
      }),
      text: safeLine(
        `${dataDir}: ${quantity(rows, "row")} and ${quantity(repositories, "repository", "repositories")} as of ${createdAt}. ${key}Sessions that ran then fail with sandbox_lost. ${pauseNote}`,
      ),
    };
  },
});

export const backupCommands: readonly Command[] = [backup, restore];

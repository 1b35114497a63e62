/** `platform backup` and `platform restore`. Their implementation is loaded only when it is needed. */
import path from "node:path";
import { command, type Command } from "../command.ts";
import { visible } from "../terminal.ts";

const load = async () => {
  const [{ perform }, { ofEmbedded }] = await Promise.all([
    import("./perform.ts"),
    import("./embedded-installation.ts"),
  ]);
  return { perform, ofEmbedded };
};

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const backup = command({
  name: "backup",
  about: "Write this installation to one file, also while its service runs",
  takes: ["FILE"],
  notes: `The file has the database, the hosted repositories and the master key: whoever can read it can read every secret. A key that
the service is given (PLATFORM_MASTER_KEY) is given to this command too, and is not in the file.`,
  run: async ({ given, environment }) => {
    const [{ perform, ofEmbedded }, work] = await Promise.all([load(), import("./backup.ts")]);
    const made = await perform(
      ofEmbedded(environment, ({ dataDir, masterKey }) =>
        work.backup({ dataDir, masterKey, file: given.FILE }),
      ),
    );
    const { file, bytes, rows, repositories, includesKey } = made;
    const key = includesKey
      ? "It holds the master key: whoever can read it can read every secret."
      : "It does not hold the master key, which this installation is given: keep PLATFORM_MASTER_KEY apart from it.";
    return {
      json: JSON.stringify({ file, bytes, rows, repositories, includes_key: includesKey }),
      text: visible(`${file}: ${megabytes(bytes)}, ${rows} rows, ${repositories} repositories. ${key}`),
    };
  },
});

const restore = command({
  name: "restore",
  about: "Make an installation of a backup, in a data directory that holds nothing yet",
  takes: ["FILE"],
  options: {
    "take-over": {
      about: "The old installation is gone for good: its sandboxes on this machine are taken over",
    },
  },
  notes:
    "The data directory is PLATFORM_DATA_DIR. Sessions that ran when the backup was made will be failed as sandbox_lost.",
  run: async ({ given, options, environment }) => {
    const [{ perform, ofEmbedded }, work] = await Promise.all([load(), import("./restore.ts")]);
    const file = path.resolve(given.FILE);
    const made = await perform(
      ofEmbedded(environment, ({ dataDir }) =>
        work.restore({ dataDir, file, takeOver: options["take-over"] }),
      ),
    );
    const { dataDir, createdAt, rows, repositories, includesKey } = made;
    const key = includesKey ? "" : "Start it with the PLATFORM_MASTER_KEY that it had. ";
    return {
      json: JSON.stringify({
        data_dir: dataDir,
        created_at: createdAt,
        rows,
        repositories,
        includes_key: includesKey,
      }),
      text: visible(
        `${dataDir}: ${rows} rows and ${repositories} repositories as of ${createdAt}. ${key}Sessions that ran then will be failed as sandbox_lost.`,
      ),
    };
  },
});

export const backupCommands: readonly Command[] = [backup, restore];

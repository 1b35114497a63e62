/**
 * Violations outside the database: processes, mounts, refs, credentials, files. The code that plants one also reverts
 * it.
 */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { tokenHash } from "../../../src/domain/ids.ts";
import { gitOk } from "../../git/git-client.ts";
import { CANARY } from "../installation.ts";
import type { Ground, Plant } from "./plants.ts";
import type { Seen } from "../seen.ts";
import { startStray } from "../stray.ts";
import { execute } from "../tables.ts";

/** Moves refs, and looks at them. */
const refs =
  (spoil: (ground: Ground, directory: string) => Promise<readonly (readonly string[])[]>) =>
  async (ground: Ground): Promise<Seen> => {
    const { directory, tips } = ground.seen.refs;
    try {
      for (const args of await spoil(ground, directory)) await gitOk(directory, ...args);
      return { ...ground.seen, refs: await ground.service.refs() };
    } finally {
      for (const [name, commit] of tips) await gitOk(directory, "update-ref", name, commit);
    }
  };

/** A process as a sandbox has them; gone again afterwards. */
const strayProcess =
  (sessionId: (ground: Ground) => string | null) =>
  async (ground: Ground): Promise<Seen> => {
    const session = sessionId(ground);
    const stray = await startStray(ground.service, session === null ? null : { sessionId: session });
    try {
      return { ...ground.seen, machine: ground.service.machine() };
    } finally {
      await stray.end();
    }
  };

/** The tokens of an ended sandbox stand where those of a living one do. */
const tokenKept = async (ground: Ground): Promise<Seen> => {
  const { databaseUrl } = ground.service;
  const { cliToken } = await ground.service.keyring();
  const [dead, living] = [ground.ended, ground.running].map(({ sandboxId }) =>
    tokenHash(cliToken(sandboxId)),
  );
  await execute(
    databaseUrl,
    `DELETE FROM tokens WHERE hash = '${dead}'`,
    `UPDATE tokens SET hash = '${dead}' WHERE hash = '${living}'`,
  );
  try {
    return await ground.look();
  } finally {
    await execute(databaseUrl, `UPDATE tokens SET hash = '${living}' WHERE hash = '${dead}'`);
  }
};

const secretWritten = async (ground: Ground): Promise<Seen> => {
  const file = path.join(ground.service.dataDir, "planted");
  writeFileSync(file, `{"secret":"${CANARY}"}`);
  try {
    return await ground.look();
  } finally {
    rmSync(file);
  }
};

const mounted = async (ground: Ground): Promise<Seen> => {
  const disk = path.join(ground.service.runDir, "s", ground.running.sandboxId, "disk");
  execFileSync("mount", ["--bind", disk, disk]);
  try {
    return { ...ground.seen, machine: ground.service.machine() };
  } finally {
    execFileSync("umount", [disk]);
  }
};

/** Every process of a sandbox is killed under a service that stands still. */
const sandboxKilled = async ({ service, seen, running }: Ground): Promise<Seen> => {
  const own = () => service.machine().sandboxes.find(({ id }) => id === running.sandboxId)?.pids ?? [];
  service.life.signal("SIGSTOP");
  try {
    for (let pids = own(); pids.length > 0; pids = own()) {
      for (const pid of pids) {
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // It ended with the one before it.
        }
      }
      await delay(10);
    }
    return { ...seen, machine: service.machine() };
  } finally {
    service.life.signal("SIGCONT");
  }
};

const onTopOf = async (directory: string, ...parents: readonly string[]): Promise<string> => {
  const tree = await gitOk(directory, "rev-parse", "main^{tree}");
  return gitOk(
    directory,
    "commit-tree",
    tree,
    ...parents.flatMap((commit) => ["-p", commit]),
    "-m",
    "Planted",
  );
};

export const OUTSIDE_PLANTS: readonly Plant[] = [
  {
    checker: "branches",
    what: "a session branch that is deleted",
    told: "has no branch",
    plant: refs(({ running }) => Promise.resolve([["update-ref", "-d", `refs/heads/${running.sessionId}`]])),
  },
  {
    checker: "branches",
    what: "a session branch set back behind a push",
    told: ({ ended }) => `does not hold ${ended.pushed}`,
    plant: refs(
      ({
        ended,
        seen: {
          books,
          refs: { tips },
        },
      }) =>
        Promise.resolve([
          [
            "update-ref",
            `refs/heads/${ended.sessionId}`,
            [...books.began.values()][0] ?? tips.get("refs/heads/main") ?? "",
          ],
        ]),
    ),
  },
  {
    checker: "branches",
    what: "saved work whose ref is deleted",
    told: "is not on its ref",
    plant: refs(({ ended }) => Promise.resolve([["update-ref", "-d", `refs/wip/${ended.sessionId}`]])),
  },
  {
    checker: "defaultBranch",
    what: "a commit written to the default branch",
    told: "which no merge has brought",
    plant: refs(async ({ seen }, directory) => [
      [
        "update-ref",
        "refs/heads/main",
        await onTopOf(directory, seen.refs.tips.get("refs/heads/main") ?? ""),
      ],
    ]),
  },
  {
    checker: "defaultBranch",
    what: "a default branch set to something else",
    told: "was moved away from",
    plant: refs(async (_, directory) => [["update-ref", "refs/heads/main", await onTopOf(directory)]]),
  },
  {
    checker: "defaultBranch",
    what: "a merge that is undone",
    told: "is not on the default branch",
    plant: refs(({ seen: { books } }) =>
      Promise.resolve([["update-ref", "refs/heads/main", [...books.began.values()][0] ?? ""]]),
    ),
  },
  {
    checker: "sandboxes",
    what: "a sandbox's process without a record",
    told: "its record is missing",
    plant: strayProcess(() => null),
  },
  {
    checker: "sandboxes",
    what: "a second sandbox of a session",
    told: "has more than one sandbox",
    plant: strayProcess(({ running }) => running.sessionId),
  },
  {
    checker: "credentials",
    what: "a token that outlives its sandbox",
    told: "of the ended sandbox",
    plant: tokenKept,
  },
  {
    checker: "credentials",
    what: "a token that a living sandbox has lost",
    told: "of the live sandbox",
    plant: tokenKept,
  },
  {
    checker: "plaintexts",
    what: "a secret in a file of the data directory",
    told: "I16 a secret stands in",
    plant: secretWritten,
  },
];

/** Needs root. */
export const MOUNT_PLANTS: readonly Plant[] = [
  {
    checker: "sandboxes",
    what: "a mount on the machine itself",
    told: "is mounted on the machine itself",
    plant: mounted,
  },
];

/** The sandbox that runs is gone afterwards. */
export const LAST_PLANT: Plant = {
  checker: "sandboxes",
  what: "a live record whose processes are killed",
  told: "has no process",
  plant: sandboxKilled,
};

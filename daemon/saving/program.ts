/**
 * The workspace program: it lists, reads and restores the agent's work. It runs as the agent, behind the launch prefix
 * (threats.md G06), and starts for each command. Only Node and git are needed, and no shell. bundle.ts makes one file of it,
 * and the daemon puts that file where the agent's side can read it.
 */
import type { WorkspaceCommand } from "./command.ts";
import { FrameSource } from "./frame-source.ts";
import { listingText, listWorkspace } from "./listing/list.ts";
import { write } from "./output.ts";
import { readWorkspace } from "./read.ts";
import { restoreWorkspace } from "./restoring/restore.ts";

/** Ends all other processes of this user. The kernel spares the caller. */
const endOthers = (daemonUid: number): void => {
  if (process.getuid?.() === daemonUid) return;
  try {
    process.kill(-1, "SIGKILL");
  } catch {
    // There is no other.
  }
};

const run = async (): Promise<void> => {
  const frames = new FrameSource(process.stdin);
  const command = (await frames.json()) as WorkspaceCommand;
  if (command.command === "list") {
    const { listing, kept } = await listWorkspace(command);
    await write(Buffer.from(`${JSON.stringify(kept)}\n`));
    await write(listingText(listing));
  } else if (command.command === "read") await readWorkspace(command);
  else if (command.command === "restore")
    await write(Buffer.from(JSON.stringify(await restoreWorkspace(command, frames))));
  else endOthers(command.daemonUid);
};

run().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`, () =>
      process.exit(1),
    );
  },
);

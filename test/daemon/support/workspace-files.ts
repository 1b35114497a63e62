/** Files and commits of a running daemon's workspace. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Running } from "./running.ts";

export const write = (daemon: Running, name: string, text: string | Buffer = `${name}\n`): void => {
  const file = join(daemon.layout.workspace, name);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text);
};
export const headOf = async (daemon: Running): Promise<string> =>
  (await daemon.git("rev-parse", "HEAD")).trim();

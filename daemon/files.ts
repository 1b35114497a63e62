/** The daemon's files that the agent may read. */
import { renameSync, writeFileSync } from "node:fs";

/** Writes the file atomically: the agent may read it at any time. */
export const writeForAgent = (path: string, text: string): void => {
  const draft = `${path}.new`;
  writeFileSync(draft, text, { mode: 0o644 });
  renameSync(draft, path);
};

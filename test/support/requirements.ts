/** What a test needs of the machine. On a bare one the tests that lack it are skipped by name; CI has it all. */
import { existsSync } from "node:fs";
import path from "node:path";

const onPath = (program: string): boolean =>
  (process.env["PATH"] ?? "")
    .split(path.delimiter)
    .some((directory) => existsSync(path.join(directory, program)));

/** `local` sandboxes run on Linux with bubblewrap; the weaker form without it has its own tests. */
export const sandboxesStartHere = process.platform === "linux" && onPath("bwrap");

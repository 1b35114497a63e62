/**
 * Inherited descriptors. A program starts with the files, directories and sockets that its parent left open, and Linux passes
 * them on to each program that it starts in turn. A directory of the host that reaches a sandbox this way leads out of it.
 */
import { closeSync, readFileSync, readdirSync } from "node:fs";

/** The first after standard input, output and error. */
const FIRST = 3;
/** O_CLOEXEC, which Node does not name. */
const CLOSE_ON_EXEC = 0o2000000;

/** What /proc says of a descriptor: whether it ends where the process becomes another program. */
const passesOn = (descriptor: number): boolean => {
  try {
    const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    return false; // The listing's own descriptor, closed by now.
  }
};

/**
 * Closes each descriptor from 3 on that programs started from here would inherit. Node marks all that it opens close-on-exec, and
 * at its start the low ones that it inherits; what is left without the mark was inherited. To be called first in a program.
 */
export const closeInherited = (): void => {
  for (const name of readdirSync("/proc/self/fd")) {
    const descriptor = Number(name);
    if (descriptor >= FIRST && passesOn(descriptor)) closeSync(descriptor);
  }
};

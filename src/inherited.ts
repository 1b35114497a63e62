/**
 * Inherited descriptors. A program starts with the files, directories and sockets that its parent left open, and Linux
 * passes them on to its own children. A directory of the host that reaches a sandbox this way is a way out of it.
 */
import { closeSync, readFileSync, readdirSync } from "node:fs";

/** The first after standard input, output and error. */
const FIRST = 3;
/** O_CLOEXEC; Node has no constant for it. */
const CLOSE_ON_EXEC = 0o2000000;

/** Whether a descriptor stays open when the process executes another program, according to /proc. */
const passesOn = (descriptor: number): boolean => {
  try {
    const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    return false; // The listing's own descriptor, closed by now.
  }
};

/**
 * Closes each descriptor from 3 on that child programs would inherit. Node marks every descriptor that it opens as
 * close-on-exec, and at its start also the low ones that it inherits. So a descriptor without the mark was inherited.
 * Call this first in a program.
 */
export const closeInherited = (): void => {
  for (const name of readdirSync("/proc/self/fd")) {
    const descriptor = Number(name);
    if (descriptor >= FIRST && passesOn(descriptor)) closeSync(descriptor);
  }
};

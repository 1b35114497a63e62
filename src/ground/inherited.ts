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
 * Waits for Node's own thread that reads certificates at start (NODE_EXTRA_CA_CERTS, --use-system-ca). It opens its files without
 * close-on-exec, so they look inherited. If a file is closed under it, the
 * thread reads garbage, or steals the bytes of the source file that gets its number.
 */
const awaitCertificates = (): void => {
  const { env, execArgv } = process;
  const options = `${execArgv.join(" ")} ${env["NODE_OPTIONS"] ?? ""}`;
  const usesSystem = env["NODE_USE_SYSTEM_CA"] === "1" || options.includes("--use-system-ca");
  if (!env["NODE_EXTRA_CA_CERTS"] && !usesSystem) return;
  // Loaded here, since most starts read no certificates.
  const { getCACertificates } = process.getBuiltinModule("node:tls");
  if (env["NODE_EXTRA_CA_CERTS"]) getCACertificates("extra");
  if (usesSystem) getCACertificates("system");
};

/**
 * Closes each descriptor from 3 on that the programs started from here would inherit. Call it first in a program. Node marks the
 * descriptors that it opens close-on-exec, and at its start the low ones that it inherits. A descriptor without the mark was inherited.
 */
export const closeInherited = (): void => {
  awaitCertificates();
  for (const name of readdirSync("/proc/self/fd")) {
    const descriptor = Number(name);
    if (descriptor >= FIRST && passesOn(descriptor)) closeSync(descriptor);
  }
};

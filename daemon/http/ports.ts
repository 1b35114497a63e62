/**
 * The TCP ports of the sandbox on which a program listens where the daemon can reach it: on 127.0.0.1, or on every
 * address. The kernel lists them for the daemon's network namespace, which is the agent's too.
 */
import { closeSync, openSync, readSync } from "node:fs";

/** A socket's line has 150 bytes, so this is some 7,000 of them. */
const TABLE_MAX_BYTES = 1024 * 1024;
/** A person opens one of a few. */
const PORTS_MAX = 100;

/** The state of a socket that listens. */
const LISTENING = "0A";
/** 127.0.0.1, any address, and the same in the table of IPv6, in the kernel's notation. */
const REACHED = new Set([
  "0100007F",
  "00000000",
  "00000000000000000000000000000000",
  "0000000000000000FFFF00000100007F",
  "0000000000000000FFFF000000000000",
]);
const SOCKET = /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /;

/** The ports in a table like `/proc/net/tcp`. */
export const portsIn = (table: string): readonly number[] =>
  table.split("\n").flatMap((line) => {
    const [, address = "", port = "", state] = SOCKET.exec(line) ?? [];
    return state === LISTENING && REACHED.has(address) ? [Number.parseInt(port, 16)] : [];
  });

/** The beginning of a file of the kernel. Empty if the file is missing. */
const tableAt = (path: string): string => {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    return "";
  }
  try {
    const bytes = Buffer.alloc(TABLE_MAX_BYTES);
    let size = 0;
    for (;;) {
      const read = readSync(file, bytes, size, bytes.length - size, null);
      size += read;
      if (read === 0 || size === bytes.length) return bytes.toString("latin1", 0, size);
    }
  } catch {
    return "";
  } finally {
    closeSync(file);
  }
};

/** In ascending order. `blocked`: the platform's own. */
export const listeningPorts = (hiddenPorts: readonly number[]): readonly number[] => {
  const ports = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].flatMap((path) => portsIn(tableAt(path)));
  return [...new Set(ports)]
    .filter((port) => !hiddenPorts.includes(port))
    .toSorted((a, b) => a - b)
    .slice(0, PORTS_MAX);
};

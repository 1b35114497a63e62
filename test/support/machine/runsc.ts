/** gVisor's program for tests: the one on the PATH, or Debian 13's, which `.ci/runsc` fetches by this machine's apt. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findRunsc } from "../../../src/sandbox/gvisor/runsc.ts";

const FETCH = fileURLToPath(new URL("../../../.ci/runsc", import.meta.url));
/** Two downloads of some ten megabytes. */
const FETCH_MS = 120_000;

const fetched = (): string | null => {
  try {
    return execFileSync(FETCH, {
      encoding: "utf8",
      timeout: FETCH_MS,
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return null; // No apt, no mirror, or no network.
  }
};

const isRoot = process.geteuid?.() === 0;

/** Null where sandboxes under gVisor cannot be tested. */
export const runsc: string | null =
  isRoot && process.arch === "x64"
    ? await findRunsc(null, process.env["PATH"] ?? "").catch(() => fetched())
    : null;

/** The reason, if it is null. */
export const lacksRunsc: string | null =
  runsc === null
    ? "(needs root on x86-64, and gVisor's runsc of 2023 or later, or apt with a mirror of Debian 13)"
    : null;

/** Keeps what V8 compiles of a bundled daemon, so that every sandbox's starts sooner (launcher.cjs). */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const WRITER = fileURLToPath(new URL("write-code-cache.cjs", import.meta.url));
/** It takes a tenth of a second. */
const TIMEOUT_MS = 30_000;

/**
 * Loads a bundle, lets it warm up, and writes what was compiled on the way. Another Node, or another bundle, is no match
 * for the file: V8 refuses it, and compiles as it always does.
 *
 * @param nodePath the Node that is to run the bundle.
 * @throws Error with what the bundle wrote where it cannot be started.
 */
export const writeCodeCache = async (nodePath: string, bundle: string, outFile: string): Promise<void> => {
  await promisify(execFile)(nodePath, [WRITER, bundle, outFile], { env: {}, timeout: TIMEOUT_MS });
};

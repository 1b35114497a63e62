/** Keeps V8's compiled form of a bundled daemon, so that the daemon starts faster in every sandbox (programs/launcher.cjs). */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const WRITER = fileURLToPath(new URL("write-code-cache.cjs", import.meta.url));
/** It takes a tenth of a second. */
const TIMEOUT_MS = 30_000;

/**
 * Loads a bundle, lets it warm up, and writes V8's compiled code. For another Node or another bundle, V8 rejects the
 * file and compiles as usual.
 *
 * @param nodePath the Node that will run the bundle.
 * @throws Error with the bundle's output if it cannot be started.
 */
export const writeCodeCache = async (nodePath: string, bundle: string, outFile: string): Promise<void> => {
  await promisify(execFile)(nodePath, [WRITER, bundle, outFile], { env: {}, timeout: TIMEOUT_MS });
};

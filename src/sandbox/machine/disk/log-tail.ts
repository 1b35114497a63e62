/** The end of a sandbox's output: for readers, and for the error of a start that failed. */
import { open } from "node:fs/promises";

/** How much of the output an error quotes, in bytes. */
const QUOTED_BYTES = 2000;

/** The newest output of PID 1 and its launcher, starting at the beginning of a line. */
export const readLogTail = async (path: string, bytes: number): Promise<string> => {
  const file = await open(path, "r").catch(() => null);
  if (file === null) return "";
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - bytes);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(size - start), position: start });
    const text = buffer.toString("utf8", 0, bytesRead);
    return start === 0 ? text : text.slice(text.indexOf("\n") + 1);
  } finally {
    await file.close();
  }
};

/** The error of a sandbox that ended before its PID 1 ran. @param log its output so far */
export const earlyEnd = async (log: string): Promise<Error> => {
  const output = (await readLogTail(log, QUOTED_BYTES)).trim();
  return new Error(output === "" ? "the sandbox ended before it ran" : output);
};

/** Runs a short program of this machine to its end, without a fork of the service (docs/decisions/0052). */
import { startProgram } from "./starter.ts";

/** The text of the stream that was asked for. `code` is null if a signal ended it. */
export interface Said {
  readonly code: number | null;
  readonly text: string;
}

/**
 * The program sees no variable of the service but PATH, and says things in English.
 *
 * @param args paths in them are absolute
 * @param stream 1 for its output, 2 for its error output. The other one goes to /dev/null
 * @param bytesMax about how much of it is kept. The program may say more
 * @throws StartError if it cannot be started, Error if the starter ended before it
 */
export const runShort = async (
  [program, ...args]: readonly [string, ...string[]],
  { stream, bytesMax }: { readonly stream: 1 | 2; readonly bytesMax: number },
): Promise<Said> => {
  const running = startProgram({
    program,
    args,
    env: { PATH: process.env["PATH"], LC_ALL: "C" },
    cwd: "/",
    group: "own",
    descriptors: [stream],
    graceMs: 0,
  });
  await running.started;
  let text = "";
  for await (const chunk of running.sockets.get(stream)?.setEncoding("utf8") ?? [])
    if (text.length < bytesMax) text += String(chunk);
  const end = await running.ended;
  if (end === "lost") throw new Error(`${program} was ended with the process that had started it`);
  return { code: end.code, text };
};

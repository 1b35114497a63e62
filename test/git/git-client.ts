/**
 * The real git client, as a person or a sandbox runs it: in an environment of its own, without asking anybody. It is started as the
 * service starts git: a fork of a test's process, which is large, takes longer than most of these commands.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { startProgram } from "../../src/starter/starter.ts";

export interface ClientResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Git looks after each commit and fetch whether it should tidy up. That is another process each time, and tidies nothing here. */
const NO_MAINTENANCE = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "maintenance.auto",
  GIT_CONFIG_VALUE_0: "false",
} as const;

/** As shells have it. */
const NOT_STARTED = 127;

const textOf = async (socket: Socket | undefined): Promise<string> => {
  if (socket === undefined) throw new Error("git has no output");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  if (!socket.closed) await once(socket, "close");
  return Buffer.concat(chunks).toString();
};

const run = async (cwd: string, args: readonly string[], stdin?: string): Promise<ClientResult> => {
  const client = startProgram({
    program: "git",
    args,
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: "/nonexistent",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_TERMINAL_PROMPT: "0",
      LC_ALL: "C",
      GIT_AUTHOR_NAME: "Tester",
      GIT_AUTHOR_EMAIL: "tester@example.org",
      GIT_COMMITTER_NAME: "Tester",
      GIT_COMMITTER_EMAIL: "tester@example.org",
      ...NO_MAINTENANCE,
    },
    group: "own",
    descriptors: stdin === undefined ? [1, 2] : [0, 1, 2],
    graceMs: 0,
  });
  try {
    await client.started;
  } catch (error) {
    return { code: NOT_STARTED, stdout: "", stderr: String(error) }; // the directory may not exist
  }
  client.sockets
    .get(0)
    ?.resume()
    .end(stdin ?? "");
  const [stdout, stderr] = await Promise.all(
    [1, 2].map((descriptor) => textOf(client.sockets.get(descriptor))),
  );
  const end = await client.ended;
  return { code: (end === "lost" ? null : end.code) ?? 1, stdout: stdout ?? "", stderr: stderr ?? "" };
};

/** Runs git in `cwd`; an exit code other than 0 is a result, not an error. */
export const git = (cwd: string, ...args: readonly string[]): Promise<ClientResult> => run(cwd, args);

const orThrow = async (args: readonly string[], result: Promise<ClientResult>): Promise<string> => {
  const { code, stdout, stderr } = await result;
  if (code !== 0) throw new Error(`git ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout.trimEnd();
};

/** As `git`, where a failure is the test's failure. @returns standard output without its last line end. */
export const gitOk = (cwd: string, ...args: readonly string[]): Promise<string> =>
  orThrow(args, run(cwd, args));

const block = (text: string): string => `data ${Buffer.byteLength(text)}\n${text}\n`;

/** Commits files to a branch of a repository, from another one's tip, in one process and without a work tree. */
export const importCommit = (
  repository: string,
  { branch, from, files }: { branch: string; from: string; files: Readonly<Record<string, string>> },
): Promise<string> => {
  const stream = [
    `commit refs/heads/${branch}\n`,
    "committer Tester <tester@example.org> now\n",
    block("Change"),
    `from refs/heads/${from}^0\n`,
    ...Object.entries(files).map(([name, text]) => `M 100644 inline ${name}\n${block(text)}`),
  ].join("");
  const args = ["fast-import", "--quiet", "--date-format=now"];
  return orThrow(args, run(repository, args, stream));
};

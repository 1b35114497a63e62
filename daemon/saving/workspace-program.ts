/** Starts the workspace program (program.ts) on the agent's side, and gives it its command. */
import { dirname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import * as Effect from "effect/Effect";
import { wholeFrame } from "../../src/domain/save/frames.ts";
import { writeForAgent } from "../files.ts";
import { agentGitEnvironment } from "../git/agent-git.ts";
import { ProcessGroup } from "../agent/process.ts";
import type { Layout, Settings } from "../settings.ts";
import type { WorkspaceCommand } from "./command.ts";

/** The program as one file. bundle.ts puts it into the daemon; without a bundle, the sources are used. */
declare const WORKSPACE_PROGRAM_TEXT: string | undefined;
const TEXT = typeof WORKSPACE_PROGRAM_TEXT === "undefined" ? undefined : WORKSPACE_PROGRAM_TEXT;

const programFile = ({ credentialFile }: Layout): string =>
  TEXT === undefined
    ? join(import.meta.dirname, "program.ts")
    : join(dirname(credentialFile), "workspace-program.cjs");

/**
 * Starts the program. V8 compiles in threads of its own, and Node 24.21 can hang in its exit: the main thread waits for one that compiles,
 * and that one waits for a garbage collection by the main thread. Then a boot would wait for the end of a restoration that is done.
 */
export const programCommand = (file: string): readonly [string, ...string[]] => [
  process.execPath,
  "--single-threaded",
  file,
];

/** Puts the program where the agent's side can read it: later, the disk may be full. */
export const installWorkspaceProgram = (layout: Layout): void => {
  if (TEXT !== undefined) writeForAgent(programFile(layout), TEXT);
};

const MAX_STDERR = 4096;

/** A program at work. */
export interface Working {
  /** For what follows the command. */
  readonly input: Writable;
  readonly output: Readable;
  /** Completes when it has ended: with null, or with what it said of its failure. To be used when `output` has ended. */
  readonly problem: Effect.Effect<string | null>;
}

/** Runs the program for one command. It ends with `use` at the latest. */
export const withProgram = <A, E>(
  settings: Settings,
  command: WorkspaceCommand,
  use: (working: Working) => Effect.Effect<A, E>,
): Effect.Effect<A, E> => {
  let pipes: { readonly stdin: Writable; readonly stdout: Readable } | null = null;
  let stderrText = "";
  const launch = {
    prefix: settings.launch.prefix,
    command: programCommand(programFile(settings.layout)),
    env: agentGitEnvironment(settings),
    cwd: "/",
    talk: (channel: { readonly stdin: Writable; readonly stdout: Readable }) => void (pipes = channel),
  };
  const start = ProcessGroup.start(launch, (_, chunk) => {
    if (stderrText.length < MAX_STDERR) stderrText += chunk.toString("utf8");
  });
  return Effect.acquireUseRelease(
    start,
    (group) =>
      Effect.suspend(() => {
        if (pipes === null) return Effect.die(new Error("a started program has pipes"));
        const { stdin, stdout } = pipes;
        stdin.write(wholeFrame(Buffer.from(JSON.stringify(command))));
        const problem = group.exit.pipe(
          Effect.map(({ code, signal }) =>
            code === 0 ? null : stderrText.trim() || `the program ended with ${code ?? signal}`,
          ),
          Effect.catch(({ message }) => Effect.succeed(`the program cannot be started: ${message}`)),
        );
        return use({ input: stdin, output: stdout, problem });
      }),
    (group) => group.end,
  );
};

/** The whole output, up to that many bytes. Null if it has more. */
export const readOutput = (output: Readable, maxBytes: number): Effect.Effect<Buffer | null> =>
  Effect.callback((resume) => {
    const chunks: Buffer[] = [];
    let size = 0;
    output.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) {
        chunks.length = 0;
        resume(Effect.succeed(null));
      } else chunks.push(chunk);
    });
    output.on("close", () => resume(Effect.succeed(Buffer.concat(chunks))));
  });

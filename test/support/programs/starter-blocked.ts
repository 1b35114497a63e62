/**
 * Starts a short program and does nothing else until the program has ended, so that its end is read before its connections are. The
 * process must end by itself after that (src/starter/starter.ts).
 */
import { setImmediate as turn } from "node:timers/promises";
import { startProgram } from "../../../src/starter/starter.ts";

const run = () =>
  startProgram({
    program: "true",
    args: [],
    env: { PATH: process.env["PATH"] },
    cwd: "/",
    group: "own",
    descriptors: [0, 1, 2],
    graceMs: 0,
  });

const done = async (program: ReturnType<typeof run>): Promise<void> => {
  await program.started;
  await program.ended;
  for (const socket of program.sockets.values()) socket.destroy();
};

// The first one starts the starter.
await done(run());
const second = run();
// The order is sent.
await turn();
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
await done(second);
process.stdout.write("done\n");

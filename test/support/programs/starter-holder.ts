/** A service's stand-in that has started a program, prints its process id, and waits to be killed. */
import { startProgram } from "../../../src/starter/starter.ts";

const program = startProgram({
  program: "sleep",
  args: ["600"],
  env: { PATH: process.env["PATH"] },
  cwd: "/",
  group: "own",
  descriptors: [],
  graceMs: 0,
});
await program.started;
process.stdout.write(`${program.pid()}\n`);
await program.ended;

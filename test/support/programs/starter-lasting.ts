/** Starts a program that outlives this process, says its id, and has nothing more to do. */
import { startProgram } from "../../../src/starter/starter.ts";

const program = startProgram({
  program: "sleep",
  args: ["600"],
  env: { PATH: process.env["PATH"] },
  cwd: "/",
  group: "own",
  descriptors: [],
  graceMs: null,
});
await program.started;
process.stdout.write(`${program.pid()}\n`);

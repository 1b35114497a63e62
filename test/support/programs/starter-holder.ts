/**
 * A service's stand-in that has started a program, and prints its process id. Then it waits for the program's end, or, with the argument
 * `lasting`, has nothing more to do: the program outlives it.
 */
import { startProgram } from "../../../src/starter/starter.ts";

const isLasting = process.argv[2] === "lasting";
const program = startProgram({
  program: "sleep",
  args: ["600"],
  env: { PATH: process.env["PATH"] },
  cwd: "/",
  group: "own",
  descriptors: [],
  graceMs: isLasting ? null : 0,
});
await program.started;
process.stdout.write(`${program.pid()}\n`);
if (!isLasting) await program.ended;

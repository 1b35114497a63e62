/** The gate (../native/gate.c, decision 0018) with its options. It starts before the programs of a sandbox. */
import { nativeProgram } from "../../native/programs.ts";
import type { Architecture } from "./seccomp.ts";

export interface GateOptions {
  /** The first descriptor to close. */
  readonly closeFrom: number;
  /** The program of the seccomp filter (seccomp.ts). Null for no filter. */
  readonly filter: Buffer | null;
}

/** The compiled program has it before its options. */
const MARK = Buffer.from("options of gate\0");
const INSTRUCTION_BYTES = 8;
const INSTRUCTIONS_MAX = 256;

/** The gate as an ELF file. @throws Error if the filter is too long for it */
export const gateProgram = ({ closeFrom, filter }: GateOptions, architecture: Architecture): Buffer => {
  const instructions = filter ?? Buffer.alloc(0);
  const count = instructions.length / INSTRUCTION_BYTES;
  if (count > INSTRUCTIONS_MAX) throw new Error(`the filter has ${count} instructions`);
  const program = nativeProgram("gate", architecture);
  const options = program.indexOf(MARK) + MARK.length;
  program.writeUInt32LE(closeFrom, options);
  program.writeUInt32LE(count, options + 4);
  program.set(instructions, options + 8);
  return program;
};

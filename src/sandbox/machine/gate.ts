/**
 * The gate: a static program of a few hundred bytes that starts before a sandbox's programs. It closes
 * descriptors, installs a seccomp filter, and executes the program in its arguments. Node cannot do either, util-linux
 * 2.38 has no program for it, and a machine may lack a compiler, Perl and Python. So the service generates the program
 * itself.
 *
 *  G1 Descriptors from `closeFrom` on are closed, except on a kernel before 5.9, which has no close_range.
 *  G2 The program never runs without its filter: the gate exits with 126 instead.
 *  G3 The gate only removes rights: it runs with the rights of its caller, and a filter comes with no_new_privs.
 */
import { bytes, call, CODE_ADDRESS, staticProgram, SYSCALL, word } from "./static-program.ts";

export interface GateOptions {
  /** The first descriptor to close. */
  readonly closeFrom: number;
  /** The program of the seccomp filter (seccomp.ts). Null for no filter. */
  readonly filter: Buffer | null;
}

/** Constants of x86-64: system call numbers and their arguments. */
const WRITE = 1;
const EXECVE = 59;
const EXIT = 60;
const PRCTL = 157;
const SECCOMP = 317;
const CLOSE_RANGE = 436;
const PR_SET_NO_NEW_PRIVS = 38;
const SECCOMP_SET_MODE_FILTER = 1;
const STANDARD_ERROR = 2;
const LAST_DESCRIPTOR = 0xffffffff;

/** Exit codes as in shells: the gate failed itself, or could not start the program. */
const NO_FILTER = 126;
const NO_PROGRAM = 127;

/** Writes a message to standard error and exits. */
const fail = (message: { readonly address: number; readonly length: number }, code: number): Buffer =>
  Buffer.concat([call(WRITE, STANDARD_ERROR, message.address, message.length), call(EXIT, code)]);

/**
 * execve(argv[1], argv + 1, environment). The kernel starts a program with argc at the top of the stack, then argv and
 * a null, then the environment. At eight bytes each, argv[1] is at rsp + 16, and the environment at rsp + 16 + 8 *
 * argc.
 */
const becomeProgram: Buffer = Buffer.concat([
  bytes(0x48, 0x8b, 0x04, 0x24), // mov rax, [rsp]
  bytes(0x48, 0x8d, 0x54, 0xc4, 0x10), // lea rdx, [rsp + rax * 8 + 16]
  bytes(0x48, 0x8d, 0x74, 0x24, 0x10), // lea rsi, [rsp + 16]
  bytes(0x48, 0x8b, 0x3e), // mov rdi, [rsi]
  bytes(0xb8),
  word(EXECVE), // mov eax, EXECVE
  SYSCALL, // returns only on failure
]);

/** Addresses of the data behind the code. The code's length does not depend on them. */
interface Places {
  readonly noFilter: { readonly address: number; readonly length: number };
  readonly noProgram: { readonly address: number; readonly length: number };
  /** struct sock_fprog. */
  readonly filter: number;
}

/** prctl takes two more arguments, which must be 0 for this option: r10 and r8. */
const clearMoreArguments: Buffer = bytes(0x45, 0x31, 0xd2, 0x45, 0x31, 0xc0); // xor r10d, r10d; xor r8d, r8d

const installFilter = (places: Places): Buffer => {
  const failed = fail(places.noFilter, NO_FILTER);
  return Buffer.concat([
    clearMoreArguments,
    call(PRCTL, PR_SET_NO_NEW_PRIVS, 1, 0),
    call(SECCOMP, SECCOMP_SET_MODE_FILTER, 0, places.filter),
    bytes(0x85, 0xc0), // test eax, eax
    bytes(0x74, failed.length), // jz past the failure code
    failed,
  ]);
};

const code = ({ closeFrom, filter }: GateOptions, places: Places): Buffer =>
  Buffer.concat([
    // An old kernel refuses this. Then only the descriptors that the service itself left open are inherited
    // (inherited.ts).
    call(CLOSE_RANGE, closeFrom, LAST_DESCRIPTOR, 0),
    ...(filter === null ? [] : [installFilter(places)]),
    becomeProgram,
    fail(places.noProgram, NO_PROGRAM),
  ]);

/** struct sock_fprog: the number of instructions, and their address. */
const filterHeader = (filter: Buffer, address: number): Buffer => {
  const header = Buffer.alloc(16);
  header.writeUInt16LE(filter.length / 8, 0);
  header.writeBigUInt64LE(BigInt(address), 8);
  return header;
};

/** The gate as an ELF file for x86-64, the only architecture that it supports. */
export const gateProgram = (options: GateOptions): Buffer => {
  const noFilter = Buffer.from("gate: the kernel refuses the seccomp filter\n");
  const noProgram = Buffer.from("gate: the program cannot be started\n");
  const placesBehind = (codeBytes: number): Places => {
    const first = CODE_ADDRESS + codeBytes;
    return {
      noFilter: { address: first, length: noFilter.length },
      noProgram: { address: first + noFilter.length, length: noProgram.length },
      filter: first + noFilter.length + noProgram.length,
    };
  };
  const places = placesBehind(code(options, placesBehind(0)).length);
  const { filter } = options;
  const body = Buffer.concat([
    code(options, places),
    noFilter,
    noProgram,
    ...(filter === null ? [] : [filterHeader(filter, places.filter + 16), filter]),
  ]);
  return staticProgram(body);
};

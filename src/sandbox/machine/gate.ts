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

export interface GateOptions {
  /** The first descriptor to close. */
  readonly closeFrom: number;
  /** The program of the seccomp filter (seccomp.ts). Null for no filter. */
  readonly filter: Buffer | null;
}

/** The load address of the only segment, which is the whole file. */
const LOAD_ADDRESS = 0x400000;
const ELF_HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const CODE_OFFSET = ELF_HEADER_BYTES + 2 * PROGRAM_HEADER_BYTES;

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

const bytes = (...values: readonly number[]): Buffer => Buffer.from(values);
const word = (value: number): Buffer => {
  const four = Buffer.alloc(4);
  four.writeUInt32LE(value);
  return four;
};

/** `mov r32, value`. It clears the upper half of the register. The opcode is b8 plus the register's number. */
const REGISTERS = { eax: 0, edx: 2, esi: 6, edi: 7 } as const;
const move = (register: keyof typeof REGISTERS, value: number): Buffer =>
  Buffer.concat([bytes(0xb8 + REGISTERS[register]), word(value)]);

/** A system call with up to three arguments. The result is in eax. It overwrites rcx and r11. */
const call = (number: number, ...[first, second, third]: readonly number[]): Buffer =>
  Buffer.concat([
    move("eax", number),
    ...(first === undefined ? [] : [move("edi", first)]),
    ...(second === undefined ? [] : [move("esi", second)]),
    ...(third === undefined ? [] : [move("edx", third)]),
    bytes(0x0f, 0x05), // syscall
  ]);

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
  bytes(0x0f, 0x05), // syscall; returns only on failure
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

const elfHeader = (): Buffer => {
  const header = Buffer.alloc(ELF_HEADER_BYTES);
  header.write("\x7fELF", "latin1");
  header.set([2, 1, 1], 4); // 64 bits, little-endian, version 1
  header.writeUInt16LE(2, 16); // ET_EXEC
  header.writeUInt16LE(62, 18); // EM_X86_64
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(LOAD_ADDRESS + CODE_OFFSET), 24); // entry
  header.writeBigUInt64LE(BigInt(ELF_HEADER_BYTES), 32); // program headers
  header.writeUInt16LE(ELF_HEADER_BYTES, 52);
  header.writeUInt16LE(PROGRAM_HEADER_BYTES, 54);
  header.writeUInt16LE(2, 56);
  return header;
};

const programHeader = (type: number, flags: number, size: number): Buffer => {
  const header = Buffer.alloc(PROGRAM_HEADER_BYTES);
  header.writeUInt32LE(type, 0);
  header.writeUInt32LE(flags, 4);
  header.writeBigUInt64LE(BigInt(size === 0 ? 0 : LOAD_ADDRESS), 16);
  header.writeBigUInt64LE(BigInt(size === 0 ? 0 : LOAD_ADDRESS), 24);
  header.writeBigUInt64LE(BigInt(size), 32);
  header.writeBigUInt64LE(BigInt(size), 40);
  header.writeBigUInt64LE(0x1000n, 48);
  return header;
};

const PT_LOAD = 1;
const PT_GNU_STACK = 0x6474e551;
const READ_AND_EXECUTE = 5;
const READ_AND_WRITE = 6;

/** The gate as an ELF file for x86-64, the only architecture that it supports. */
export const gateProgram = (options: GateOptions): Buffer => {
  const noFilter = Buffer.from("gate: the kernel refuses the seccomp filter\n");
  const noProgram = Buffer.from("gate: the program cannot be started\n");
  const placesBehind = (codeBytes: number): Places => {
    const first = LOAD_ADDRESS + CODE_OFFSET + codeBytes;
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
  return Buffer.concat([
    elfHeader(),
    programHeader(PT_LOAD, READ_AND_EXECUTE, CODE_OFFSET + body.length),
    programHeader(PT_GNU_STACK, READ_AND_WRITE, 0),
    body,
  ]);
};

/**
 * Static programs of a few hundred bytes for x86-64, generated as machine code. A machine may lack a compiler, Perl and
 * Python, and a package with a binary is more to trust than a few instructions (decision 0021).
 */

/** The load address of the only segment, which is the whole file. */
const LOAD_ADDRESS = 0x400000;
const ELF_HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const CODE_OFFSET = ELF_HEADER_BYTES + 2 * PROGRAM_HEADER_BYTES;

/** Where a program's first instruction is in its memory. */
export const CODE_ADDRESS = LOAD_ADDRESS + CODE_OFFSET;

export const bytes = (...values: readonly number[]): Buffer => Buffer.from(values);
export const word = (value: number): Buffer => {
  const four = Buffer.alloc(4);
  four.writeUInt32LE(value);
  return four;
};

/** `mov r32, value`. It clears the upper half of the register. The opcode is b8 plus the register's number. */
const REGISTERS = { eax: 0, edx: 2, esi: 6, edi: 7 } as const;
export const move = (register: keyof typeof REGISTERS, value: number): Buffer =>
  Buffer.concat([bytes(0xb8 + REGISTERS[register]), word(value)]);

export const SYSCALL: Buffer = bytes(0x0f, 0x05);

/** A system call with up to three arguments. The result is in eax. It overwrites rcx and r11. */
export const call = (number: number, ...[first, second, third]: readonly number[]): Buffer =>
  Buffer.concat([
    move("eax", number),
    ...(first === undefined ? [] : [move("edi", first)]),
    ...(second === undefined ? [] : [move("esi", second)]),
    ...(third === undefined ? [] : [move("edx", third)]),
    SYSCALL,
  ]);

const elfHeader = (): Buffer => {
  const header = Buffer.alloc(ELF_HEADER_BYTES);
  header.write("\x7fELF", "latin1");
  header.set([2, 1, 1], 4); // 64 bits, little-endian, version 1
  header.writeUInt16LE(2, 16); // ET_EXEC
  header.writeUInt16LE(62, 18); // EM_X86_64
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(CODE_ADDRESS), 24); // entry
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

/** The ELF file of a program. @param body its code, and the data behind it */
export const staticProgram = (body: Buffer): Buffer =>
  Buffer.concat([
    elfHeader(),
    programHeader(PT_LOAD, READ_AND_EXECUTE, CODE_OFFSET + body.length),
    programHeader(PT_GNU_STACK, READ_AND_WRITE, 0),
    body,
  ]);

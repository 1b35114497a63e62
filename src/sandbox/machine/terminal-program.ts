/**
 * The terminal program: it runs a command in a terminal of its own (a pseudoterminal) and passes bytes between that and
 * its standard input and output. The daemon starts it as the agent, so the terminal is the agent's (decision 0084).
 * Node cannot make a terminal, and `script` cannot change its size.
 *
 *  P1 Standard input has frames: four bytes with the length of the text that follows, then two with the number of rows
 *     and two with the number of columns, all little-endian. Rows 0 leave the size as it is. The first frame has no
 *     text, and the command starts only after it.
 *  P2 Standard output has what the command writes, unchanged. If it is not read, the command waits in its own write.
 *  P3 The program exits with the command's code, or 128 plus the number of its signal. All output is written before.
 *     The kernel then sends SIGHUP to the terminal's other processes.
 *  P4 At the end of standard input, the terminal stays until the command ends. When the program itself is killed, the
 *     terminal is gone, and the command gets SIGHUP.
 */
import { bytes, call, CODE_ADDRESS, move, staticProgram, SYSCALL, word } from "./static-program.ts";

/** Longest text of a frame. The buffer is larger, so that the frame's head has room, too. */
export const FRAME_TEXT_MAX = 32 * 1024;
const BUFFER_BYTES = 64 * 1024;
/** Nothing writes to this part of the buffer, so it has zeros. */
const ZEROS = 48 * 1024;

/** Constants of x86-64: system call numbers and their arguments. */
const READ = 0;
const WRITE = 1;
const OPEN = 2;
const CLOSE = 3;
const SIGACTION = 13;
const IOCTL = 16;
const DUP2 = 33;
const FORK = 57;
/** The caller waits until the new process runs another program. */
const VFORK = 58;
const EXECVE = 59;
const EXIT = 60;
const WAIT4 = 61;
const SETSID = 112;
const PRCTL = 157;
const READ_WRITE = 0x2;
const NO_CONTROLLING_TERMINAL = 0x100;
const CLOSE_ON_EXEC = 0x80000;
const TIOCSPTLCK = 0x40045431;
const TIOCGPTN = 0x80045430;
const TIOCSWINSZ = 0x5414;
const TIOCSCTTY = 0x540e;
const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;
const SIGINT = 2;
const SIGQUIT = 3;

/** Exit codes as in shells: there is no terminal, or the command cannot be started. */
const NO_TERMINAL = 126;
const NO_COMMAND = 127;

/** A piece of code, the place of a label, or a jump to one: its opcode, followed by the distance. */
type Part = Buffer | { readonly label: string } | { readonly jump: Buffer; readonly to: string };

const JUMP = bytes(0xe9);
const CALL = bytes(0xe8);
const IF_ZERO = bytes(0x0f, 0x84);
const IF_NOT_ZERO = bytes(0x0f, 0x85);
const IF_NEGATIVE = bytes(0x0f, 0x88);
const IF_NOT_POSITIVE = bytes(0x0f, 0x8e);

const label = (name: string): Part => ({ label: name });
const jump = (opcode: Buffer, to: string): Part => ({ jump: opcode, to });
const lengthOf = (part: Part): number =>
  Buffer.isBuffer(part) ? part.length : "label" in part ? 0 : part.jump.length + 4;

const assembled = (parts: readonly Part[]): Buffer => {
  const places = new Map<string, number>();
  let at = 0;
  for (const part of parts) {
    if (!Buffer.isBuffer(part) && "label" in part) places.set(part.label, at);
    at += lengthOf(part);
  }
  at = 0;
  return Buffer.concat(
    parts.map((part) => {
      at += lengthOf(part);
      if (Buffer.isBuffer(part)) return part;
      if ("label" in part) return Buffer.alloc(0);
      const place = places.get(part.to);
      if (place === undefined) throw new Error(`no label ${part.to}`);
      return Buffer.concat([part.jump, word((place - at) >>> 0)]);
    }),
  );
};

// Registers: r12 has the buffer, r13 the terminal, rbx the command's side of it and later the command's pid. A system
// call leaves them as they are. rbp has the stack as the program found it.
const TEST_RAX = bytes(0x48, 0x85, 0xc0);
const TEST_EAX = bytes(0x85, 0xc0);
const RETURN = bytes(0xc3);
/** `mov edi, r13d` and `mov edi, ebx`. */
const TERMINAL_TO_EDI = bytes(0x44, 0x89, 0xef);
const COMMAND_TO_EDI = bytes(0x89, 0xdf);
/** `mov rsi, r12`, and `lea rsi, [r12 + offset]`. */
const BUFFER_TO_RSI = bytes(0x4c, 0x89, 0xe6);
const bufferToRsi = (offset: number): Buffer => Buffer.concat([bytes(0x49, 0x8d, 0xb4, 0x24), word(offset)]);

/** ioctl(edi, request, rdx) where rdx = r12 + offset. */
const control = (request: number, offset: number): Buffer =>
  Buffer.concat([
    bytes(0x49, 0x8d, 0x94, 0x24),
    word(offset), // lea rdx, [r12 + offset]
    move("esi", request),
    move("eax", IOCTL),
    SYSCALL,
  ]);

/** Opens a new terminal, and its other side by its number. */
const opened = (device: number): readonly Part[] => [
  bytes(0x48, 0x89, 0xe5), // mov rbp, rsp
  bytes(0x48, 0x81, 0xec),
  word(BUFFER_BYTES), // sub rsp, BUFFER_BYTES
  bytes(0x49, 0x89, 0xe4), // mov r12, rsp
  call(OPEN, device, READ_WRITE | NO_CONTROLLING_TERMINAL | CLOSE_ON_EXEC),
  TEST_EAX,
  jump(IF_NEGATIVE, "no terminal"),
  bytes(0x41, 0x89, 0xc5), // mov r13d, eax
  TERMINAL_TO_EDI,
  control(TIOCSPTLCK, ZEROS),
  TERMINAL_TO_EDI,
  control(TIOCGPTN, 0),
  // The path, from its last digit to its beginning. It ends at r12 + 64, where there is a zero.
  bytes(0x41, 0x8b, 0x04, 0x24), // mov eax, [r12]
  bytes(0x49, 0x8d, 0x7c, 0x24, 0x40), // lea rdi, [r12 + 64]
  bytes(0xb9),
  word(10), // mov ecx, 10
  label("digit"),
  bytes(0x31, 0xd2), // xor edx, edx
  bytes(0xf7, 0xf1), // div ecx
  bytes(0x80, 0xc2, 0x30), // add dl, '0'
  bytes(0x48, 0xff, 0xcf), // dec rdi
  bytes(0x88, 0x17), // mov [rdi], dl
  TEST_EAX,
  jump(IF_NOT_ZERO, "digit"),
  bytes(0x48, 0x83, 0xef, 0x09), // sub rdi, 9
  bytes(0x48, 0xb8),
  Buffer.from("/dev/pts"), // mov rax, "/dev/pts"
  bytes(0x48, 0x89, 0x07), // mov [rdi], rax
  bytes(0xc6, 0x47, 0x08, 0x2f), // mov byte [rdi + 8], '/'
  move("esi", READ_WRITE | NO_CONTROLLING_TERMINAL),
  move("eax", OPEN),
  SYSCALL,
  TEST_EAX,
  jump(IF_NEGATIVE, "no terminal"),
  bytes(0x89, 0xc3), // mov ebx, eax
];

/** Reads a frame's head to r12, and sets the size that it has. */
const frameHead: readonly Part[] = [
  label("head"),
  BUFFER_TO_RSI,
  move("edx", 8),
  jump(CALL, "read all"),
  bytes(0x66, 0x41, 0x83, 0x7c, 0x24, 0x04, 0x00), // cmp word [r12 + 4], 0
  jump(IF_ZERO, "same size"),
  // struct winsize: rows, columns, and two numbers that are unused.
  bytes(0x41, 0x8b, 0x44, 0x24, 0x04), // mov eax, [r12 + 4]
  bytes(0x41, 0x89, 0x44, 0x24, 0x10), // mov [r12 + 16], eax
  bytes(0x41, 0xc7, 0x44, 0x24, 0x14),
  word(0), // mov dword [r12 + 20], 0
  TERMINAL_TO_EDI,
  control(TIOCSWINSZ, 16),
  label("same size"),
  RETURN,
];

/** Reads rdx bytes from standard input to rsi. At its end, the process ends. */
const readAll: readonly Part[] = [
  label("read all"),
  bytes(0x48, 0x85, 0xd2), // test rdx, rdx
  jump(IF_ZERO, "all read"),
  bytes(0x31, 0xff), // xor edi, edi
  move("eax", READ),
  SYSCALL,
  TEST_RAX,
  jump(IF_NOT_POSITIVE, "end"),
  bytes(0x48, 0x01, 0xc6), // add rsi, rax
  bytes(0x48, 0x29, 0xc2), // sub rdx, rax
  jump(JUMP, "read all"),
  label("all read"),
  RETURN,
];

/** Writes rdx bytes from rsi to the descriptor edi. If its reader has gone, the process ends. */
const writeAll: readonly Part[] = [
  label("write all"),
  move("eax", WRITE),
  SYSCALL,
  TEST_RAX,
  jump(IF_NOT_POSITIVE, "end"),
  bytes(0x48, 0x01, 0xc6), // add rsi, rax
  bytes(0x48, 0x29, 0xc2), // sub rdx, rax
  jump(IF_NOT_ZERO, "write all"),
  RETURN,
];

/** A background job of a shell ignores these signals, and so would every program in the terminal. */
const heedSignal = (signal: number): Buffer =>
  Buffer.concat([
    bytes(0x45, 0x31, 0xd2, 0x41, 0xb2, 0x08), // xor r10d, r10d; mov r10b, 8
    bufferToRsi(ZEROS),
    bytes(0x31, 0xd2), // xor edx, edx
    move("edi", signal),
    move("eax", SIGACTION),
    SYSCALL,
  ]);

const asStandard = (descriptor: number): Buffer =>
  Buffer.concat([COMMAND_TO_EDI, move("esi", descriptor), move("eax", DUP2), SYSCALL]);

/** The command's process: a session of its own, whose terminal is the new one. */
const command: readonly Part[] = [
  label("command"),
  heedSignal(SIGINT),
  heedSignal(SIGQUIT),
  call(SETSID),
  COMMAND_TO_EDI,
  move("esi", TIOCSCTTY),
  bytes(0x31, 0xd2), // xor edx, edx
  move("eax", IOCTL),
  SYSCALL,
  asStandard(0),
  asStandard(1),
  asStandard(2),
  COMMAND_TO_EDI,
  move("eax", CLOSE),
  SYSCALL,
  // execve(argv[1], argv + 1, environment), as in gate.ts, from the stack as it was.
  bytes(0x48, 0x8b, 0x45, 0x00), // mov rax, [rbp]
  bytes(0x48, 0x8d, 0x54, 0xc5, 0x10), // lea rdx, [rbp + rax * 8 + 16]
  bytes(0x48, 0x8d, 0x75, 0x10), // lea rsi, [rbp + 16]
  bytes(0x48, 0x8b, 0x3e), // mov rdi, [rsi]
  move("eax", EXECVE),
  SYSCALL,
  call(EXIT, NO_COMMAND),
];

/** The process for input. It ends with the one for output. */
const input: readonly Part[] = [
  label("input"),
  call(PRCTL, PR_SET_PDEATHSIG, SIGKILL),
  label("next frame"),
  jump(CALL, "head"),
  bytes(0x41, 0x8b, 0x14, 0x24), // mov edx, [r12]
  bytes(0x81, 0xfa),
  word(FRAME_TEXT_MAX), // cmp edx, FRAME_TEXT_MAX
  jump(bytes(0x0f, 0x87), "end"), // ja
  bytes(0x85, 0xd2), // test edx, edx
  jump(IF_ZERO, "next frame"),
  bytes(0x49, 0x89, 0xd6), // mov r14, rdx
  BUFFER_TO_RSI,
  jump(CALL, "read all"),
  BUFFER_TO_RSI,
  bytes(0x4c, 0x89, 0xf2), // mov rdx, r14
  TERMINAL_TO_EDI,
  jump(CALL, "write all"),
  jump(JUMP, "next frame"),
];

/** The first process: it passes output on until the command's side is closed, and takes over the command's exit code. */
const output: readonly Part[] = [
  label("output"),
  BUFFER_TO_RSI,
  move("edx", FRAME_TEXT_MAX),
  TERMINAL_TO_EDI,
  move("eax", READ),
  SYSCALL,
  TEST_RAX,
  jump(IF_NOT_POSITIVE, "ended"),
  bytes(0x48, 0x89, 0xc2), // mov rdx, rax
  BUFFER_TO_RSI,
  move("edi", 1),
  jump(CALL, "write all"),
  jump(JUMP, "output"),
  label("ended"),
  bytes(0x45, 0x31, 0xd2), // xor r10d, r10d
  bytes(0x31, 0xd2), // xor edx, edx
  BUFFER_TO_RSI,
  COMMAND_TO_EDI,
  move("eax", WAIT4),
  SYSCALL,
  bytes(0x41, 0x8b, 0x3c, 0x24), // mov edi, [r12]
  bytes(0x89, 0xf8), // mov eax, edi
  bytes(0x83, 0xe7, 0x7f), // and edi, 0x7f
  jump(IF_NOT_ZERO, "by signal"),
  bytes(0x0f, 0xb6, 0xfc), // movzx edi, ah
  jump(JUMP, "exit"),
  label("by signal"),
  bytes(0x81, 0xc7),
  word(128), // add edi, 128
  label("exit"),
  move("eax", EXIT),
  SYSCALL,
];

const program = (device: number): Buffer =>
  assembled([
    ...opened(device),
    jump(CALL, "head"),
    // Input that comes early meets a terminal with a command: an interrupt would be lost.
    call(VFORK),
    TEST_EAX,
    jump(IF_NEGATIVE, "no terminal"),
    jump(IF_ZERO, "command"),
    // The command's side is open in the command only, so that its end is the terminal's.
    bytes(0x41, 0x89, 0xc7), // mov r15d, eax
    COMMAND_TO_EDI,
    move("eax", CLOSE),
    SYSCALL,
    bytes(0x44, 0x89, 0xfb), // mov ebx, r15d
    call(FORK),
    TEST_EAX,
    jump(IF_ZERO, "input"),
    jump(JUMP, "output"),
    ...frameHead,
    ...readAll,
    ...writeAll,
    ...command,
    ...input,
    ...output,
    label("end"),
    call(EXIT, 0),
    label("no terminal"),
    call(EXIT, NO_TERMINAL),
  ]);

/** The program as an ELF file for x86-64. Its arguments are the command: the path of a program, then arguments. */
export const terminalProgram = (): Buffer => {
  const { length } = program(0);
  return staticProgram(Buffer.concat([program(CODE_ADDRESS + length), Buffer.from("/dev/ptmx\0")]));
};

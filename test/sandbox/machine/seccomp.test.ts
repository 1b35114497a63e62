import { describe, expect, it } from "vitest";
import {
  type Architecture,
  type FilterKind,
  seccompProgram,
} from "../../../src/sandbox/machine/isolation/seccomp.ts";

const ALLOW = "allow";
const KILL = "kill";

/** Runs the classic BPF program over a system call, as the kernel does. @returns `allow`, `kill` or the errno */
const judge = (
  program: Buffer,
  call: { nr: number; arch: number; args?: readonly number[] },
): string | number => {
  const seen = Buffer.alloc(64);
  seen.writeUInt32LE(call.nr >>> 0, 0);
  seen.writeUInt32LE(call.arch >>> 0, 4);
  for (const [index, value] of (call.args ?? []).entries()) seen.writeUInt32LE(value >>> 0, 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    const code = program.readUInt16LE(at * 8);
    const jt = program.readUInt8(at * 8 + 2);
    const jf = program.readUInt8(at * 8 + 3);
    const k = program.readUInt32LE(at * 8 + 4);
    if (code === 0x20) accumulator = seen.readUInt32LE(k);
    else if (code === 0x15) at += accumulator === k ? jt : jf;
    else if (code === 0x35) at += accumulator >= k ? jt : jf;
    else if (code === 0x45) at += (accumulator & k) !== 0 ? jt : jf;
    else if (code === 0x06) return k === 0x7fff0000 ? ALLOW : k === 0x80000000 ? KILL : k & 0xffff;
    else throw new Error(`unknown instruction ${code} at ${at}`);
  }
  throw new Error("the program ended without an answer");
};

const ARCH: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };
const on = (architecture: Architecture, kind: FilterKind = "agent") => {
  const program = seccompProgram(kind, architecture);
  return (nr: number, ...args: number[]) => judge(program, { nr, arch: ARCH[architecture], args });
};

describe.each<[Architecture, Record<string, number>]>([
  [
    "x64",
    {
      read: 0,
      ioctl: 16,
      socket: 41,
      socketpair: 53,
      clone: 56,
      clone3: 435,
      mount: 165,
      unshare: 272,
      ptrace: 101,
      bpf: 321,
    },
  ],
  [
    "arm64",
    {
      read: 63,
      ioctl: 29,
      socket: 198,
      socketpair: 199,
      clone: 220,
      clone3: 435,
      mount: 40,
      unshare: 97,
      ptrace: 117,
      bpf: 280,
    },
  ],
])("the seccomp filter on %s", (architecture, numbers) => {
  const call = on(architecture);
  const nr = (name: string): number => numbers[name] ?? -1;

  it("allows common system calls", () => {
    expect(call(nr("read"))).toBe(ALLOW);
    expect(call(nr("clone"), 0x3d0f00)).toBe(ALLOW);
    expect(call(nr("ioctl"), 0, 0x5401)).toBe(ALLOW);
    for (const family of [1, 2, 10]) expect(call(nr("socket"), family, 1, 0)).toBe(ALLOW);
    expect(call(nr("socketpair"), 1, 1, 0)).toBe(ALLOW);
  });

  it("refuses mounts, namespaces, tracing and bpf programs", () => {
    for (const name of ["mount", "unshare", "ptrace", "bpf"]) expect(call(nr(name))).toBe(1);
    for (const bit of [17, 25, 26, 27, 28, 29, 30]) expect(call(nr("clone"), 2 ** bit)).toBe(1);
  });

  it("reports clone3 as unknown, so that libc uses clone", () => {
    expect(call(nr("clone3"))).toBe(38);
  });

  it("refuses socket families beyond unix, internet and routing", () => {
    for (const family of [0, 3, 15, 17, 31, 38, 40, 44]) expect(call(nr("socket"), family, 1, 0)).toBe(97);
    expect(call(nr("socket"), 16, 3, 0)).toBe(ALLOW);
    expect(call(nr("socket"), 16, 3, 12)).toBe(97);
    expect(call(nr("socketpair"), 40, 1, 0)).toBe(97);
  });

  it("refuses to insert input into terminals", () => {
    for (const command of [0x5412, 0x541c]) expect(call(nr("ioctl"), 0, command)).toBe(1);
  });

  it("leaves the daemon's filter the calls to nest the agent, and nothing more", () => {
    const supervisor = on(architecture, "supervisor");
    expect(supervisor(nr("unshare"))).toBe(ALLOW);
    expect(supervisor(nr("mount"))).toBe(ALLOW);
    expect(supervisor(nr("clone"), 2 ** 28)).toBe(ALLOW);
    expect(supervisor(nr("bpf"))).toBe(1);
    expect(supervisor(nr("socket"), 40, 1, 0)).toBe(97);
  });

  it("leaves builds mounts and mount namespaces, and no other namespace", () => {
    const builder = on(architecture, "builder");
    for (const name of ["mount", "clone", "read"]) expect(builder(nr(name))).toBe(ALLOW);
    expect(builder(nr("unshare"), 0x20000)).toBe(ALLOW);
    for (const bit of [25, 28, 29, 30]) {
      expect(builder(nr("unshare"), 0x20000 + 2 ** bit)).toBe(1);
      expect(builder(nr("clone"), 2 ** bit)).toBe(1);
    }
    for (const name of ["bpf", "ptrace"]) expect(builder(nr(name))).toBe(1);
    // fsopen: libc and buildah use mount then.
    expect(builder(430)).toBe(38);
    expect(builder(nr("socket"), 40, 1, 0)).toBe(97);
  });

  it("kills processes that use another architecture's call numbers", () => {
    const program = seccompProgram("agent", architecture);
    expect(judge(program, { nr: nr("read"), arch: 0x40000003 })).toBe(KILL);
  });
});

describe("the seccomp filter", () => {
  it("stops every x32 call, regardless of its number", () => {
    expect(on("x64")(0x40000000 + 321)).toBe(38);
    expect(on("x64")(-1)).toBe(38);
  });
});

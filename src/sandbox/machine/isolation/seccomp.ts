/**
 * The seccomp filter of a sandbox as a classic BPF program, generated here so that it can be read and tested without a
 * compiler. It is a deny list for kernel interfaces that namespaces do not restrict: those with a history of escapes,
 * and those that create further namespaces. Everything else is allowed, so that ordinary tools work.
 *
 *  F1 A process of another architecture (or x32) cannot make any system call past the filter.
 *  F2 A denied call fails with EPERM. Exceptions: `clone3` fails with ENOSYS (its flags are in memory, and libc then
 *     uses `clone`), and unwanted socket families fail with EAFNOSUPPORT (programs expect it for a missing family).
 */

export type Architecture = "x64" | "arm64";

/**
 * `agent`: everything. `supervisor`: allows the calls with which the daemon starts the agent in nested namespaces.
 * `builder`: allows mounts and mount namespaces, with which an image's layers are stacked (src/builder/buildah), and no
 * other namespaces.
 */
export type FilterKind = "agent" | "supervisor" | "builder";

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of linux/audit.h. */
const AUDIT_ARCH: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** System call numbers. Null if an architecture lacks the call. */
type Numbers = Record<Architecture, number | null>;
const both = (number: number): Numbers => ({ x64: number, arm64: number });
const each = (x64: number, arm64: number | null): Numbers => ({ x64, arm64 });

const UNSHARE = each(272, 97);

/** The newer calls for mounts. libc and buildah use the older ones if the kernel lacks these. */
const NEW_MOUNT_CALLS: Record<string, Numbers> = {
  open_tree: both(428),
  move_mount: both(429),
  fsopen: both(430),
  fsconfig: both(431),
  fsmount: both(432),
  fspick: both(433),
  mount_setattr: both(442),
  open_tree_attr: both(467),
};

const SETNS = each(308, 268);

/** Calls that create or enter namespaces and change mounts. */
const NAMESPACE_CALLS: Record<string, Numbers> = {
  mount: each(165, 40),
  umount2: each(166, 39),
  pivot_root: each(155, 41),
  chroot: each(161, 51),
  ...NEW_MOUNT_CALLS,
  unshare: UNSHARE,
  setns: SETNS,
};

const DENIED_CALLS: Record<string, Numbers> = {
  // access to other processes
  ptrace: each(101, 117),
  process_vm_readv: each(310, 270),
  process_vm_writev: each(311, 271),
  kcmp: each(312, 272),
  pidfd_getfd: both(438),
  // kernel programs, counters, faults handled in user space, rings
  bpf: each(321, 280),
  perf_event_open: each(298, 241),
  userfaultfd: each(323, 282),
  io_uring_setup: both(425),
  io_uring_enter: both(426),
  io_uring_register: both(427),
  // keyrings are not namespaced
  add_key: each(248, 217),
  request_key: each(249, 218),
  keyctl: each(250, 219),
  // control of the machine itself
  kexec_load: each(246, 104),
  kexec_file_load: each(320, 294),
  init_module: each(175, 105),
  finit_module: each(313, 273),
  delete_module: each(176, 106),
  reboot: each(169, 142),
  swapon: each(167, 224),
  swapoff: each(168, 225),
  syslog: each(103, 116),
  acct: each(163, 89),
  quotactl: each(179, 60),
  quotactl_fd: both(443),
  settimeofday: each(164, 170),
  clock_settime: each(227, 112),
  clock_adjtime: each(305, 266),
  adjtimex: each(159, 171),
  sethostname: each(170, 161),
  setdomainname: each(171, 162),
  vhangup: each(153, 58),
  iopl: each(172, null),
  ioperm: each(173, null),
  modify_ldt: each(154, null),
  uselib: each(134, null),
  // rarely used, often broken
  open_by_handle_at: each(304, 265),
  fanotify_init: each(300, 262),
  lookup_dcookie: each(212, 18),
  nfsservctl: each(180, 42),
  migrate_pages: each(256, 238),
  move_pages: each(279, 239),
  memfd_secret: both(447),
};

const CLONE = each(56, 220);
const CLONE3 = both(435);
const SOCKET = each(41, 198);
const SOCKETPAIR = each(53, 199);
const IOCTL = each(16, 29);

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const CLONE_NEW_FLAGS = 0x7e020000;
/** The same without NEWNS, NEWUTS and NEWIPC, which a build may create. */
const CLONE_NEW_FLAGS_OF_BUILDS = 0x72000000;
/** CLONE_NEWTIME. In clone's flags, the bit belongs to the signal. */
const UNSHARE_NEW_TIME = 0x80;
/** TIOCSTI and TIOCLINUX insert characters into a terminal's input. */
const TERMINAL_INJECTION = [0x5412, 0x541c];
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;

const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const errno = (code: number): number => 0x00050000 | code;

/** Offsets in struct seccomp_data (both architectures are little-endian: the low half of an argument comes first). */
const NUMBER = 0;
const ARCH = 4;
const argument = (index: number): number => 16 + 8 * index;

/** One struct sock_filter: code, jump if true, jump if false, operand. */
type Instruction = readonly [code: number, jt: number, jf: number, k: number];
const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const jumpIfEqual = (k: number, jt: number, jf: number): Instruction => [0x15, jt, jf, k];
const jumpIfAtLeast = (k: number, jt: number, jf: number): Instruction => [0x35, jt, jf, k];
const jumpIfAnySet = (k: number, jt: number, jf: number): Instruction => [0x45, jt, jf, k];
const answer = (k: number): Instruction => [0x06, 0, 0, k];

/** Runs `body` if the call's number (in the accumulator) is `number`. Every path of `body` ends in an answer. */
const onCall = (number: number | null, body: readonly Instruction[]): Instruction[] =>
  number === null ? [] : [jumpIfEqual(number, 0, body.length), ...body];

const deny = (
  calls: Record<string, Numbers>,
  architecture: Architecture,
  code: number = EPERM,
): Instruction[] =>
  Object.values(calls).flatMap((numbers) => onCall(numbers[architecture], [answer(errno(code))]));

/** Unix, IPv4, IPv6 and netlink's routing family (which interface lists need). No packet, vsock or crypto sockets. */
const socketRule: readonly Instruction[] = [
  load(argument(0)),
  jumpIfEqual(AF_UNIX, 5, 0),
  jumpIfEqual(AF_INET, 4, 0),
  jumpIfEqual(AF_INET6, 3, 0),
  jumpIfEqual(AF_NETLINK, 0, 3),
  load(argument(2)),
  jumpIfEqual(0, 0, 1),
  answer(ALLOW),
  answer(errno(EAFNOSUPPORT)),
];

const socketpairRule: readonly Instruction[] = [
  load(argument(0)),
  jumpIfEqual(AF_UNIX, 0, 1),
  answer(ALLOW),
  answer(errno(EAFNOSUPPORT)),
];

const ioctlRule: readonly Instruction[] = [
  load(argument(1)),
  ...TERMINAL_INJECTION.flatMap((command) => [jumpIfEqual(command, 0, 1), answer(errno(EPERM))]),
  answer(ALLOW),
];

/** Of clone and unshare, whose first argument are flags. */
const namespaceRule = (flags: number): readonly Instruction[] => [
  load(argument(0)),
  jumpIfAnySet(flags, 0, 1),
  answer(errno(EPERM)),
  answer(ALLOW),
];

const namespaceRules = (kind: FilterKind, architecture: Architecture): Instruction[] => {
  switch (kind) {
    case "supervisor":
      return [];
    case "agent":
      return [
        ...deny(NAMESPACE_CALLS, architecture),
        ...onCall(CLONE[architecture], namespaceRule(CLONE_NEW_FLAGS)),
      ];
    case "builder":
      return [
        ...deny(NEW_MOUNT_CALLS, architecture, ENOSYS),
        ...deny({ setns: SETNS }, architecture),
        ...onCall(UNSHARE[architecture], namespaceRule(CLONE_NEW_FLAGS_OF_BUILDS | UNSHARE_NEW_TIME)),
        ...onCall(CLONE[architecture], namespaceRule(CLONE_NEW_FLAGS_OF_BUILDS)),
      ];
  }
};

const instructions = (kind: FilterKind, architecture: Architecture): Instruction[] => [
  load(ARCH),
  jumpIfEqual(AUDIT_ARCH[architecture], 1, 0),
  answer(KILL_PROCESS),
  load(NUMBER),
  // x32 calls of an x86_64 kernel carry this bit and would slip past the numbers below (F1)
  ...(architecture === "x64" ? [jumpIfAtLeast(0x40000000, 0, 1), answer(errno(ENOSYS))] : []),
  ...deny(DENIED_CALLS, architecture),
  ...namespaceRules(kind, architecture),
  ...onCall(CLONE3[architecture], [answer(errno(ENOSYS))]),
  ...onCall(SOCKET[architecture], socketRule),
  ...onCall(SOCKETPAIR[architecture], socketpairRule),
  ...onCall(IOCTL[architecture], ioctlRule),
  answer(ALLOW),
];

/** The architecture by its name in Node. Null if it has no filter. */
export const knownArchitecture = (arch: string): Architecture | null =>
  arch === "x64" || arch === "arm64" ? arch : null;

/** The architecture of this machine. @throws Error if it has no filter */
export const machineArchitecture = (): Architecture => {
  const architecture = knownArchitecture(process.arch);
  if (architecture === null) throw new Error(`no seccomp filter exists for ${process.arch}`);
  return architecture;
};

/** The filter as the array of struct sock_filter that bubblewrap's `--seccomp` takes. */
export const seccompProgram = (kind: FilterKind, architecture: Architecture): Buffer => {
  const program = instructions(kind, architecture);
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, jt, jf, k]] of program.entries()) {
    const offset = index * 8;
    bytes.writeUInt16LE(code, offset);
    bytes.writeUInt8(jt, offset + 2);
    bytes.writeUInt8(jf, offset + 3);
    bytes.writeUInt32LE(k, offset + 4);
  }
  return bytes;
};

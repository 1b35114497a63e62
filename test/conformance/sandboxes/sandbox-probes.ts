/**
 * Attempts of an agent to leave its sandbox (threats.md "Probes from inside a sandbox"). Each is a shell script that
 * runs as the agent. Exit code 0 means that the attempt succeeded, and then the probe's test fails.
 */

export interface Probe {
  /** The forbidden action, as the end of "does not let the agent …". */
  readonly name: string;
  readonly script: string;
  /** Only the seccomp filter refuses it, so the form without a filter is not tested. */
  readonly needsFilter?: true;
  /** Uses this architecture's system call numbers. */
  readonly onlyOn?: "x64";
}

/** Facts about the machine that the probes need. */
export interface ProbeWorld {
  readonly runDir: string;
  readonly canary: string;
  /** The port of a listener on the host's loopback. */
  readonly hostPort: number;
  /**
   * Whether a sandbox has a kernel of its own. That kernel makes a /sys and a /dev/net of its own, so there the probes
   * look for the host's devices in them.
   */
  readonly ownKernel: boolean;
  /** Whether /sys exists and is empty: an engine needs the directory. */
  readonly emptySys: boolean;
}

const any = (...attempts: string[]): string => attempts.map((attempt) => `{ ${attempt}; }`).join(" || ");
/** A pattern that matches the text but not itself, because the script is part of its own command line. */
const unlike = (text: string): string => `${text.slice(0, -1)}[${text.slice(-1)}]`;
const exists = (...paths: string[]): string => any(...paths.map((path) => `[ -e ${path} ]`));

/** Succeeds unless the kernel refused: an error about arguments means that the call's code was reached. */
const systemCall = (number: number, ...args: string[]): string =>
  `perl -MErrno -e '$r = syscall(${[number, ...args].join(", ")}); exit($r == -1 && ($!{EPERM} || $!{ENOSYS} || $!{EACCES}) ? 1 : 0)'`;

const socket = (family: number, type: number): string =>
  `perl -MErrno -MSocket -e 'exit(socket(S, ${family}, ${type}, 0) ? 0 : 1)'`;

/** Succeeds if any of the addresses accepts a connection. */
const connect = (targets: readonly (readonly [string, number])[]): string =>
  `node -e '
  const net = require("node:net");
  let open = ${targets.length};
  const closed = () => { if (--open === 0) process.exit(1); };
  for (const [host, port] of ${JSON.stringify(targets)}) {
    const socket = net.connect({ host, port }, () => process.exit(0));
    socket.setTimeout(3000, () => socket.destroy());
    socket.on("error", () => {}).on("close", closed);
  }'`;

/** Succeeds if the egress proxy opens a tunnel to any of them, or answers a plain request with anything but 403. */
const throughProxy = (targets: readonly string[]): string =>
  `node -e '
  const http = require("node:http");
  const targets = ${JSON.stringify(targets)};
  let open = targets.length * 2;
  const judge = (answer) => {
    if (answer.statusCode !== 403) { console.log(answer.statusCode); process.exit(0); }
    if (--open === 0) process.exit(1);
  };
  for (const target of targets) {
    const proxy = { host: "127.0.0.1", port: 3128 };
    http.request({ ...proxy, method: "CONNECT", path: target }).on("connect", judge).end();
    http.request({ ...proxy, path: "http://" + target + "/", headers: { host: target } }, judge).end();
  }'`;

const anythingIn = (...directories: string[]): string =>
  any(...directories.map((path) => `[ -n "$(ls -A ${path} 2>/dev/null)" ]`));

const sysOfHost = ({ ownKernel, emptySys }: Pick<ProbeWorld, "ownKernel" | "emptySys">): string => {
  if (ownKernel) return anythingIn("/sys/block", "/sys/bus", "/sys/module", "/sys/firmware");
  return emptySys ? anythingIn("/sys") : exists("/sys");
};

const files = ({ runDir, canary, ownKernel, emptySys }: ProbeWorld): readonly Probe[] => [
  {
    name: "see files of the host",
    script: any(
      exists("/etc/shadow", "/root", "/home", "/var/lib", "/boot", runDir),
      sysOfHost({ ownKernel, emptySys }),
    ),
  },
  {
    name: "reach container or system sockets",
    script: exists("/run/docker.sock", "/run/podman", "/run/dbus", "/run/systemd"),
  },
  {
    name: "use kvm, disks or memory devices",
    script: any(
      exists("/dev/kvm", "/dev/vda", "/dev/sda", "/dev/mem"),
      ownKernel ? `[ "$(ls -A /dev/net)" != tun ]` : exists("/dev/net"),
      "mknod /tmp/disk b 8 0",
    ),
  },
  {
    name: "write anywhere but its own directories",
    script: any(
      ...["/x", "/usr/x", "/etc/x", "/dev/x", "/run/x", "/usr/local/bin/x", "/opt/platform/lib/x"].map(
        (path) => `touch ${path}`,
      ),
      "chmod 777 /usr/bin/env",
      "echo >> /usr/local/bin/platform-agent",
    ),
  },
  {
    name: "change the kernel's settings",
    script: any(
      "echo x > /proc/sys/kernel/core_pattern",
      "echo 1 > /proc/sys/vm/drop_caches",
      "echo b > /proc/sysrq-trigger",
      "echo 100 > /proc/sys/user/max_user_namespaces",
      "head -c1 /proc/kcore",
      "mkdir /sys/fs/cgroup/x",
    ),
  },
  {
    name: "see processes of the host",
    script: `[ "$(ls /proc | grep -c '^[0-9]')" -gt 20 ]`,
  },
  {
    name: "read the daemon's environment or files",
    script: any(
      `grep -qa ${canary}-token /proc/[0-9]*/environ`,
      `grep -rqs ${canary} /run/platform`,
      "cat /run/platform/launch.json",
    ),
  },
  {
    name: "get into the daemon or PID 1 by any file, signal, trace, memory call or descriptor [S05]",
    script: INTRUSION,
  },
  {
    name: "find the daemon's token anywhere it can read",
    script: any(
      `grep -rqsa '${unlike(`${canary}-token`)}' /run /etc /opt /tmp /dev/shm /workspace "$HOME" /usr/local`,
      `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/root/run/platform/*.json 2>/dev/null | grep -qa '${unlike(`${canary}-token`)}'`,
    ),
  },
  {
    name: "read the daemon's memory, or signal it",
    script: `for pid in $(grep -l 'platform-agen[t]' /proc/[0-9]*/cmdline | cut -d/ -f3); do
      kill -0 "$pid" && exit 0; cat "/proc/$pid/maps" && exit 0; ls "/proc/$pid/fd" && exit 0; done; exit 1`,
  },
];

/**
 * Tries every way into processes that the agent must not reach, the daemon and PID 1: their files in /proc, signals,
 * tracing, and their memory and descriptors by system call. If a way is open, it names the way and succeeds. The daemon
 * itself has open ways: run as the daemon, the script must succeed, or it proves nothing.
 */
export const INTRUSION = `perl -MErrno -e '
  my ($self, @open) = ($$);
  sub try_call { my ($way, $number, @args) = @_; my $r = syscall($number, @args);
    push @open, "$way (" . ($r == -1 ? $! + 0 : "done") . ")" unless $r == -1 && ($!{EPERM} || $!{EACCES} || $!{ENOSYS}); return $r }
  for my $directory (glob "/proc/[0-9]*") {
    # A number: of a text syscall would pass the address.
    my $pid = 0 + ($directory =~ /([0-9]+)$/)[0];
    open(my $command, "<", "$directory/cmdline") or next;
    my $line = <$command> // ""; 
    next unless $line =~ m{/usr/local/bin/platform-(agent|entrypoint)} && $line !~ /perl/;
    for my $name (qw(environ mem maps auxv syscall stack io smaps pagemap)) {
      open(my $file, "<", "$directory/$name") or next;
      sysread($file, my $bytes, 1) and push @open, "$name of $pid";
    }
    for my $name (qw(cwd root exe)) { push @open, "$name of $pid" if defined readlink "$directory/$name" }
    for my $name (qw(fd map_files ns/)) { opendir(my $d, "$directory/$name") and push @open, "$name of $pid" if $name ne "ns/" }
    push @open, "writing to $pid" if open(my $file, ">>", "$directory/oom_score_adj");
    push @open, "signal to $pid" if kill(0, $pid);
    next if $^O ne "linux" || ((qx(uname -m)) !~ /x86_64/);
    if (try_call("trace of $pid", 101, 16, $pid, 0, 0) == 0) { waitpid($pid, 0); syscall(101, 17, $pid, 0, 0) }
    if (try_call("seizing $pid", 101, 0x4206, $pid, 0, 0) == 0) { syscall(101, 17, $pid, 0, 0) }
    my $buffer = "x" x 8; my $place = pack("QQ", unpack("Q", pack("p", $buffer)), 8);
    try_call("memory of $pid", 310, $pid, $place, 1, $place, 1, 0);
    my $handle = syscall(434, $pid, 0);
    if ($handle >= 0) { try_call("descriptor of $pid", 438, $handle, 1, 0); try_call("signal by handle to $pid", 424, $handle, 0, 0, 0) }
  }
  print join(", ", @open), "\\n"; exit(@open ? 0 : 1)'`;

const kernel: readonly Probe[] = [
  {
    name: "mount, unmount or change the root",
    script: any("mount -t tmpfs none /tmp", "umount /workspace", "mount -o remount,rw /", "chroot / true"),
  },
  {
    name: "make or enter namespaces",
    script: any(
      ...["user", "mount", "net", "pid", "ipc", "uts"].map((kind) => `unshare --${kind} true`),
      "unshare --user --map-root-user --mount true",
      "nsenter --target 1 --mount true",
    ),
  },
  { name: "become root", script: `perl -e '$< = 0; $> = 0; exit($> == 0 ? 0 : 1)'` },
  { name: "open packet sockets", script: socket(17, 3) },
  {
    name: "open vsock or kernel crypto sockets",
    script: any(socket(40, 1), socket(38, 5)),
    needsFilter: true,
  },
  {
    name: "read the kernel's log",
    script: any("dmesg", "head -c1 /dev/kmsg", "head -c1 /proc/kmsg"),
    needsFilter: true,
  },
  { name: "trace a process", script: systemCall(101, "0", "0", "0", "0"), needsFilter: true, onlyOn: "x64" },
  { name: "load bpf programs", script: systemCall(321, "5", "0", "0"), needsFilter: true, onlyOn: "x64" },
  {
    name: "open perf events",
    script: systemCall(298, "0", "0", "-1", "-1", "0"),
    needsFilter: true,
    onlyOn: "x64",
  },
  { name: "use userfaultfd", script: systemCall(323, "1"), needsFilter: true, onlyOn: "x64" },
  { name: "use io_uring", script: systemCall(425, "1", "0"), needsFilter: true, onlyOn: "x64" },
  { name: "use kernel keyrings", script: systemCall(250, "0", "-3", "1"), needsFilter: true, onlyOn: "x64" },
  { name: "load another kernel", script: systemCall(246, "0", "0", "0", "0"), onlyOn: "x64" },
  {
    name: "type into a terminal",
    script: systemCall(16, "0", "0x5412", "0"),
    needsFilter: true,
    onlyOn: "x64",
  },
  {
    name: "open a million files in a process",
    script: `node -e 'for (let n = 0; n < 5000; n += 1) require("node:fs").openSync("/dev/null")'`,
  },
  {
    name: "start thousands of processes",
    script: `sh -c 'n=0; while [ $n -lt 2000 ]; do sleep 60 >/dev/null 2>&1 & n=$((n + 1)); done'
      code=$?; kill -KILL -1
      # Killed processes count until they are reaped, and the next probe needs threads. No fork works until then.
      n=0; while set -- /proc/[0-9]*; [ $# -gt 50 ] && [ $n -lt 10000 ]; do n=$((n + 1)); done
      exit $code`,
  },
];

const network = ({ hostPort }: ProbeWorld): readonly Probe[] => [
  {
    name: "connect to anything by itself [X03]",
    script: connect([
      ["127.0.0.1", hostPort],
      ["169.254.169.254", 80],
      ["fd00:ec2::254", 80],
      ["10.0.0.1", 80],
      ["100.64.0.1", 80],
      ["192.168.0.1", 22],
      ["1.1.1.1", 53],
    ]),
  },
  {
    name: "reach private addresses through the proxy",
    script: throughProxy([
      `127.0.0.1:${hostPort}`,
      "127.0.0.1:80",
      "[::1]:80",
      "[::ffff:127.0.0.1]:80",
      "localhost:80",
      "169.254.169.254:80",
      "[fd00:ec2::254]:80",
      "10.0.0.1:80",
      "100.64.0.1:443",
      "192.168.0.1:80",
      "2130706433:80",
      "0x7f.1:80",
    ]),
  },
  {
    name: "reach hosts that are not allowed, or mail servers, through the proxy",
    script: throughProxy([
      "not-allowed.example:443",
      "not-allowed.example:25",
      "llm.platform.internal:80",
      "platform.internal:22",
      "evil.platform.internal:80",
    ]),
  },
  {
    name: "resolve names",
    script: `node -e 'require("node:dns").lookup("example.com", (e) => process.exit(e ? 1 : 0))'`,
  },
];

/** All probes that apply to this machine and form. */
export const probes = (world: ProbeWorld, filter: boolean): readonly Probe[] =>
  [...files(world), ...kernel, ...network(world)].filter(
    ({ needsFilter, onlyOn }) =>
      (filter || !needsFilter) && (onlyOn === undefined || onlyOn === process.arch),
  );

/**
 * The sandbox of a build, seen by a program that has all of it: as if a step had left buildah's chroot. This machine's
 * perl makes the system calls.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openInstallation } from "../../src/builder/buildah/installation.ts";
import { firstBlockUid } from "../../src/builder/buildah/layer-stores.ts";
import { runPhase } from "../../src/builder/buildah/phase.ts";
import { makePlaces, buildPlaces, removePlaces } from "../../src/builder/buildah/places.ts";
import { findBuildTools } from "../../src/builder/buildah/requirements.ts";
import { chown } from "node:fs/promises";
import { LIMITS, missing, openRealBuilder, type RealBuilder } from "./real-builder.ts";

const perl = existsSync("/usr/bin/perl");

/** System calls of x86-64 with arguments that an allowed call accepts or refuses with another error. */
const CALLS: Readonly<Record<string, string>> = {
  keyctl: "250, 0, 0, 0",
  add_key: "248, 0, 0, 0, 0, 0",
  bpf: "321, 0, 0, 0",
  perf_event_open: "298, 0, 0, 0, 0, 0",
  kexec_load: "246, 0, 0, 0, 0",
  init_module: "175, 0, 0, 0",
  finit_module: "313, 0, 0, 0",
  userfaultfd: "323, 0",
  io_uring_setup: "425, 1, 0",
  ptrace: "101, 0, 0, 0, 0",
  setns: "308, 0, 0",
  open_by_handle_at: "304, 0, 0, 0",
  user_namespace: "272, 0x10000000",
  network_namespace: "272, 0x40000000",
  pid_namespace: "272, 0x20000000",
  reboot: "169, 0, 0, 0, 0",
};
const REFUSED = Object.keys(CALLS);
const SOCKETS: Readonly<Record<string, string>> = { vsock: "40, 1", packet: "17, 3", alg: "38, 5" };

const probeOf = (name: string, call: string): string =>
  `$! = 0; syscall(${call}); print "${name} ", 0 + $!, "\\n";`;
const PERL = [
  ...Object.entries(CALLS).map(([name, call]) => probeOf(name, call)),
  ...Object.entries(SOCKETS).map(([name, family]) => probeOf(`socket_${name}`, `41, ${family}, 0`)),
  // The classic way out of a chroot.
  'mkdir "/build/scratch/jail"; chroot "/build/scratch/jail"; chdir ".." for 1 .. 50; chroot ".";',
  'opendir(D, "/"); print "root ", join(",", sort grep { !/^\\.+$/ } readdir D), "\\n";',
].join("\n");

const program = (script: string): string => `import { spawnSync } from "node:child_process";
const { stdout, stderr } = spawnSync("sh", ["-c", ${JSON.stringify(script)}], { encoding: "utf8" });
process.stdout.write(stdout + stderr);
`;

describe.skipIf(missing !== "" || !perl)(
  `the sandbox of a build ${missing} ${perl ? "" : "install perl"}`,
  () => {
    let real: RealBuilder;
    let said = "";
    beforeAll(async () => {
      real = await openRealBuilder();
      const { options } = real;
      const installation = await openInstallation({
        ...options,
        directory: join(real.home, "own"),
        runDir: join(real.home, "r"),
      });
      const uid = firstBlockUid(options.installationId);
      const found = findBuildTools(options.path, uid);
      if ("problem" in found) throw new Error(found.problem);
      const places = buildPlaces(installation.directory, installation.runDir, randomUUID());
      await makePlaces(places, { uid, request: {}, secrets: {} });
      const layers = join(real.home, "layers");
      const programs = join(real.home, "programs");
      await Promise.all([layers, programs].map((path) => mkdir(path)));
      await chown(layers, uid, uid);
      const script = `cat /proc/self/status; perl -e '${PERL}'; cat /etc/shadow ${real.home}/canary; ls /root /home /work; touch /usr/x /etc/x /x;
mknod /build/scratch/null c 1 3; mount -t proc proc /build/scratch/tmp && echo mounted proc; mount --bind /build/scratch /build/scratch/tmp && echo mounted bind;
ls /proc | grep -c '^[0-9]'; cat /proc/net/dev; ls -l /proc/self/fd; unshare --user true && echo user namespace; echo 99 > /proc/sys/user/max_user_namespaces; dmesg`;
      await writeFile(join(real.home, "canary"), "secret of the service");
      await writeFile(join(programs, "build.ts"), program(script));
      const end = await runPhase({
        phase: "build",
        tools: found.tools,
        places,
        mounts: [
          { name: "layers", source: layers },
          { name: "scratch", source: places.scratch },
          { name: "node", source: options.nodePath },
          { name: "forwarder.cjs", source: join(import.meta.dirname, "../../daemon/programs/forwarder.cjs") },
          { name: "programs", source: programs },
        ],
        limits: LIMITS,
        uid,
        gate: installation.gate,
        filter: installation.filter,
        groups: [],
        input: { text: "" },
        output: (chunk) => (said += chunk.toString()),
        started: () => undefined,
      });
      await removePlaces(places);
      expect(end.complaint).toBe("");
    });
    afterAll(() => real.close());

    it.each(REFUSED)("refuses %s", (name) => {
      expect(said).toMatch(new RegExp(`^${name} 1$`, "m"));
    });

    it.each(Object.keys(SOCKETS))("has no sockets of the family %s", (name) => {
      expect(said).toMatch(new RegExp(`^socket_${name} 97$`, "m"));
    });

    it("has no capability over networks, processes or the machine", () => {
      const powers = BigInt(`0x${/^CapBnd:\s+(\w+)$/m.exec(said)?.[1] ?? ""}`);
      // NET_ADMIN, NET_RAW, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_BOOT, SYS_TIME, SYSLOG, PERFMON, BPF.
      for (const bit of [12n, 13n, 16n, 17n, 19n, 22n, 25n, 34n, 38n, 39n])
        expect(powers & (1n << bit)).toBe(0n);
      expect(said).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(said).toMatch(/^Seccomp:\s+2$/m);
      expect(said).not.toContain("user namespace");
    });

    it("has no file of this machine but its programs, and cannot change those", () => {
      expect(said).toMatch(/^root bin,build,dev,etc,lib,lib64,opt,proc,run,sbin,sys,tmp,usr,var$/m);
      expect(said).not.toContain("secret of the service");
      for (const path of ["/usr/x", "/etc/x", "/x"])
        expect(said).toContain(`cannot touch '${path}': Read-only file system`);
      expect(said).toContain("mknod: /build/scratch/null: Operation not permitted");
      expect(said).toContain("mounted bind");
    });

    it("sees its own processes, its own loopback and no descriptor of the service", () => {
      expect(Number(/^(\d+)$/m.exec(said)?.[1])).toBeLessThan(10);
      expect(said).toMatch(/^\s+lo:/m);
      expect(said).not.toMatch(/^\s+(?!lo:)\w+:\s+\d+\s+\d+/m);
      const descriptors = [...said.matchAll(/ -> (\S+)$/gm)].map(([, target = ""]) => target);
      expect(
        descriptors.filter(
          (target) => !/^(?:pipe|socket|\/dev\/null|\/proc\/\d+\/fd|anon_inode)/.test(target),
        ),
      ).toEqual([]);
    });
  },
);

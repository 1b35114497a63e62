/**
 * Dockerfiles, layers and tars that try to leave the build's sandbox. Each build may fail or succeed, but it must not read
 * or write this machine's files: canaries stay as they are, and another project's next build is the same.
 */
import { createHash, randomUUID } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  BASE,
  type Built,
  makeNeighbour,
  missing,
  openRealBuilder,
  type RealBuilder,
} from "./real-builder.ts";
import { busyboxTar, tarOf, type TarEntry } from "../support/machine/tars.ts";
import { deepTest, onlyDeep, sampled } from "../support/vitest/rings.ts";

const sha256 = (content: Uint8Array | string): string => createHash("sha256").update(content).digest("hex");

/** Every name that a hostile build tries to write has this in it. */
const MARK = `breakout-${randomUUID()}`;
/** What the canaries contain. */
const SECRET = `secret-${randomUUID()}`;
const SHADOW = existsSync("/etc/shadow") ? readFileSync("/etc/shadow", "utf8") : "";

/** An image in the OCI layout, whose layers are these tars, for `FROM oci:`. */
const ociLayout = (layers: readonly Buffer[]): Record<string, string | Uint8Array> => {
  const files: Record<string, string | Uint8Array> = {};
  const blob = (content: string | Uint8Array, mediaType: string) => {
    files[`layout/blobs/sha256/${sha256(content)}`] = content;
    return { mediaType, digest: `sha256:${sha256(content)}`, size: Buffer.byteLength(content) };
  };
  const config = blob(
    JSON.stringify({
      architecture: "amd64",
      os: "linux",
      config: {},
      rootfs: { type: "layers", diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) },
    }),
    "application/vnd.oci.image.config.v1+json",
  );
  const manifest = blob(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      config,
      layers: layers.map((layer) => blob(layer, "application/vnd.oci.image.layer.v1.tar")),
    }),
    "application/vnd.oci.image.manifest.v1+json",
  );
  files["layout/index.json"] = JSON.stringify({ schemaVersion: 2, manifests: [manifest] });
  files["layout/oci-layout"] = '{"imageLayoutVersion":"1.0.0"}';
  return files;
};
const FROM_LAYOUT = "FROM oci:/build/scratch/context/layout\n";

describe.skipIf(missing !== "")(`hostile builds with buildah ${missing}`, () => {
  let real: RealBuilder;
  let canaries: readonly string[] = [];
  let before = "";
  /** Builds in another project. The image is the same each time. */
  let neighbour: () => Promise<string>;
  let neighbours = "";

  /** The canaries' content, and the names in the directories that a write would reach. */
  const look = (): string => {
    const parents = [
      real.home,
      dirname(real.options.directory),
      "/",
      "/etc",
      "/tmp",
      "/var/tmp",
      "/usr",
      "/root",
    ];
    const names = parents.flatMap((parent) => readdirSync(parent).filter((name) => name.includes(MARK)));
    return JSON.stringify([canaries.map((path) => sha256(readFileSync(path))), names, sha256(SHADOW)]);
  };

  beforeAll(async () => {
    real = await openRealBuilder();
    const own = [join(real.home, "canary"), join(real.home, "outputs", "canary")];
    canaries = [...own, "/etc/passwd", "/etc/hosts"].filter((path) => own.includes(path) || existsSync(path));
    await mkdir(join(real.home, "outputs"), { recursive: true });
    for (const path of own) await writeFile(path, SECRET);
    before = look();
    neighbour = makeNeighbour(real);
    neighbours = await neighbour();
  });
  afterAll(() => real.close());

  const unharmed = async (built: Built): Promise<void> => {
    expect(look()).toBe(before);
    expect(await real.leftovers(built.request)).toEqual([]);
    for (const line of SHADOW.split("\n").filter((each) => each.includes("$")))
      expect(built.log).not.toContain(line);
    expect(built.log).not.toContain(SECRET);
    if (built.failure !== null) expect(built.image).toBeNull();
    expect(await neighbour()).toBe(neighbours);
  };

  it("keeps a mount of a link in a stage inside the build's sandbox (CVE-2024-1753) [E25]", async () => {
    const attack = await real.build({
      Dockerfile: `FROM scratch AS base
ADD base.tar /
RUN ln -s / /rootdir
FROM scratch
ADD base.tar /
RUN --mount=type=bind,from=base,source=/rootdir,destination=/exploit,rw \\
  echo > /exploit/${MARK}; echo > /exploit/build/${MARK}; echo > /exploit/etc/${MARK}; \\
  echo > /exploit/build/scratch/${MARK}; cat /exploit/etc/shadow; ls -R /exploit/var/tmp /exploit${real.home}; \\
  cat /exploit${real.home}/canary; cat /exploit/proc/1/environ; true
`,
    });
    await unharmed(attack);
  });

  const MOUNTS = [
    "type=bind,source=.,target=/x,bind-propagation=upperdir=/etc",
    "type=bind,source=/,target=/x,rw,bind-propagation=shared",
    "type=bind,source=../../../../..,target=/x,rw",
    "type=bind,source=link,target=/x,rw",
    "type=cache,id=../../../../../../etc,target=/x",
    "type=cache,source=/../../../..,target=/x,rw",
    "type=tmpfs,target=/x,bind-propagation=lowerdir=/",
    "type=bind,source=base.tar,target=/x,relabel=shared,idmap=uids=0-0-1",
  ];
  onlyDeep(() => {
    it.each(
      sampled(
        MOUNTS,
        MOUNTS.filter((mount) => mount.includes("upperdir=/etc") || mount.includes("source=link")),
      ),
    )("reads and writes nothing through --mount=%s (CVE-2024-9407 and its kind) [E25]", async (mount) => {
      const attack = await real.build({
        Dockerfile: `${BASE}RUN --mount=${mount} echo > /x/${MARK}; cat /x/etc/shadow /x/shadow /x${real.home}/canary; ls /x/root; true\n`,
      });
      await unharmed(attack);
    });
  });

  deepTest("shows no file of this machine to a step that looks beyond its root [E25]", async () => {
    const attack = await real.build({
      Dockerfile: `${BASE}RUN mkdir /jail; chroot /jail /bin/sh; \\
  for p in /proc/1/root /proc/self/root /proc/1/cwd; do \\
    cat $p/etc/shadow $p${real.home}/canary; ls $p/root; echo > $p/etc/${MARK}; echo > $p/${MARK}; done; \\
  echo 1 > /proc/sys/kernel/panic_on_oops; echo b > /proc/sysrq-trigger; mknod /disk b 254 0; cat /disk; \\
  cat /proc/1/environ /proc/kcore | head -c 100; true
`,
    });
    expect(attack.failure).toBeNull();
    await unharmed(attack);
  });

  const HOSTILE: readonly (readonly [string, readonly TarEntry[]])[] = [
    ["names with ..", [{ name: `../../../../../../../../etc/${MARK}`, content: "x" }]],
    [
      "absolute names",
      [
        { name: `/etc/${MARK}`, content: "x" },
        { name: `//${MARK}`, content: "x" },
      ],
    ],
    [
      "a link and a file below it",
      [
        { name: "out", type: "2", link: "/etc" },
        { name: `out/${MARK}`, content: "x" },
        { name: "up", type: "2", link: "../../../../../../../.." },
        { name: `up/${MARK}`, content: "x" },
      ],
    ],
    [
      "hard links to files outside",
      [
        { name: "shadow", type: "1", link: "/etc/shadow" },
        { name: "passwd", type: "1", link: "../../../../../../etc/passwd" },
        { name: "passwd", content: MARK },
      ],
    ],
    [
      "system directories that are links",
      [
        ...["etc", "dev", "proc", "sys", "tmp", "run"].map((name) => ({ name, type: "2", link: "/output" })),
        { name: "output", type: "2", link: "/build" },
      ],
    ],
    [
      "a root that is a link",
      [
        { name: ".", type: "2", link: "/etc" },
        { name: `./${MARK}`, content: "x" },
      ],
    ],
    [
      "whiteouts of everything",
      [".wh..", ".wh...", ".wh..wh..opq", "etc/.wh...", ".wh./etc", `.wh.../../${MARK}`].map((name) => ({
        name,
      })),
    ],
    ["a path that is 4,096 levels deep", [{ name: `${"d/".repeat(4096)}file`, content: "x" }]],
    ["names that are no text", [{ name: "\u00ff\u0001\u001b[31m" }, { name: "new\nline" }, { name: " " }]],
  ];

  const named = (...names: readonly string[]) => HOSTILE.filter(([name]) => names.includes(name));
  const TARS = sampled(HOSTILE, named("names with ..", "a root that is a link", "whiteouts of everything"));
  const LAYERS = sampled(HOSTILE, named("a link and a file below it", "hard links to files outside"));

  onlyDeep(() => {
    it.each(TARS)("unpacks a tar with %s inside its sandbox [E25]", async (_what, entries) => {
      const attack = await real.build({
        "hostile.tar": tarOf(entries),
        Dockerfile: `${BASE}ADD hostile.tar /\n`,
      });
      await unharmed(attack);
    });
  });

  onlyDeep(() => {
    it.each(LAYERS)("unpacks a base layer with %s inside its sandbox [E25]", async (_what, entries) => {
      const attack = await real.build({
        ...ociLayout([await busyboxTar(), tarOf(entries)]),
        Dockerfile: `${FROM_LAYOUT}RUN cat /etc/shadow /shadow; echo x > /tmp/${MARK}; true\n`,
      });
      await unharmed(attack);
    });
  });

  deepTest("builds on an honest base of the same form", async () => {
    const { failure, root } = await real.build({
      ...ociLayout([await busyboxTar(), tarOf([{ name: "bin/.wh.yes" }, { name: "second", content: "2" }])]),
      Dockerfile: `${FROM_LAYOUT}RUN echo ran > /made\n`,
    });
    expect(failure).toBeNull();
    expect(readFileSync(join(root, "made"), "utf8")).toBe("ran\n");
    expect(existsSync(join(root, "second"))).toBe(true);
    expect(existsSync(join(root, "bin", "yes"))).toBe(false);
  });

  deepTest("leaves out privileges and devices, which an image cannot have here [E02]", async () => {
    // struct vfs_cap_data of revision 2: cap_net_raw, permitted and effective.
    const capability = Buffer.from("0100000200200000000000000000000000000000", "hex");
    const { failure, root } = await real.build({
      "privileged.tar": tarOf([
        { name: "set-user-id", mode: 0o4755, content: "x" },
        { name: "set-group-id", mode: 0o2755, content: "x" },
        { name: "directory", type: "5", mode: 0o3777 },
        { name: "capable", content: "x", attributes: { "security.capability": capability } },
        { name: "null", type: "3", mode: 0o666 },
        { name: "disk", type: "4", mode: 0o666 },
        { name: "fifo", type: "6", mode: 0o666 },
      ]),
      Dockerfile: `${BASE}ADD privileged.tar /
RUN mkfifo /made-fifo; mknod /made-null c 1 3; cp /bin/busybox /root-shell && chmod 6755 /root-shell; stat -c %a /root-shell /set-user-id > /modes
`,
    });
    expect(failure).toBeNull();
    // The build itself had them. It says so in a file, because buildah can drop a step's last output.
    expect(readFileSync(join(root, "modes"), "utf8")).toBe("6755\n4755\n");
    const find = (...args: string[]): string => execFileSync("find", [root, ...args], { encoding: "utf8" });
    expect(find("-perm", "/6000")).toBe("");
    expect(find("!", "-type", "f", "!", "-type", "d", "!", "-type", "l")).toBe("");
    expect(find("-name", "capable")).not.toBe("");
    expect(find("-uid", "0")).toBe("");
    const archived = execFileSync("tar", ["--xattrs", "--xattrs-include=*", "-C", root, "-cf", "-", "."], {
      maxBuffer: 64 * 1024 * 1024,
    });
    expect(archived.includes("security.capability")).toBe(false);
    expect(archived.includes("SCHILY.xattr")).toBe(false);
  });

  deepTest("has no trace of a secret of the service in image, log and layers [E14]", async () => {
    process.env["PLATFORM_BUILD_CANARY"] = SECRET;
    const { failure, root, log, image } = await real.build({
      Dockerfile: `${BASE}RUN env; cat /proc/*/environ /proc/*/cmdline; env > /environment\n`,
    });
    delete process.env["PLATFORM_BUILD_CANARY"];
    expect(failure).toBeNull();
    expect(log + JSON.stringify(image)).not.toContain(SECRET);
    const script = 'grep -rlF "$1" "$2" "$3" || true';
    const found = execFileSync("sh", ["-c", script, "grep", SECRET, root, real.options.directory]);
    expect(found.toString()).toBe("");
  });
});

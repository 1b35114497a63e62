/** What sandboxes of each provider show end to end: a project's Dockerfile, images of every kind, and the package cache. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import {
  busybox,
  FILE_CAPABILITY,
  ociArchive,
  tarOf,
  writeArchive,
  writeToolImage,
} from "../support/machine/image-archives.ts";
import { addMusl, lacksMusl } from "../support/machine/musl.ts";
import { npmTarball, sha256 } from "../support/servers/package-files.ts";
import type { PackageRegistry } from "../support/servers/package-registry.ts";
import { buildLacks, DockerfileProject } from "../support/service/dockerfile-project.ts";
import { LiveSession } from "../support/service/sessions/live-session.ts";
import { SshClient } from "../support/service/sessions/ssh.ts";
import type { Installation, Json, Life } from "../support/service/process-service.ts";
import { TEST_MS } from "../support/patience.ts";
import { CHECK, WORK } from "./saved-work/work-of-each-kind.ts";

/** A service whose sandboxes are of one provider. */
export interface Place {
  readonly installation: Installation;
  readonly life: Life;
  /** As the API names it. */
  readonly provider: string;
}

/** Adds the tool `greet`, which says what a build argument says. */
export const TOOL_DOCKERFILE = `FROM scratch
ADD base.tar /
ARG GREETING
RUN printf "#!/bin/sh\\necho $GREETING from the image\\n" > /bin/greet && chmod 755 /bin/greet
`;
export const TOOL_MANIFEST = '[environment.args]\nGREETING = "good day"\n';

/** A person adds a tool by a Dockerfile. The next session has it on this provider, and the one after that builds nothing. */
export const toolOfDockerfile = async (
  project: DockerfileProject,
  { life, provider }: Omit<Place, "installation">,
): Promise<void> => {
  await project.merge({ ".platform/Dockerfile": TOOL_DOCKERFILE, "platform.toml": TOOL_MANIFEST });
  // The session waits for the first build, which the new manifest began.
  const first = await LiveSession.startIn(life, project.id);
  await first.run('[ "$(greet)" = "good day from the image" ] && [ ! -e /usr/bin/apt-get ]');
  const [built] = await project.builds();
  expect(built).toMatchObject({ status: "ready", dockerfile: ".platform/Dockerfile", tries: 1 });
  expect(await first.call("GET", "sandbox")).toMatchObject({
    provider,
    environment: { build_id: built?.["id"], stale: false },
  });
  const second = await LiveSession.startIn(life, project.id);
  await second.run("greet");
  expect(await second.call("GET", "sandbox")).toMatchObject({ environment: { build_id: built?.["id"] } });
  expect(await project.builds()).toHaveLength(1);
  await Promise.all([first.stop(), second.stop()]);
};

/** An image of an operator. */
export interface Root {
  readonly name: string;
  /** What this machine lacks for it. */
  readonly lacks: string | null;
  /** Writes its archive into an empty directory. @returns the archive's file */
  readonly write: (directory: string) => Promise<string>;
  /** What a session's shell finds there. It fails if that is wrong. */
  readonly check: string;
  /** It has `/bin/sh`, which OpenSSH starts. */
  readonly hasShell: boolean;
  /** Looks at this machine after the session. */
  readonly after?: (directory: string) => void;
}

export const BUSYBOX: Root = {
  name: "busybox:1",
  hasShell: true,
  lacks: null,
  write: async (directory) => {
    const file = path.join(directory, "busybox.tar");
    await writeToolImage(directory, file);
    return file;
  },
  check: "busybox true && [ ! -e /usr/bin/apt-get ]",
};
/** Its program is linked to musl dynamically. It fails if a variable or a file of the platform leads it to glibc. */
export const MUSL: Root = {
  name: "musl:1",
  hasShell: true,
  lacks: lacksMusl,
  write: async (directory) => {
    const file = await BUSYBOX.write(directory);
    const root = path.join(directory, "root");
    await addMusl(root, "hello from musl");
    execFileSync("tar", ["-C", root, "-cf", file, "."]);
    return file;
  },
  check: '[ "$(greet-by-musl)" = "hello from musl" ]',
};
/** The only shell is the platform's. */
export const SCRATCH: Root = {
  name: "empty",
  hasShell: false,
  lacks: null,
  write: async (directory) =>
    writeArchive(directory, "empty.tar", await tarOf([{ name: "README", content: "nothing" }])),
  check: "[ -e /README ] && [ ! -e /bin/ls ] && [ ! -e /usr/bin/cat ]",
};

const link = (name: string, place: string) => ({ name, type: "symlink", linkname: place }) as const;

/** In the archive's directory. Links of the image lead there. */
const CANARY = "canary/file";
/** Its programs have privileges, its system files lead to a file of this machine, and a directory leads to this machine's. */
export const HOSTILE: Root = {
  name: "hostile:1",
  hasShell: true,
  lacks: null,
  write: async (directory) => {
    await mkdir(path.join(directory, path.dirname(CANARY)));
    // Every user may write there, if only they reach it.
    await chmod(path.join(directory, path.dirname(CANARY)), 0o777);
    await writeFile(path.join(directory, CANARY), "untouched");
    await chmod(path.join(directory, CANARY), 0o666);
    await chmod(directory, 0o755);
    const program = await readFile(busybox ?? "");
    const hostile = await tarOf([
      { name: "etc" },
      ...["etc/passwd", "etc/group", "etc/hosts", "etc/resolv.conf"].map((name) =>
        link(name, path.join(directory, CANARY)),
      ),
      link("out", path.join(directory, path.dirname(CANARY))),
      { name: "var" },
      link("var/tmp", "/out"),
      { name: "bin/busybox-set-uid", content: program, mode: 0o6755 },
      { name: "bin/busybox-capable", content: program, mode: 0o755, attributes: FILE_CAPABILITY },
      { name: "disk", type: "character-device", mode: 0o666 },
      { name: "pipe", type: "fifo", mode: 0o666 },
    ]);
    const tools = await readFile(await BUSYBOX.write(directory));
    return writeArchive(directory, "hostile.tar", await ociArchive([tools, hostile]));
  },
  check: [
    "[ ! -e /disk ] && [ ! -e /pipe ]",
    '[ "$(busybox-set-uid id -u)" = "$(id -u)" ] && [ "$(id -u)" != 0 ]',
    'busybox-capable grep -q "CapEff:.0000000000000000" /proc/self/status',
    "{ ! echo broken > /out/file; } && { ! echo broken > /etc/passwd; } && ! mknod /tmp/null c 1 3",
    // The platform's own directory for it, not the image's link.
    "echo mine > /var/tmp/mine && [ -f /var/tmp/mine ]",
  ].join(" && "),
  after: (directory) => {
    expect(readFileSync(path.join(directory, CANARY), "utf8")).toBe("untouched");
    expect(readdirSync(path.join(directory, path.dirname(CANARY)))).toEqual([path.basename(CANARY)]);
  },
};

/** OpenSSH's client logs in: the server and what it needs come with the platform. */
const logsIn = async (session: LiveSession, life: Life): Promise<void> => {
  const client = await SshClient.make(life.url);
  try {
    const host = client.host(session.path);
    const found = await client.run("ssh", [host, "pwd; cat listing | head -c 1"]);
    expect(found).toEqual({ code: 0, stdout: "/workspace\n/", stderr: "" });
    expect(await client.run("scp", [`${host}:listing`, "copy"])).toMatchObject({ code: 0, stderr: "" });
  } finally {
    client.line.remove();
  }
};

/** `platform` on the service's machine. */
export type Platform = (...args: readonly string[]) => Promise<Json>;

const CLI = path.join(import.meta.dirname, "../../src/operator.ts");

/** `platform` with the settings of a service. */
export const platformOf =
  (
    place: () => Pick<Place, "installation"> & { readonly settings: Readonly<Record<string, string>> },
  ): Platform =>
  async (...args) => {
    const { DATABASE_URL: _ours, ...environment } = process.env;
    const { installation, settings } = place();
    const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args, "--json"], {
      env: { ...environment, ...settings, PLATFORM_DATA_DIR: installation.dataDir },
    });
    return JSON.parse(stdout) as Json;
  };

const COMMIT = "git add -A && git commit -qm Work && git push -q origin HEAD";

/**
 * The agent clones, commits and pushes, also after its service was killed. A stop saves what was not pushed, and a restart brings it back.
 *
 * @param also a shell command that the session must pass, too
 * @param begin starts the service again after the kill
 * @param seen looks at the provider while the sandbox runs; it has the sandbox's id
 * @returns the life of the service that came back
 */
export const worksThroughKill = async (
  { installation, life, provider, also = "true" }: Place & { readonly also?: string },
  begin: () => Promise<Life>,
  seen: (id: string) => void = () => undefined,
): Promise<Life> => {
  const session = await LiveSession.start(life, installation);
  const before = await session.call("GET", "sandbox");
  expect(before).toMatchObject({ provider });
  seen(String(before["id"]));
  await session.run(`${also} && echo 1 > first && ${COMMIT}`);
  await life.end("SIGKILL");
  const later = await begin();
  const again = session.at(later);
  await again.run(`${also} && echo 2 > second && ${COMMIT}`);
  expect(await again.filesChanged()).toEqual(["first", "second"]);
  expect(await again.call("GET", "sandbox")).toMatchObject({ id: before["id"], provider });
  await again.run(WORK);
  const { saved } = await again.call("POST", "stop", { save: "require" });
  expect(saved).toMatchObject({ state: "complete", pending: [], error: null });
  await again.call("POST", "restart", { restore_saved: true });
  const [, , , projectId = "", , id = ""] = again.path.split("/");
  const running = await later.session(projectId, id, ["running", "failed"]);
  expect(running).toMatchObject({ status: "running", restored: { renamed: [], error: null } });
  await again.run(CHECK);
  await again.stop();
  return later;
};

/** Imports an image. A session on it works, commits and pushes. @param images a directory for the archive */
export const worksOn = async (
  root: Root,
  { installation, life, provider }: Place,
  { images, platform, also = "true" }: { images: string; platform: Platform; also?: string },
): Promise<void> => {
  const { name } = root;
  const directory = await mkdtemp(path.join(images, "root-"));
  const file = await root.write(directory);
  expect(await platform("images", "import", name, file)).toMatchObject({
    name,
    digest: expect.stringMatching(/^sha256:/) as string,
  });
  const repository = await installation.repository(`[environment]\nimage = "${name}"\n`);
  const session = await LiveSession.startIn(life, await life.project(repository));
  try {
    expect(await session.call("GET", "sandbox")).toMatchObject({ image: name, provider });
    await session.run(
      `${also} && ${root.check} && echo /* > listing && echo /usr/* > usr && git add listing usr && git commit -qm Listed && git push -q origin HEAD`,
    );
    const { files_changed: files } = await session.call("GET", "changes");
    expect((files as readonly Json[]).map((one) => one["path"]).toSorted()).toEqual(["listing", "usr"]);
    if (root.hasShell) await logsIn(session, life);
  } finally {
    await session.stop();
  }
  root.after?.(directory);
};

/** An address of loopback that sandboxes ask through the proxy. Node's own exceptions have 127.0.0.1 alone. */
export const PACKAGES_HOST = "127.0.0.2";

const runs = (program: string): boolean =>
  spawnSync(program, ["--version"], { env: { PATH: "/usr/bin:/bin" } }).status === 0;
/** Null where sandboxes can install packages: they see the machine's /usr. */
export const lacksNpm: string | null =
  runs("npm") && runs("curl") ? null : "(needs npm and curl in /usr/bin)";

/** Settings of a service with a package cache. */
export const packageSettings = ({ port }: PackageRegistry): Record<string, string> => ({
  PLATFORM_EGRESS_ALLOW: PACKAGES_HOST,
  PLATFORM_PACKAGE_CACHE_NPM: `http://${PACKAGES_HOST}:${port}`,
});

const TARBALL = "/delta/-/delta-1.0.0.tgz";

/** Installs a package, and downloads its file once more without npm, which would check it too. */
const setup = ({ port }: PackageRegistry): string => `
mkdir /tmp/app
cd /tmp/app
echo '{"dependencies": {"delta": "1.0.0"}}' > package.json
npm install --no-audit --no-fund --fetch-retries 0 || echo "npm has no package"
curl -sSf -o /tmp/file http://${PACKAGES_HOST}:${port}${TARBALL} && echo "the file came whole"
[ ! -e node_modules/delta ] || node -p "'installed ' + require('delta')"
echo over
`;

const filesIn = (directory: string): readonly string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => sha256(readFileSync(path.join(entry.parentPath, entry.name))));

/**
 * A registry serves another file than the one that it describes. No sandbox gets it in full, and the cache does not keep it.
 * When the registry is mended, the next sandbox gets the right one.
 */
export const changedPackage = async (
  registry: PackageRegistry,
  { installation, life, provider }: Place,
): Promise<void> => {
  const right = npmTarball("delta", "1.0.0", randomBytes(300_000));
  const changed = npmTarball("another", "6.6.6", randomBytes(300_000));
  registry.publicUrl = `https://${PACKAGES_HOST}:${registry.port}`;
  registry.addNpm("delta", "1.0.0", right);
  let isChanged = true;
  registry.answering = ({ url }, response) => {
    if (!isChanged || url !== TARBALL) return false;
    response.writeHead(200, { "content-length": changed.length }).end(changed);
    return true;
  };
  const install = async (): Promise<string> => {
    const manifest = `[environment]\nsetup = '''${setup(registry)}'''\n`;
    const session = await LiveSession.startIn(
      life,
      await life.project(await installation.repository(manifest)),
      { initial_prompt: "run: true" },
    );
    expect(await session.call("GET", "sandbox")).toMatchObject({ provider });
    const log = () => life.text(`${session.path}/logs?follow=0`);
    await expect.poll(log, { timeout: TEST_MS, interval: 200 }).toMatch(/setup over$/m);
    const output = await log();
    await session.stop();
    return output;
  };
  const kept = () => filesIn(path.join(installation.dataDir, "packages"));
  const first = await install();
  expect(first).toContain("setup npm has no package");
  expect(first).not.toMatch(/setup (?:installed|the file came whole)/);
  expect(registry.paths()).toContain(TARBALL);
  expect(kept()).not.toContain(sha256(changed));
  isChanged = false;
  const second = await install();
  expect(second).toContain("setup installed delta@1.0.0");
  expect(second).toContain("setup the file came whole");
  expect(kept()).toContain(sha256(right));
  expect(kept()).not.toContain(sha256(changed));
};

/** What the cases of a provider need. */
export interface ImagePlace extends Place {
  /** A directory for archives, and the command line of the service. */
  readonly images: string;
  readonly platform: Platform;
  readonly registry: PackageRegistry;
  /** A shell command that each session must pass, too. */
  readonly also?: string;
}

/** Registers the cases that hold for every provider. @param place is asked when a case runs. */
export const checkImages = (place: () => ImagePlace): void => {
  it.skipIf(buildLacks !== "")(
    `has the tool that its Dockerfile adds; a second session builds nothing ${buildLacks} [E13]`,
    { timeout: TEST_MS },
    async () => {
      const { life, installation, provider } = place();
      await toolOfDockerfile(await DockerfileProject.open(life, installation), { life, provider });
    },
  );

  const onImage = (root: Root) => () => worksOn(root, place(), place());

  it.skipIf(MUSL.lacks !== null)(
    `works, commits and pushes on a root with musl ${MUSL.lacks ?? ""} [E07]`,
    { timeout: TEST_MS },
    onImage(MUSL),
  );

  it("works, commits and pushes on a root without a program [E07]", { timeout: TEST_MS }, onImage(SCRATCH));

  it(
    "shows no file of this machine on a hostile image, and gives no privilege [E02, E05]",
    { timeout: TEST_MS },
    onImage(HOSTILE),
  );

  it.skipIf(lacksNpm !== null)(
    `gets no package file that the registry has changed ${lacksNpm ?? ""} [E19]`,
    { timeout: TEST_MS },
    () => changedPackage(place().registry, place()),
  );
};

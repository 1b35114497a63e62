/** `platform runtimes add --registry`, with a registry and its archives on a server of this machine. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { execFileSync } from "node:child_process";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { gzipSync } from "node:zlib";
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { addEntry, listRuntimes } from "../../../src/installation/operator/runtimes/runtimes.ts";
import { machineName } from "../../../src/domain/runtimes/installed.ts";
import { sha256, tarOf, type TarEntry } from "../../support/machine/image-archives.ts";
import { makeNodeHome } from "./node-home.ts";

const MACHINE = `linux-${machineName(process.arch)}`;
const PROGRAM: TarEntry = { name: "heron/bin/heron", content: "#!/bin/sh\necho heron\n" };

/** The server's files, by path. */
const files = new Map<string, Buffer>();
const server = createServer(({ url = "" }, answer) => {
  if (url === "/moved") return answer.writeHead(302, { location: "/heron" }).end();
  const file = files.get(url);
  return file === undefined ? answer.writeHead(404).end() : answer.end(file);
});
let origin = "";
let home: string;
let environment: Readonly<Record<string, string>>;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
beforeEach(() => {
  ({ home, environment } = makeNodeHome());
  files.clear();
});
afterEach(() => rmSync(home, { recursive: true }));

/** Puts a registry with one agent on the server. */
const offer = (distribution: object): void => {
  const registry = { agents: [{ id: "heron", version: "1.2.3", distribution }] };
  files.set("/registry.json", Buffer.from(JSON.stringify(registry)));
};

/** Puts an archive on the server, and a registry that names it. */
const offerArchive = (archive: Buffer, more: object = {}): void => {
  files.set("/heron", archive);
  const sum = sha256(archive).slice("sha256:".length);
  const target = { archive: `${origin}/heron`, cmd: "./heron/bin/heron", sha256: sum, ...more };
  offer({ binary: { [MACHINE]: target } });
};

const add = (wish: { readonly integrity?: string; readonly registry?: string } = {}) => {
  const { integrity = null, registry = `${origin}/registry.json` } = wish;
  return Effect.runPromise(addEntry(environment, { id: "heron", version: null, integrity, registry }));
};
const listed = async () => (await Effect.runPromise(listRuntimes(environment))).map(({ name }) => name);

/** Nothing was added, and no draft is left. */
const refuses = async (adding: Promise<unknown>, why: string | RegExp): Promise<void> => {
  await expect(adding).rejects.toThrow(why);
  expect(await listed()).toEqual([]);
  const left = readdirSync(path.join(home, "images/runtimes"));
  expect(left.filter((one) => one !== "names")).toEqual([]);
};

it("adds an archive by its checksum, with what starts its program", async () => {
  const links: TarEntry[] = [{ name: "heron/lib/one", type: "symlink", linkname: "../bin/heron" }];
  offerArchive(gzipSync(await tarOf([PROGRAM, ...links])), {
    archive: `${origin}/moved`,
    args: ["acp"],
    env: { HERON_QUIET: "1" },
  });
  const { root, start, version, packages, integrity } = await add();
  expect({ start, version, packages }).toEqual({
    start: { command: ["{place}/own/heron/bin/heron", "acp"], variables: { HERON_QUIET: "1" } },
    version: "1.2.3",
    packages: 1,
  });
  expect(integrity).toMatch(/^sha512-/);
  expect(execFileSync(path.join(root, "own/heron/lib/one"), { encoding: "utf8" })).toBe("heron\n");
  expect(await listed()).toEqual(["heron"]);
});

it("takes a registry in a file, an archive of bzip2, and a program that is no archive", async () => {
  const registry = path.join(home, "registry.json");
  writeFileSync(path.join(home, "heron.tar"), await tarOf([PROGRAM]));
  execFileSync("bzip2", [path.join(home, "heron.tar")]);
  for (const archive of [readFileSync(path.join(home, "heron.tar.bz2")), Buffer.from("#!/bin/sh\n")]) {
    files.set("/heron", archive);
    offerArchive(archive);
    writeFileSync(registry, files.get("/registry.json") ?? "");
    // The operator has named no host, and the archive is on a private one.
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await expect(add({ registry })).rejects.toThrow(
      /127\.0\.0\.1 is not reached, because its URL is not https/,
    );
    // oxlint-disable-next-line no-await-in-loop -- see above
    const { root, start } = await add();
    const program = start?.command[0]?.replace("{place}", root) ?? "";
    expect(statSync(program).mode & 0o777).toBe(0o755);
  }
});

it("has another digest if the archive or its start differ", async () => {
  const archive = gzipSync(await tarOf([PROGRAM]));
  const digests = new Set<string>();
  for (const more of [{}, { args: ["acp"] }, {}]) {
    offerArchive(archive, more);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    digests.add((await add()).digest);
  }
  expect(digests.size).toBe(2);
});

it("takes no archive with another checksum than the registry's, or than the operator's", async () => {
  const archive = gzipSync(await tarOf([PROGRAM]));
  const other = `sha256:${"a".repeat(64)}`;
  offerArchive(archive, { sha256: "a".repeat(64) });
  await refuses(add(), `/heron has the checksum ${sha256(archive)} (sha512-`);
  offerArchive(archive);
  await refuses(add({ integrity: other }), `, not ${other}.`);
});

it("takes no archive without a checksum, unless the operator gives it", async () => {
  const archive = gzipSync(await tarOf([PROGRAM]));
  offerArchive(archive, { sha256: undefined });
  await refuses(add(), `The registry names no checksum of ${origin}/heron, so it is not taken.`);
  await add({ integrity: sha256(archive).toUpperCase().replace("SHA", "sha") });
  expect(await listed()).toEqual(["heron"]);
});

const link = (linkname: string, name = "heron/link"): TarEntry => ({ name, type: "symlink", linkname });
it.each<[string, string, readonly TarEntry[]]>([
  ["a path above", 'leads out of it: "heron/../../x"', [{ name: "heron/../../x", content: "" }]],
  ["a path of the machine", 'leads out of it: "/etc/x"', [{ name: "/etc/x", content: "" }]],
  ["a link above", "link that leads out of it", [link("../../x")]],
  ["a link to the machine", "link that leads out of it", [link("/etc/passwd")]],
  ["a link over a link", "link that leads out of it", [link("..", "heron/a"), link("a/../../..", "heron/b")]],
  ["a link below a link", 'two files of one path: "a"', [link(".", "a"), link("bin", "a/heron/b")]],
  ["a hard link above", "leads out of it", [{ name: "x", type: "link", linkname: "../x" }]],
  [
    "a hard link before its file",
    'a hard link to a file that does not stand before it: "x" to "y"',
    [
      { name: "x", type: "link", linkname: "y" },
      { name: "y", content: "" },
    ],
  ],
  ["a file over a directory", 'two files of one path: "heron/bin"', [{ name: "heron/bin", content: "" }]],
  [
    "a file below a file",
    'two files of one path: "heron/bin/heron/x"',
    [{ name: "heron/bin/heron/x", content: "" }],
  ],
  ["a directory over a file", 'two files of one path: "heron/bin/heron"', [{ name: "heron/bin/heron" }]],
  ["a name that is too long", "(ENAMETOOLONG)", [{ name: "x".repeat(300), content: "" }]],
])("takes no archive with %s", async (_, why, entries) => {
  offerArchive(gzipSync(await tarOf([PROGRAM, ...entries])));
  await refuses(add(), why);
  expect(existsSync(path.join(home, "images/x"))).toBe(false);
});

/** Some bytes compressed by a program of this machine. */
const compressed = (program: string, bytes: Buffer): Buffer =>
  execFileSync(program, ["-c"], { input: bytes });

it.each<[string, string, () => Promise<Buffer>]>([
  ["an .xz", "the archive is a .tar.xz. The platform", async () => Buffer.from("fd377a585a0000", "hex")],
  [
    "half of a .bz2",
    "the archive is damaged: bzip2 cannot read it",
    async () => compressed("bzip2", await tarOf([PROGRAM])).subarray(0, -20),
  ],
  ["half of a .gz", "unexpected end of file", async () => gzipSync(await tarOf([PROGRAM])).subarray(0, -20)],
  ["nothing", "the archive is empty", async () => Buffer.alloc(0)],
  ["no file", "the archive is empty", async () => gzipSync(await tarOf([]))],
])("names what is wrong with an archive that is %s", async (_, why, bytes) => {
  offerArchive(await bytes());
  await refuses(add(), `${origin}/heron cannot be unpacked: ${why}`);
});

it("starts no directory, and no file that cannot be run", async () => {
  offerArchive(gzipSync(await tarOf([PROGRAM])), { cmd: "heron/bin" });
  await refuses(add(), "heron is started by own/heron/bin, which is no program that can be run.");
  offerPackage({ cmd: "other" });
  npm({ other: "bin/other" }, 0o644);
  await refuses(add(), "own/node_modules/@birds/heron/bin/other, which is no program that can be run.");
});

it("says that a registry is a directory", async () => {
  await refuses(add({ registry: home }), `${home} is a directory.`);
});

it("says what it cannot unpack or find", async () => {
  offerArchive(Buffer.from("PK\u0003\u0004rest"));
  await refuses(add(), "cannot be unpacked: the archive is a .zip");
  offerArchive(gzipSync(await tarOf([{ name: "other", content: "" }])));
  await refuses(add(), "lack own/heron/bin/heron");
  offerArchive(Buffer.from(""), { archive: `${origin}/gone` });
  await refuses(add(), `${origin}/gone answers with the status 404.`);
  offer({ binary: { "darwin-aarch64": { archive: `${origin}/heron`, cmd: "heron" } } });
  await refuses(
    add(),
    `${origin}/registry.json: heron 1.2.3 cannot be added. It is for other machines: darwin-aarch64.`,
  );
});

/** Puts an npm on the PATH that writes a package with these commands. */
const npm = (bin: object, mode = 0o755): void => {
  const lock = { packages: { "node_modules/@birds/heron": { version: "1.2.3", integrity: "sha512-a" } } };
  writeFileSync(
    path.join(home, "npm"),
    `#!/bin/sh
mkdir -p node_modules/@birds/heron/bin
printf '#!/usr/bin/env node\\n' > node_modules/@birds/heron/bin/main
printf '#!/bin/sh\\n' > node_modules/@birds/heron/bin/other
chmod ${mode.toString(8)} node_modules/@birds/heron/bin/*
cat > node_modules/.package-lock.json <<'END'
${JSON.stringify(lock)}
END
cat > node_modules/@birds/heron/package.json <<'END'
${JSON.stringify({ bin })}
END
`,
    { mode: 0o755 },
  );
};

/** Puts a registry with a package of npm on the server. */
const offerPackage = (more: object = {}): void =>
  offer({ npx: { package: "@birds/heron@1.2.3", args: ["--acp"], ...more } });

it("starts the command of a package that npm would choose, by the platform's own Node", async () => {
  offerPackage({ env: { HERON_QUIET: "1" } });
  npm({ heron: "./bin/main", other: "bin/other" });
  expect((await add({ integrity: "sha512-a" })).start).toEqual({
    command: ["{node}", "{own}/@birds/heron/bin/main", "--acp"],
    variables: { HERON_QUIET: "1" },
  });
  offerPackage({ cmd: "other" });
  expect((await add()).start?.command).toEqual(["{own}/@birds/heron/bin/other", "--acp"]);
});

it("takes no package with another checksum, or without a command that is meant", async () => {
  offerPackage();
  npm({ heron: "bin/main" });
  await refuses(add({ integrity: "sha512-b" }), "has the checksum sha512-a, not sha512-b");
  npm({ one: "bin/main", two: "bin/other" });
  await refuses(add(), "has no command of its name. It has: one, two.");
  npm({ heron: "../../../outside" });
  await refuses(add(), "is not one of its files");
});

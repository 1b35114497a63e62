/** The `git` backend over ssh: how ssh is called, and what lies on disk for it. No sshd is needed; one stands in for ssh. */
import { execFileSync } from "node:child_process";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { openExternal, plainRemote } from "../../../src/git/upstream/external.ts";
import { type ExternalWorld, makeExternalWorld } from "./external-setup.ts";

const scope = Effect.runSync(Scope.make());
const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect);
let world: ExternalWorld;
beforeAll(async () => {
  world = await run(Scope.provide(makeExternalWorld(), scope));
});
afterAll(() => run(Scope.close(scope, Exit.void)));
afterEach(() => void vi.unstubAllEnvs());

let repository = { projectId: "" };
let base = "";
beforeEach(async () => {
  repository = { projectId: randomUUID() };
  await run(world.backend.create({ ...repository, importFrom: null, defaultBranch: "main" }));
  base = await run(world.backend.resolveBase(repository, "main"));
});

const everyFile = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

const sshCalls = (name: string) => readFileSync(join(world.root, name), "utf8").trimEnd().split("\n");

/** In ssh's place: notes how it was called and what it found, and does at once what it was to have done over there. */
const sshStandIn = (name: string): void => {
  const bin = join(world.root, `bin-${name}`);
  mkdirSync(bin);
  const note = join(world.root, name);
  const script = [
    "#!/bin/sh",
    `printf '%s\\n' "$*" >> '${note}'`,
    `for word; do case "$word" in IdentityFile=*) stat -c '%a' "\${word#*=}" "$(dirname "\${word#*=}")" >> '${note}' ;; esac; done`,
    "for last; do :; done",
    `cd '${world.upstreams}' && eval "exec git \${last#git-}"`,
  ];
  writeFileSync(join(bin, "ssh"), `${script.join("\n")}\n`);
  chmodSync(join(bin, "ssh"), 0o755);
  vi.stubEnv("PATH", `${bin}:${process.env["PATH"]}`);
};

describe.skipIf(!existsSync("/usr/bin/ssh"))("ssh", () => {
  const { privateKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const credential = {
    kind: "ssh_key",
    privateKey,
    knownHosts: "[127.0.0.1]:2222 ssh-ed25519 AAAA\n",
  } as const;
  it("gets the key and the known hosts as its own files, the checked address, and no other way in", async () => {
    sshStandIn("calls");
    const url = `ssh://git@127.0.0.1:2222${world.upstreams}/${repository.projectId}.git`;
    const reached = Effect.scoped(
      Effect.gen(function* () {
        const own = yield* makeExternalWorld({ findRemote: () => Effect.succeed({ url, credential }) });
        const project = { projectId: randomUUID() };
        const upstream = { source: { kind: "git", url }, credential } as const;
        yield* own.backend.create({ ...project, importFrom: null, defaultBranch: null, upstream });
        expect(yield* own.backend.resolveBase(project, "main")).toBe(base);
        const branch = randomUUID();
        yield* own.backend.createBranch(project, { branch, commit: base });
        expect(everyFile(own.mirrors).filter((file) => file.includes(".key-"))).toEqual([]);
        return branch;
      }),
    );
    const branch = await run(reached);
    expect(await run(world.backend.branchTip(repository, branch))).toBe(base);
    const [call = "", keyMode, directoryMode] = sshCalls("calls");
    expect([keyMode, directoryMode]).toEqual(["600", "700"]);
    expect(call).toMatch(/-p 2222 git@127\.0\.0\.1 git-upload-pack/);
    expect(call).not.toContain("PRIVATE KEY");
    // The machine's own ssh reads these words as they are meant.
    const options = call.slice(0, call.indexOf(" git@"));
    const effective = execFileSync(
      "sh",
      ["-c", `ssh -G ${options.replaceAll("-o SendEnv=GIT_PROTOCOL", "")} git@host`],
      {
        encoding: "utf8",
        env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      },
    );
    for (const line of [
      "hostname 127.0.0.1",
      "hostkeyalias [127.0.0.1]:2222",
      "stricthostkeychecking true",
      "globalknownhostsfile /dev/null",
      "identitiesonly yes",
      "identityagent none",
      "batchmode yes",
      "permitlocalcommand no",
      "forwardagent no",
    ]) {
      expect(effective.split("\n"), line).toContain(line);
    }
  });

  it("reports its own message if it cannot connect", async () => {
    const bin = join(world.root, "bin-refusing");
    mkdirSync(bin);
    writeFileSync(
      join(bin, "ssh"),
      "#!/bin/sh\necho 'git@h: Permission denied (publickey).' >&2\nexit 255\n",
    );
    chmodSync(join(bin, "ssh"), 0o755);
    vi.stubEnv("PATH", `${bin}:${process.env["PATH"]}`);
    const url = "ssh://git@127.0.0.1/a.git";
    const upstream = { source: { kind: "git", url }, credential } as const;
    const created = Effect.scoped(
      Effect.flatMap(
        makeExternalWorld({ findRemote: () => Effect.succeed({ url, credential }) }),
        ({ backend }) =>
          backend.create({ projectId: randomUUID(), importFrom: null, defaultBranch: null, upstream }),
      ),
    );
    expect(await run(Effect.flip(created))).toMatchObject({
      code: "refused",
      message: expect.stringContaining("Permission denied (publickey)"),
    });
  });

  it("leaves no key behind: the next start removes the files of a dead service", async () => {
    const left = join(world.mirrors, `.key-${randomUUID()}`);
    mkdirSync(left);
    writeFileSync(join(left, "key"), privateKey);
    await run(
      Effect.scoped(
        openExternal({
          directory: world.mirrors,
          allowHosts: [],
          upstreams: world.known,
          findRemote: plainRemote,
        }),
      ),
    );
    expect(existsSync(left)).toBe(false);
    expect(statSync(world.mirrors).mode & 0o777).toBe(0o700);
  });
});

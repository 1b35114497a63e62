/** The `git` backend against servers that fail, lead astray or flood, and the safety of their credentials. */
import { execFileSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { plainRemote } from "../../../src/git/upstream/external.ts";
import type { GitError } from "../../../src/git/port.ts";
import { passwordTeller } from "../../../src/git/upstream/remote.ts";
import { type ExternalWorld, makeExternalWorld } from "./external-setup.ts";
import { gitOk } from "../git-client.ts";
import { gitStandIn } from "../git-stand-in.ts";
import { startUpstream } from "./upstream-server.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const scope = Effect.runSync(Scope.make());
const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect);
let world: ExternalWorld;
beforeAll(async () => {
  world = await run(Scope.provide(makeExternalWorld({ stallMs: 2_000 }), scope));
});
afterAll(() => run(Scope.close(scope, Exit.void)));

let repository = { projectId: "" };
let base = "";
beforeEach(async () => {
  repository = { projectId: randomUUID() };
  await run(world.backend.create({ ...repository, importFrom: null, defaultBranch: "main" }));
  base = await run(world.backend.resolveBase(repository, "main"));
});
afterEach(() => {
  world.server.fault = () => null;
  vi.unstubAllEnvs();
});

const failure = (effect: Effect.Effect<unknown, GitError>): Promise<GitError> => run(Effect.flip(effect));
const everyFile = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
const cut = (branch = randomUUID()) => world.backend.createBranch(repository, { branch, commit: base });

/** The same projects on a machine that lets git have little. */
const bounded = <A>(
  bounds: { memoryBytes: number; fileBytes: number },
  use: (own: ExternalWorld) => Effect.Effect<A, unknown>,
) =>
  run(
    Effect.scoped(
      Effect.flatMap(
        makeExternalWorld({
          bounds,
          upstreams: world.known,
          findRemote: () => plainRemote(world.upstreamOf(repository.projectId)),
        }),
        use,
      ),
    ),
  );

const isPost = (target: string) =>
  target.endsWith("/git-upload-pack") || target.endsWith("/git-receive-pack");

describe("a server that fails", () => {
  onlyDeep(() => {
    it.each([
      ["says 500", { kind: "status", status: 500 }, "unavailable"],
      ["says 429", { kind: "status", status: 429 }, "unavailable"],
      ["breaks off", { kind: "die", afterBytes: 0 }, "unavailable"],
      ["says 401 to what was a good password", { kind: "status", status: 401 }, "refused"],
      ["says 403", { kind: "status", status: 403 }, "refused"],
      ["says 404", { kind: "status", status: 404 }, "refused"],
    ] as const)("and %s is reported by whether that passes", async (_, fault, code) => {
      world.server.fault = () => fault;
      for (const call of [world.backend.branchTip(repository, "main"), cut()]) {
        const error = await failure(call);
        expect(error.code).toBe(code);
        expect(error.message).not.toContain(world.server.password);
        expect(error.message).not.toContain(world.root);
      }
    });
  });

  onlyDeep(() => {
    it.each([401, 403])("and says %i during a call has refused the credential", async (status) => {
      world.server.fault = (target) => (isPost(target) ? { kind: "status", status } : null);
      for (const call of [world.backend.branchTip(repository, "main"), cut()]) {
        const error = await failure(call);
        expect(error).toMatchObject({
          code: "refused",
          message: expect.stringContaining("rejected the credential"),
        });
        expect(error.message).not.toContain("could not be reached");
      }
    });
  });

  const page = "<!doctype html><html><head><title>Sign in</title></head><body>Sign in</body></html>";

  onlyDeep(() => {
    it.each([
      ["of one line", page],
      ["of many lines", page.replaceAll(">", ">\n")],
      ["that is empty", ""],
    ])("and shows a page %s instead of git is not an empty repository", async (_, text) => {
      const told = {
        code: "refused",
        message: expect.stringContaining("answered with a web page, not with git"),
      };
      const bare = join(world.mirrors, `${repository.projectId}.git`);
      const refs = await gitOk(bare, "show-ref");
      world.server.fault = () => ({ kind: "page", text });
      const upstream = world.upstreamOf(repository.projectId);
      const { backend } = world;
      const calls = [
        backend.branchTip(repository, "main"),
        backend.checkUpstream(upstream),
        cut(),
        backend.merge(repository, { branch: "main", head: base, message: "m", at: 0 }),
        backend.setDefaultBranch(repository, "main"),
      ];
      for (const call of calls) expect(await failure(call)).toMatchObject(told);
      expect(await gitOk(bare, "show-ref")).toBe(refs);
      world.server.fault = () => null;
      expect(await run(backend.branchTip(repository, "main"))).toBe(base);
    });
  });

  deepTest(
    "and never answers is given up, and all callers that waited for the same fetch get the error together",
    async () => {
      world.server.fault = () => ({ kind: "hang" });
      const heard = world.server.heard.length;
      const calls = Array.from({ length: 5 }, () => failure(world.backend.branchTip(repository, "main")));
      for (const error of await Promise.all(calls)) expect(error).toMatchObject({ code: "unavailable" });
      expect(world.server.heard.length - heard).toBeLessThan(3);
    },
  );

  const mebibytes = 1024 ** 2;

  deepTest("with endless refs is stopped by the memory limit of git", async () => {
    await bounded({ memoryBytes: 64 * mebibytes, fileBytes: mebibytes }, (own) =>
      Effect.gen(function* () {
        expect(yield* own.backend.branchTip(repository, "main")).toBe(base);
        world.server.fault = (target) => (target.includes("git-upload-pack") ? { kind: "endless" } : null);
        const error = yield* Effect.flip(own.backend.branchTip(repository, "main"));
        expect(error).toMatchObject({
          code: "unavailable",
          message: expect.stringContaining("Out of memory"),
        });
      }),
    );
  });

  it("with a pack that is too large is stopped, and no part of the pack stays [G08]", async () => {
    const bare = join(world.upstreams, `${repository.projectId}.git`);
    const large = execFileSync("git", ["hash-object", "-w", "--stdin"], {
      cwd: bare,
      input: randomBytes(3 * mebibytes),
    });
    const tree = execFileSync("git", ["mktree"], {
      cwd: bare,
      input: `100644 blob ${String(large).trim()}\tlarge\n`,
    });
    const largeCommit = await gitOk(bare, "commit-tree", "-m", "Large", String(tree).trim());
    await bounded({ memoryBytes: 1024 * mebibytes, fileBytes: mebibytes }, (own) =>
      Effect.gen(function* () {
        yield* own.backend.branchTip(repository, "main");
        const mirror = join(own.mirrors, `${repository.projectId}.git`);
        const before = everyFile(mirror).toSorted();
        yield* Effect.promise(() => gitOk(bare, "update-ref", "refs/heads/large", largeCommit));
        const error = yield* Effect.flip(own.backend.branchTip(repository, "large"));
        expect(error).toMatchObject({ code: "unavailable" });
        expect(everyFile(mirror).toSorted()).toEqual(before);
      }),
    );
  });

  deepTest(
    "accepts a branch without reporting it: a lookup finds it, and it counts as made [G12]",
    async () => {
      const branch = randomUUID();
      world.server.fault = (target) => (target.endsWith("/git-receive-pack") ? { kind: "mute" } : null);
      await run(cut(branch));
      expect(await run(world.backend.branchTip(repository, branch))).toBe(base);
    },
  );

  deepTest("refuses a branch with the words of its hook", async () => {
    const hooks = join(world.upstreams, `${repository.projectId}.git`, "hooks");
    mkdirSync(hooks, { recursive: true });
    writeFileSync(join(hooks, "update"), "#!/bin/sh\necho branches are closed\nexit 1\n");
    chmodSync(join(hooks, "update"), 0o755);
    expect(await failure(cut())).toMatchObject({
      code: "refused",
      message: expect.stringContaining("branches are closed"),
    });
    expect(await run(world.backend.branchTip(repository, "main"))).toBe(base);
  });
});

describe("a server that redirects or that has a private address", () => {
  it("is not followed, and the other server receives nothing [G03]", async () => {
    const other = await startUpstream(world.upstreams);
    try {
      const location = `${other.origin}/${repository.projectId}.git/info/refs?service=git-upload-pack`;
      world.server.fault = () => ({ kind: "status", status: 302, location });
      expect(await failure(world.backend.branchTip(repository, "main"))).toMatchObject({ code: "refused" });
      expect(other.knocks).toBe(0);
    } finally {
      await other.close();
    }
  });

  onlyDeep(() => {
    it.each([
      ["http://10.1.2.3/a.git", /http is only allowed for hosts/],
      ["https://127.0.0.2/a.git", /is private/],
      ["https://localhost/a.git", /is private/],
      ["ext::id", /must have the form https/],
      ["file:///etc", /must have the form https/],
    ])("is not contacted at its address %s [G03]", async (url, reason) => {
      const upstream = { source: { kind: "git", url }, credential: null } as const;
      const error = await run(
        Effect.flip(
          Effect.scoped(
            Effect.flatMap(
              makeExternalWorld({ findRemote: () => Effect.succeed({ url, credential: null }) }),
              (own) =>
                own.backend.create({
                  projectId: randomUUID(),
                  importFrom: null,
                  defaultBranch: null,
                  upstream,
                }),
            ),
          ),
        ),
      );
      expect(error).toMatchObject({ code: "refused", message: expect.stringMatching(reason) });
    });
  });
});

/** Everything that another user of the machine could read of processes, or this one's git was told. */
const watch = (): (() => string) => {
  const trace = join(world.root, `trace-${randomUUID()}`);
  gitStandIn(
    world.root,
    `{ printf '%s\\n' "$*"; env; cat /proc/self/cmdline; } >> '${trace}'; exec "$REAL" "$@"`,
  );
  return () => readFileSync(trace, "utf8");
};

/** Arguments and environments of all processes that can be read. */
const processes = (): string =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) =>
      ["cmdline", "environ"].flatMap((file) => {
        try {
          return [readFileSync(`/proc/${pid}/${file}`, "latin1")];
        } catch {
          return []; // It ended, or is another user's.
        }
      }),
    )
    .join("\n");

describe("a credential", () => {
  it("is sent to its own server alone, regardless of who asks [G04]", () => {
    const tell = passwordTeller({ kind: "password", username: "c@i", password: "pw" }, "https://h:8443");
    expect(tell("Username for 'https://h:8443': ")).toBe("c@i");
    expect(tell("Password for 'https://c%40i@h:8443': ")).toBe("pw");
    for (const other of [
      "http://h:8443",
      "https://h",
      "https://evil.example",
      "https://h:8443.evil.example",
    ]) {
      expect(tell(`Username for '${other}': `)).toBe("");
      expect(tell(`Password for '${other.replace("//", "//c%40i@")}': `)).toBe("");
    }
    expect(tell("Enter passphrase for key '/x': ")).toBe("");
  });

  it("is in no argument, environment or file of git's, and in no message [G04] [G05]", async () => {
    const traced = watch();
    await run(cut());
    await run(world.backend.branchTip(repository, "main"));
    expect(traced()).toContain("push");
    expect(traced()).toContain("fetch");
    expect(traced()).not.toContain(world.server.password);
    for (const file of everyFile(world.mirrors)) {
      expect(readFileSync(file, "latin1"), file).not.toContain(world.server.password);
    }
    for (const name of ["FETCH_HEAD", "logs"]) {
      expect(existsSync(join(world.mirrors, `${repository.projectId}.git`, name))).toBe(false);
    }
  });

  deepTest("is in no process that runs while its server is slow [G05]", async () => {
    const { promise: seen, resolve } = Promise.withResolvers<string>();
    // The password has been sent when the server lets a request in.
    world.server.fault = () => {
      resolve(processes());
      return null;
    };
    await run(cut());
    expect(await seen).toContain("git-remote-http");
    expect(await seen).not.toContain(world.server.password);
  });

  deepTest("that is wrong is refused with a message that does not quote it", async () => {
    const upstream = world.upstreamOf(repository.projectId);
    const credential = { kind: "password", username: "ci", password: "canary-wrong" } as const;
    const own = { projectId: randomUUID(), importFrom: null, defaultBranch: null };
    const created = Effect.scoped(
      Effect.flatMap(
        makeExternalWorld({
          findRemote: ({ source }) =>
            Effect.succeed(source.kind === "git" ? { url: source.url, credential } : null),
        }),
        ({ backend }) => backend.create({ ...own, upstream }),
      ),
    );
    const error = await run(Effect.flip(created));
    expect(error.code).toBe("refused");
    expect(error.message).toContain("Authentication failed");
    expect(error.message).not.toContain("canary");
  });
});

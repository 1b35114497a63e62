import { afterAll, describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { diskFull, gitFailure, gitMessage } from "../../src/git/failure.ts";
import { gitVersionFault, requireGit, runGit, spawnGit } from "../../src/git/run.ts";
import { WAIT_MS } from "../support/patience.ts";

const repository = mkdtempSync(join(tmpdir(), "run-"));
execFileSync("git", ["init", "--quiet", "--bare", repository]);
afterAll(() => rmSync(repository, { recursive: true, force: true }));

/** A git that never ends by itself: it waits for names of objects. */
const waiting = { repository, args: ["cat-file", "--batch-check"] };

/** Ends a hung test; nothing is asserted about speed. */
const patience = { timeout: WAIT_MS };

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe("running git", () => {
  it.live("knows the machine's version [G14]", () =>
    Effect.gen(function* () {
      expect(yield* requireGit).toMatch(/^git version \d+\.\d+/);
    }),
  );

  it("refuses a git that is too old, naming the version found [G14]", () => {
    const fine = [
      "git version 2.38.0",
      "git version 2.39.5 (Apple Git-154)",
      "git version 2.100.1",
      "git version 3.0",
    ];
    for (const printed of fine) expect(gitVersionFault(printed), printed).toBeNull();
    for (const printed of ["git version 2.37.9", "git version 1.99.0", "git", ""]) {
      expect(gitVersionFault(printed)).toBe(`git 2.38 or newer is required. This machine has "${printed}".`);
    }
  });

  it.live("gives git no variable of the service's environment and no setting of the machine [G03]", () =>
    Effect.gen(function* () {
      process.env["PLATFORM_CANARY"] = "canary";
      const { stdout } = yield* runGit({ repository, args: ["-c", "alias.env=!env", "env"] });
      delete process.env["PLATFORM_CANARY"];
      const environment = stdout.toString("utf8");
      expect(environment).not.toContain("canary");
      expect(environment).toContain("GIT_TERMINAL_PROMPT=0\n");
      expect(environment).toContain("GIT_ALLOW_PROTOCOL=\n");
      const settings = yield* runGit({ repository, args: ["config", "--list", "--show-scope"] });
      expect(settings.stdout.toString("utf8")).not.toMatch(/^(?:system|global)/m);
    }),
  );

  it.live("runs no hook and no file-system monitor that a repository names [G06]", () =>
    Effect.gen(function* () {
      writeFileSync(
        join(repository, "config"),
        "[core]\n\tbare = true\n\tfsmonitor = false\n\thooksPath = /x\n",
      );
      const { stdout } = yield* runGit({ repository, args: ["config", "--get", "core.hooksPath"] });
      expect(stdout.toString("utf8")).toBe("/dev/null\n");
    }),
  );

  it.live("ends git when its scope closes", () =>
    Effect.gen(function* () {
      const git = yield* Effect.scoped(
        Effect.gen(function* () {
          const running = yield* spawnGit(waiting);
          return running;
        }),
      );
      expect(yield* git.exit).toBeNull();
      expect(git.stdin.destroyed).toBe(true);
    }),
  );

  it.live("ends git and its children when the caller is interrupted", () =>
    Effect.gen(function* () {
      const pidFile = join(repository, "pid");
      const alias = `alias.wait=!echo $$ >${pidFile}; cat`;
      const fiber = yield* Effect.forkChild(
        Effect.scoped(Effect.andThen(spawnGit({ repository, args: ["-c", alias, "wait"] }), Effect.never)),
      );
      const readPid = (): number => (existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8")) : 0);
      yield* Effect.promise(() => expect.poll(readPid, patience).toBeGreaterThan(0));
      const pid = readPid();
      expect(isAlive(pid)).toBe(true);
      yield* Fiber.interrupt(fiber);
      yield* Effect.promise(() => expect.poll(() => isAlive(pid), patience).toBe(false));
    }),
  );

  it.live("stops at the deadline and reports it", () =>
    Effect.gen(function* () {
      const alias = "alias.wait=!sleep 60";
      const error = yield* Effect.flip(runGit({ repository, args: ["-c", alias, "wait"], deadlineMs: 50 }));
      expect(error).toMatchObject({ code: "timeout" });
    }),
  );

  it.live("keeps only as much output as the caller wants", () =>
    Effect.gen(function* () {
      const alias = "alias.flood=!yes";
      const { stdout, truncated } = yield* runGit({
        repository,
        args: ["-c", alias, "flood"],
        maxOutputBytes: 1000,
      });
      expect([stdout.length, truncated]).toEqual([1000, true]);
    }),
  );

  it.live("fails with git's own words, without a path of this machine", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(runGit({ repository, args: ["cat-file", "-t", "nothing"] }));
      expect(Exit.isFailure(exit)).toBe(true);
      const error = yield* Effect.flip(runGit({ repository, args: ["cat-file", "-t", "nothing"] }));
      expect(error.message).toBe("git cat-file: fatal: Not a valid object name nothing");
      expect(gitMessage(`fatal: '${repository}/x' is odd\nhint: y\n`, repository)).toBe(
        "fatal: 'the repository/x' is odd",
      );
    }),
  );

  it("says that this machine's disk is full, and does not mistake a server's for it", () => {
    const full = `error: unable to write file ${repository}/objects/ab: No space left on device\nfatal: cannot store\n`;
    expect(gitFailure("commit-tree", { stderr: full, repository })).toEqual(diskFull());
    const theirs = "remote: fatal: write error: No space left on device\nerror: the push failed\n";
    expect(gitFailure("push", { stderr: theirs, repository })).toMatchObject({
      code: "git_failed",
      message: "git push: error: the push failed",
    });
  });
});

/**
 * The command line on a real installation: `platform` in a session's sandbox, behind the egress proxy, with the token that
 * the agent has; and from a clone, for a person and for the operator, beside the running service and its own database.
 */
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import {
  Installation,
  LIGHT_AGENT,
  TOKEN,
  type Json,
  type Life,
} from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS } from "../../support/patience.ts";
import { deepTest } from "../../support/vitest/rings.ts";

let installation: Installation;
let life: Life;
let session: LiveSession;
/** Until the last test ends the service. */
let isUp = true;

/** Runs a command in the agent's shell. @returns what it printed, its errors too, and its exit code. */
const inSandbox = async (command: string): Promise<string> => {
  const { id } = await session.call("POST", "runtime/session", { title: "asked for by a test" });
  const parts = [{ type: "text", text: `run: { ${command}; echo "ended with $?"; } 2>&1` }];
  const answer = await session.call("POST", `runtime/session/${String(id)}/message`, { parts });
  return (answer["parts"] as readonly Json[]).map(({ text }) => String(text ?? "")).join("\n");
};

/** From a clone, as a person's shell finds it. */
const PROGRAM = path.join(import.meta.dirname, "../../../src/cli/platform");

/** Runs it as a person who is logged in, and as the operator of this installation. @returns its document. */
const fromClone = async (...args: readonly string[]): Promise<Json> => {
  const { stdout } = await promisify(execFile)(PROGRAM, [...args, "--json"], {
    env: {
      PATH: process.env["PATH"],
      PLATFORM_API_URL: life.url,
      PLATFORM_CLI_TOKEN: TOKEN,
      PLATFORM_DATA_DIR: installation.dataDir,
    },
  });
  return JSON.parse(stdout) as Json;
};

const sessionId = (): string => session.path.split("/").at(-1) ?? "";
const projectPath = (): string => session.path.slice(0, session.path.indexOf("/sessions/"));

describe.runIf(sandboxesStartHere)("the command line on a real installation", () => {
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start(LIGHT_AGENT);
    session = await LiveSession.start(life, installation);
  }, TEST_MS);
  afterAll(async () => {
    try {
      if (isUp) await session?.stop();
    } finally {
      await life?.end("SIGTERM");
      await installation?.close();
    }
  }, TEST_MS);

  it(
    "opens a change request from inside the sandbox and may not merge it [T01]",
    async () => {
      const commit = "git commit -q --allow-empty -m Proposed && git push -q origin HEAD";
      const opened = await inSandbox(`${commit} && platform cr create --title 'Made inside' --json`);
      expect(opened).toContain("ended with 0");
      expect(opened).toContain('"title":"Made inside"');
      const request = await life.call("GET", `${projectPath()}/change-requests/1`);
      expect(request).toMatchObject({ status: "open", session_id: sessionId() });

      const refused = await inSandbox("platform cr merge 1");
      expect(refused).toContain("A session token does not have permission to do this.");
      expect(refused).toContain("ended with 3");
      const { status } = await life.call("GET", `${projectPath()}/change-requests/1`);
      expect(status).toBe("open");

      // With nothing but what was injected: its own session, and where the program lies.
      const self = await inSandbox(
        "cd / && platform sessions show && command -v platform && printenv PLATFORM_WORKSPACE",
      );
      expect(self).toMatch(new RegExp(`session +${sessionId()}\n`));
      expect(self).toContain("/usr/local/bin/platform\n/workspace\n");
    },
    TEST_MS,
  );

  deepTest(
    "removes the branch of a merged session once it is stopped, beside the running service",
    async () => {
      expect(await fromClone("cr", "merge", "1")).toMatchObject({ status: "merged" });
      const repository = path.join(
        installation.dataDir,
        "repositories",
        `${projectPath().split("/").at(-1)}.git`,
      );
      const tips = async () =>
        (await gitOk(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads")).split("\n");
      const prune = (...more: readonly string[]) => fromClone("branches", "prune", "--merged", ...more);
      const outcome = { project_id: projectPath().split("/").at(-1), session_id: sessionId() };

      const kept = { ...outcome, outcome: "kept", reason: "the session is live" };
      expect(await prune()).toEqual({ branches: [kept], dry_run: false });
      await session.call("POST", "stop");
      const gone = { ...outcome, outcome: "removed", reason: null };
      expect(await prune("--dry-run")).toEqual({ branches: [gone], dry_run: true });
      expect(await tips()).toContain(sessionId());
      expect(await prune()).toEqual({ branches: [gone], dry_run: false });
      expect(await tips()).not.toContain(sessionId());
      expect(await prune()).toEqual({ branches: [], dry_run: false });
      // Merged commits are shown as before.
      const { commits } = await life.call("GET", `${projectPath()}/change-requests/1`);
      expect(commits).toMatchObject([{ subject: "Proposed" }]);
    },
    TEST_MS,
  );

  deepTest(
    "creates accounts, users and tokens and sets tiers, beside the running service and its own database",
    async () => {
      const { id: account } = await fromClone("admin", "account", "create", "second");
      const { accounts } = await fromClone("admin", "account", "list");
      expect((accounts as readonly Json[]).map(({ name }) => name)).toEqual(["second", "default"]);
      const { id: user } = await fromClone("admin", "user", "create", "ada", "--account", String(account));
      const { id: tokenId, token } = await fromClone(
        "admin",
        "token",
        "create",
        "laptop",
        "--user",
        String(user),
      );
      const whoIs = async () =>
        await fetch(`${life.url}/v1/me`, { headers: { authorization: `Bearer ${String(token)}` } });
      expect(await (await whoIs()).json()).toMatchObject({
        user: { id: user, name: "ada" },
        account: { id: account, tier: "free", session_cap: 50 },
      });
      await fromClone("admin", "tier", "set", String(account), "pro");
      expect(await (await whoIs()).json()).toMatchObject({ account: { tier: "pro", session_cap: 200 } });
      await fromClone("admin", "token", "delete", String(tokenId), "--account", String(account));
      expect((await whoIs()).status).toBe(401);

      const nobody = fromClone("admin", "tier", "set", String(user), "pro");
      await expect(nobody).rejects.toMatchObject({
        code: 4,
        stderr: expect.stringContaining("not_found") as string,
      });
    },
    TEST_MS,
  );

  deepTest(
    "also finds the database if no service runs, and reports a missing one",
    async () => {
      await session.stop();
      isUp = false;
      expect(await life.end("SIGTERM")).toBe(0);
      const { accounts } = await fromClone("admin", "account", "list");
      expect(accounts).toMatchObject([{ name: "second" }, { name: "default" }]);
      // It left nothing running, and nothing that keeps the service from starting.
      expect(installation.processes()).toEqual([]);
      expect(readdirSync(installation.dataDir).filter((name) => name.startsWith("owner."))).toEqual([]);
      const elsewhere = promisify(execFile)(PROGRAM, ["admin", "account", "list"], {
        env: { PATH: process.env["PATH"], PLATFORM_DATA_DIR: path.join(installation.directory, "nowhere") },
      });
      await expect(elsewhere).rejects.toMatchObject({ code: 4 });
      expect(existsSync(path.join(installation.directory, "nowhere"))).toBe(false);
    },
    TEST_MS,
  );
});

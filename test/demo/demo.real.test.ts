import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { verify } from "@octokit/webhooks-methods";
import { describe, expect, it } from "vitest";
import { eventOf, tipOf } from "../../demo/client.ts";
import { addEnvironment } from "../../demo/environment.ts";
import { bootSteps } from "../../demo/journey.ts";
import { formatTime, makeNarrator } from "../../demo/narrator.ts";
import { makeRepository, pushDelivery } from "../../demo/sample.ts";
import { parseManifest } from "../../src/domain/manifest/manifest.ts";
import { buildLacks } from "../support/service/dockerfile-project.ts";
import { deepTest } from "../support/vitest/rings.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");

describe("the sample project", () => {
  it("has a manifest without errors, and its agents exist", () => {
    const bytes = fs.readFileSync(path.join(ROOT, "demo/repository/platform.toml"));
    const { triggers, errors } = parseManifest(bytes);
    expect(errors).toEqual([]);
    expect(triggers.map(({ slug, type }) => [slug, type])).toEqual([
      ["on-push", "webhook"],
      ["new-year", "cron"],
    ]);
    for (const { agent } of triggers) {
      const file = path.join(ROOT, "demo/repository/.platform/runtime/agents", `${agent}.md`);
      expect(fs.existsSync(file)).toBe(true);
    }
  });

  it("becomes a repository with one commit, regardless of git's settings", () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "sample-"));
    try {
      makeRepository(directory);
      expect(fs.readFileSync(path.join(directory, ".git/HEAD"), "utf8")).toBe("ref: refs/heads/main\n");
      expect(fs.existsSync(path.join(directory, ".git/refs/heads/main"))).toBe(true);
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
  });

  it("has a Dockerfile only where one can be built; elsewhere it says what to do", () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "sample-"));
    const { PATH } = process.env;
    const dockerfile = path.join(directory, ".platform/Dockerfile");
    try {
      // A directory without programs.
      process.env["PATH"] = directory;
      expect(addEnvironment(directory)).toBe(
        process.geteuid?.() === 0 ? "install buildah, bubblewrap, busybox-static" : "run the demo as root",
      );
      expect(fs.existsSync(dockerfile)).toBe(false);
      process.env["PATH"] = PATH;
      const todo = addEnvironment(directory);
      expect(todo === null).toBe(buildLacks === "");
      expect(fs.existsSync(dockerfile)).toBe(todo === null);
    } finally {
      process.env["PATH"] = PATH;
      fs.rmSync(directory, { recursive: true });
    }
  });

  it("is pushed to by a GitHub payload with GitHub's signature", async () => {
    const { body, headers } = await pushDelivery("a secret", "an-id");
    expect(await verify("a secret", body, headers["x-hub-signature-256"] ?? "")).toBe(true);
    expect(JSON.parse(body)).toMatchObject({
      ref: expect.stringMatching(/^refs\/heads\//),
      head_commit: { id: expect.stringMatching(/^[0-9a-f]{40}$/) },
    });
    expect(headers).toMatchObject({ "x-github-event": "push", "x-github-delivery": "an-id" });
  });
});

describe("the demo's input", () => {
  it("yields a branch's tip from git's advertisement, and no other branch's", () => {
    const commit = "9c413c6173e12ca603879601e54a5456e11f504c";
    const other = "51c5a2450612958698f886ddf8b4ab6828fe7811";
    const refs =
      `001e# service=git-upload-pack\n0000010e${other} HEAD\0multi_ack symref=HEAD:refs/heads/main\n` +
      `003d${other} refs/heads/main\n003f${commit} refs/heads/session\n0000`;
    expect(tipOf(refs, "session")).toBe(commit);
    expect(tipOf(refs, "sess")).toBeNull();
    expect(tipOf(`00b1${commit} refs/heads/first\0caps\n0000`, "first")).toBe(commit);
  });

  it("yields server-sent events without comments", () => {
    const data = { type: "session.status", at: "t", session_id: "s", data: { status: "running" } };
    expect(eventOf(`id: 7\nevent: session.status\ndata: ${JSON.stringify(data)}`)).toEqual(data);
    expect(eventOf("id: 1\nevent: open\ndata: {}")).toMatchObject({ type: "open" });
    expect(eventOf(": keep")).toBeNull();
  });

  it("yields the steps of a boot from the daemon's log, and null for a missing step", () => {
    const at = "2026-11-20T06:52:05.618Z";
    const log = [
      `${at} sandbox what a program printed`,
      `${at} runtime daemon listening port=8000`,
      `${at} daemon checked out commit=c`,
      "2026-11-20T06:52:06.000Z daemon agent runtime state=restarting run=1",
    ].join("\n");
    expect(bootSteps(log)).toEqual({ sandbox: null, clone: Date.parse(at), runtime: null });
  });
});

const told = (colours: boolean): string => {
  const lines: string[] = [];
  const narrator = makeNarrator((text) => lines.push(text), colours);
  narrator.say("session", "running", { at: 2500, origin: 1000 });
  narrator.diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n");
  return lines.join("");
};

describe("the demo's output", () => {
  it("shows each step with its time, in plain text without a terminal", () => {
    expect(told(false)).toBe(
      "   +1.5 s  session         running\n    --- a/x\n    +++ b/x\n    @@ -1 +1 @@\n    -old\n    +new\n",
    );
    expect(formatTime(999)).toBe("999 ms");
  });

  it("colours additions and removals on a terminal", () => {
    expect(told(true)).toContain("\u001B[32m+new\u001B[0m");
    expect(told(true)).toContain("\u001B[31m-old\u001B[0m");
  });
});

/** Runs the demo as `npm run demo -- --once` does. */
const runDemo = async (environment: Readonly<Record<string, string>>) => {
  const child = spawn(process.execPath, ["demo/main.ts", "--once"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...environment },
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString("utf8")));
  child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString("utf8")));
  const code = await new Promise<number | null>((resolve) => {
    child.on("close", resolve);
  });
  return { code, ...output };
};

const demoDirectories = () => fs.readdirSync("/tmp").filter((name) => name.startsWith("demo-"));

describe("the demo", () => {
  deepTest("says which step failed and why, exits 1 and leaves nothing behind", async () => {
    const before = demoDirectories();
    const { code, stdout, stderr } = await runDemo({ PLATFORM_SANDBOX_PROVIDER: "nonsense" });
    expect(code).toBe(1);
    expect(stderr).toContain("The demo failed at starting the service:");
    expect(stderr).toContain("PLATFORM_SANDBOX_PROVIDER");
    expect(stdout).not.toContain("session_id");
    expect(demoDirectories()).toEqual(before);
  });

  deepTest("ends and leaves nothing behind when its reader has gone", async () => {
    const before = demoDirectories();
    const child = spawn(process.execPath, ["demo/main.ts"], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "ignore"],
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"] },
    });
    child.stdout.on("data", (chunk: Buffer) => {
      if (chunk.includes("ready at")) child.stdout.destroy();
    });
    const code = await new Promise<number | null>((resolve) => {
      child.on("close", resolve);
    });
    expect(code).toBe(1);
    expect(demoDirectories()).toEqual(before);
  });

  it("does the main job with the real parts and ends with one line of JSON", async () => {
    const before = demoDirectories();
    const { code, stdout, stderr } = await runDemo({});
    expect(stderr).toBe("");
    expect(code).toBe(0);
    const outcome = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as Record<string, unknown>;
    expect(outcome).toMatchObject({
      session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      status: "running",
      branch: outcome["session_id"],
      commit: expect.stringMatching(/^[0-9a-f]{40}$/),
      change_request: 1,
      sandbox_provider: "local",
      agent_runtime: expect.stringMatching(/^opencode \d/),
    });
    const { accepted, branch, sandbox, clone, runtime, running, commit } = outcome["boot_ms"] as Record<
      string,
      number
    >;
    const steps = [accepted, branch, sandbox, clone, runtime, running, commit];
    expect(steps.every((step) => Number.isInteger(step))).toBe(true);
    expect(Math.max(branch ?? 0, sandbox ?? 0, clone ?? 0, runtime ?? 0)).toBeLessThanOrEqual(running ?? 0);
    // Where nothing can be built, the session sees this machine's files, and the demo says what is missing.
    expect(stdout).toMatch(
      buildLacks === ""
        ? /environment +an image of \d+\.\d MiB, built from \.platform\/Dockerfile\n/
        : /environment +this machine's files; to build a Dockerfile: \w/,
    );
    expect(stdout).toContain("+> Pushed by: Codertocat");
    // The call of the agent waits for the person, and the board gets it after that.
    expect(stdout).toMatch(
      /approval +the agent asks for board announce .*\n.*person +approves the call\n(?:.*\n)*.*board +The note about the push is written\./,
    );
    expect(demoDirectories()).toEqual(before);
  });
});

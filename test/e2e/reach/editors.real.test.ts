/** OpenSSH's own client and server with a sandbox between them: the service, the daemon, and the command line are real. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CommandLine } from "../../support/service/command-line.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Life, LIGHT_AGENT } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { SshClient } from "../../support/service/sessions/ssh.ts";
import { TEST_MS } from "../../support/patience.ts";
import { rsyncRunsHere, sshRunsHere } from "../../support/requirements.ts";
import { deepTest, onlyDeep, rounds } from "../../support/vitest/rings.ts";

/** Larger than what waits anywhere on the way. */
const FILE_BYTES = rounds(8, 100) * 1024 * 1024;
/** More than terminals may run in a session. */
const LOGINS = rounds(12, 50);

const curl = async (...words: readonly string[]) =>
  await text(spawn("curl", ["-s", "--max-time", "5", ...words]).stdout);

/** A port of this computer that nothing uses. */
const freePort = async (): Promise<number> => {
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const { port } = free.address() as AddressInfo;
  free.close();
  return port;
};

describe.skipIf(!sshRunsHere)("a person's own tools and a sandbox (needs OpenSSH)", () => {
  let installation: Installation;
  let life: Life;
  let session: LiveSession;
  let client: SshClient;
  let line: CommandLine;
  let host = "";
  let pid = "";
  let sid = "";
  let env: Readonly<Record<string, string>> = {};

  const database = useRunDatabase();
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start({ ...database(), ...LIGHT_AGENT });
    session = await LiveSession.start(life, installation);
    client = await SshClient.make(life.url);
    ({ line, env } = client);
    [, , , pid = "", , sid = ""] = session.path.split("/");
    host = client.host(session.path);
  }, TEST_MS);
  afterAll(async () => {
    line?.remove();
    await session?.stop();
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  const run: SshClient["run"] = (...asked) => client.run(...asked);

  it(
    "runs commands as the agent, with its environment, and gives their exit codes",
    { timeout: TEST_MS },
    async () => {
      const asked = "id -un; pwd; env | grep -c ^PLATFORM_SESSION_ID=; cat; exit 7";
      expect(await run("ssh", [host, asked], { input: "typed\n" })).toEqual({
        code: 7,
        stdout: "agent\n/workspace\n1\ntyped\n",
        stderr: "",
      });
      // As editors do: a shell that reads its commands.
      expect(await run("ssh", ["-T", host, "sh"], { input: "echo $((6 * 7)); tty\n" })).toMatchObject({
        stdout: "42\nnot a tty\n",
      });
      expect((await run("ssh", ["-tt", host, "tty; stty size"])).stdout).toMatch(/^\/dev\/pts\/\d+\r\n/);
    },
  );

  it("takes files there and back", { timeout: TEST_MS }, async () => {
    const bytes = randomBytes(FILE_BYTES);
    writeFileSync(path.join(line.directory, "sent"), bytes);
    expect(await run("scp", ["sent", `${host}:`])).toMatchObject({ code: 0, stderr: "" });
    expect(await run("scp", [`${host}:/workspace/sent`, "back"])).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(path.join(line.directory, "back")).equals(bytes)).toBe(true);
    expect(await run("ssh", [host, "rm sent"])).toMatchObject({ code: 0 });
  });

  onlyDeep(() => {
    const title = "takes a directory there and back with rsync (needs rsync)";
    it.skipIf(!rsyncRunsHere)(title, { timeout: TEST_MS }, async () => {
      const [tree, again] = [path.join(line.directory, "tree"), path.join(line.directory, "again")];
      mkdirSync(path.join(tree, "a b"), { recursive: true });
      const bytes = randomBytes(1024 * 1024);
      writeFileSync(path.join(tree, "a b", "large"), bytes);
      writeFileSync(path.join(tree, "run"), "#!/bin/sh\necho it runs\n", { mode: 0o755 });
      symlinkSync("run", path.join(tree, "link"));
      expect(await client.rsync("tree/", `${host}:tree/`)).toMatchObject({ code: 0, stderr: "" });
      expect(await run("ssh", [host, "tree/link && echo more >> tree/run && rm 'tree/a b/large'"])).toEqual({
        code: 0,
        stdout: "it runs\n",
        stderr: "",
      });
      expect(await client.rsync("tree/", `${host}:tree/`)).toMatchObject({ code: 0, stderr: "" });
      expect((await run("ssh", [host, "tail -n 1 tree/run; touch tree/new"])).stdout).toBe("echo it runs\n");
      expect(await client.rsync(`${host}:tree/`, "again/")).toMatchObject({ code: 0, stderr: "" });
      expect(readdirSync(again).toSorted()).toEqual(["a b", "link", "new", "run"]);
      expect(readFileSync(path.join(again, "a b", "large")).equals(bytes)).toBe(true);
      expect(await run("ssh", [host, "rm -r tree"])).toMatchObject({ code: 0 });
    });
  });

  deepTest("leads a port of this computer to one inside with -L, as for a database", async () => {
    const port = await freePort();
    const serves = `require("net").createServer((peer) => peer.end("a database")).listen(4714, "127.0.0.1")`;
    const server = client.start("ssh", [host, `exec node -e '${serves}'`]);
    const forward = client.start("ssh", ["-N", "-L", `127.0.0.1:${port}:localhost:4714`, host]);
    const read = async () =>
      await text(connect(port, "127.0.0.1")).then(
        (said) => said,
        () => null,
      );
    await expect.poll(read, POLL).toBe("a database");
    for (const child of [forward, server]) {
      child.kill("SIGTERM");
      // oxlint-disable-next-line no-await-in-loop -- both have ended then
      await once(child, "close");
    }
  });

  it("leads a port of this computer into the sandbox", { timeout: TEST_MS }, async () => {
    const port = await freePort();
    const serves = `require("http").createServer((_, out) => out.end("from inside")).listen(4711, "127.0.0.1")`;
    const server = client.start("ssh", [host, `node -e '${serves}'`]);
    const words = ["sessions", "port", sid, "4711", "--local", String(port), "--project", pid];
    const forward = spawn(process.execPath, [line.bundle, ...words], { env, cwd: line.directory });
    const read = async () =>
      await fetch(`http://127.0.0.1:${port}`).then(
        (answer) => answer.text(),
        () => null,
      );
    await expect.poll(read, POLL).toBe("from inside");
    for (const child of [forward, server]) {
      child.kill("SIGTERM");
      // oxlint-disable-next-line no-await-in-loop -- both have ended then
      await once(child, "close");
    }
  });

  deepTest("is a way for SOCKS and for sockets with a path, as editors use them", async () => {
    const ours = path.join(line.directory, "socket");
    const answers = `require("http").createServer((_, out) => out.end("inside")).listen`;
    const socket = client.start("ssh", [host, `exec node -e '${answers}("/tmp/a.sock"); ${answers}(4712)'`]);
    const forward = client.start("ssh", ["-N", "-D", "127.0.0.1:4713", "-L", `${ours}:/tmp/a.sock`, host]);
    await expect.poll(() => curl("--unix-socket", ours, "http://x/"), POLL).toBe("inside");
    expect(await curl("--socks5-hostname", "127.0.0.1:4713", "http://localhost:4712/")).toBe("inside");
    for (const child of [forward, socket]) {
      child.kill("SIGTERM");
      // oxlint-disable-next-line no-await-in-loop -- both have ended then
      await once(child, "close");
    }
    await run("ssh", [host, "pkill -f a.sock; rm /tmp/a.sock"]);
  });

  it("carries more logins at once than there are terminals", { timeout: TEST_MS }, async () => {
    const logins = Array.from({ length: LOGINS }, (_, at) => run("ssh", [host, `echo ${at}`]));
    expect(await Promise.all(logins)).toEqual(
      Array.from({ length: LOGINS }, (_, at) => ({ code: 0, stdout: `${at}\n`, stderr: "" })),
    );
  });

  deepTest("ends with its person's role, and the next one is refused", async () => {
    await life.call("PATCH", `/v1/projects/${pid}`, { default_role: null });
    const { id, token } = await life.member(pid, "Ben");
    const other = await SshClient.make(life.url, token);
    try {
      const open = other.start("ssh", [host, "echo open; exec tail -f /dev/null"]);
      const ended = once(open, "close");
      const [said] = (await once(open.stdout, "data")) as [Buffer];
      expect(said.toString()).toBe("open\n");
      await life.call("PUT", `/v1/projects/${pid}/members/${id}`, { role: "viewer" });
      expect(await ended).toEqual([255, null]);
      const next = await other.run("ssh", [host, "true"]);
      expect(next).toMatchObject({ code: 255, stdout: "" });
      expect(next.stderr).toContain("member");
    } finally {
      other.line.remove();
    }
  });

  it("leaves nothing in the sandbox", { timeout: TEST_MS }, async () => {
    const left = "ls -A /tmp; ps -e -o args= | grep -c '[s]shd' || true";
    await expect
      .poll(async () => (await line.run(shellWords(left), { env })).stdout, POLL)
      .toMatch(/(^|\n)0\n$/);
  });

  it(
    "brings what the agent has not committed into a clone, and takes commits back",
    { timeout: TEST_MS },
    async () => {
      await session.run(
        "echo committed > one && git add one && git commit -qm One && echo changed >> one && echo new > two",
      );
      const clone = path.join(line.directory, "clone");
      const options = {
        env: { ...env, PLATFORM_PROJECT_ID: pid, GIT_CONFIG_GLOBAL: path.join(line.directory, "gitconfig") },
        cwd: clone,
      };
      const git = async (directory: string, ...words: readonly string[]) => {
        const child = spawn("git", ["-C", directory, ...words], { env: options.env });
        const [stdout, stderr, [code]] = await Promise.all([
          text(child.stdout),
          text(child.stderr),
          once(child, "close") as Promise<[number | null]>,
        ]);
        expect(code, stderr).toBe(0);
        return stdout.trim();
      };
      writeFileSync(options.env.GIT_CONFIG_GLOBAL, "[user]\nname = me\nemail = me@example.com\n");
      await git(line.directory, "clone", "-q", installation.sample, clone);
      const platform = async (...words: readonly string[]) => {
        const child = spawn(process.execPath, [line.bundle, ...words], options);
        const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
        return stdout + stderr;
      };
      expect(await platform("sessions", "checkout", sid)).toContain("has the session's work");
      const worktree = `${clone}-${sid.slice(-8)}`;
      expect(await git(worktree, "log", "-1", "--format=%s")).toBe("One");
      expect(await git(worktree, "status", "--porcelain")).toBe("M one\n?? two");
      // The agent's own index and branch are as before.
      expect((await line.run(shellWords("git status --porcelain"), { env })).stdout).toBe(" M one\n?? two\n");
      await git(worktree, "commit", "-qam", "Mine");
      await git(worktree, "push", "-q");
      expect(
        (
          await line.run(shellWords("git ls-remote origin $(git branch --show-current) | cut -c1-40"), {
            env,
          })
        ).stdout.trim(),
      ).toBe(await git(worktree, "rev-parse", "HEAD"));
      writeFileSync(path.join(clone, "own"), "mine");
      expect(await platform("sessions", "take", sid)).toContain("This clone has changes.");
      await git(clone, "worktree", "remove", "--force", worktree);
      await git(
        clone,
        "branch",
        "-qD",
        await git(clone, "for-each-ref", "--format=%(refname:short)", "refs/heads/*-*"),
      );
      await git(clone, "clean", "-qf");
      await platform("sessions", "take", sid);
      expect(await git(clone, "status", "--porcelain")).toBe("M one\n?? two");
      const created = await platform("sessions", "create", "--from-here", "--json");
      const { id, base_ref: base } = JSON.parse(created.split("\n")[0] ?? "") as Record<string, string>;
      expect(base).toMatch(/^from-here-[0-9a-f]{8}$/);
      expect(await git(clone, "show", `platform/${base}:one`)).toBe("committed\nchanged");
      expect(await git(clone, "show", `platform/${base}:two`)).toBe("new");
      expect(await git(clone, "status", "--porcelain")).toBe("M one\n?? two");
      await life.call("POST", `/v1/projects/${pid}/sessions/${id}/stop`);
    },
  );

  it("refuses another key, and a name that is no session's", { timeout: TEST_MS }, async () => {
    const file = path.join(line.directory, "other");
    await once(spawn("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", file]), "close");
    const lines = readFileSync(client.configuration, "utf8").replace(
      /IdentityFile .*/,
      `IdentityFile "${file}"`,
    );
    writeFileSync(`${client.configuration}.other`, lines);
    const another = await run("ssh", [host, "true"], { file: `${client.configuration}.other` });
    expect(another).toMatchObject({ code: 255, stdout: "" });
    expect(another.stderr).toContain("Permission denied (publickey)");
    const other = await run("ssh", [`00000000.${host.split(".")[1] ?? ""}.platform`, "true"]);
    expect(other.code).toBe(255);
    expect(other.stderr).toContain("No such session");
  });

  const shellWords = (script: string): readonly string[] => {
    return ["sessions", "shell", sid, "--project", pid, "--", "sh", "-c", script];
  };
});

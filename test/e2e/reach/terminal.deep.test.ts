/** Terminals over real parts: the service, a sandbox, the daemon, the terminal program, and the command line. */
import { once } from "node:events";
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { EXIT } from "../../../src/cli/failure.ts";
import { CommandLine, type Running } from "../../support/service/command-line.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Terminal } from "../../support/service/sessions/live-terminal.ts";
import { Installation, type Life, TOKEN } from "../../support/service/process-service.ts";
import { OnTerminal } from "../../support/service/sessions/on-terminal.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";

/** The command has begun, and the terminal is in raw mode. */
const isBegun = async (one: OnTerminal) => {
  await one.shows(/begun\r/);
  expect(one.modes).toMatch(/-isig .*-icanon .*-echo /s);
};

describe.skipIf(!sandboxesStartHere)("a terminal in a sandbox", () => {
  let installation: Installation;
  let life: Life;
  let session: LiveSession;
  let line: CommandLine;
  const opened: Terminal[] = [];
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start();
    session = await LiveSession.start(life, installation);
    line = await CommandLine.make();
  }, TEST_MS);
  afterEach(async () => {
    // Closed by its person, a terminal ends.
    for (const { socket } of opened) socket.close(1000);
    for (const terminal of opened.splice(0)) await terminal.closes();
  });
  afterAll(async () => {
    line?.remove();
    await session?.stop();
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  const open = async (
    query: Readonly<Record<string, string>> = {},
    words: readonly string[] = [],
  ): Promise<Terminal> => {
    const search = new URLSearchParams({ id: randomUUID(), rows: "24", cols: "80", ...query });
    for (const word of words) search.append("command", word);
    const terminal = new Terminal(session, search);
    opened.push(terminal);
    await once(terminal.socket, "open");
    return terminal;
  };

  /** How `platform sessions shell` is called for the session. */
  const asked = (words: readonly string[]) => {
    const [, , , pid = "", , sid = ""] = session.path.split("/");
    const env = { PLATFORM_API_URL: `${life.url}/v1`, PLATFORM_CLI_TOKEN: TOKEN, PLATFORM_PROJECT_ID: pid };
    return { args: ["sessions", "shell", sid, ...words], env };
  };
  const shell = (words: readonly string[], running: Running = {}) => {
    const { args, env } = asked(words);
    return line.run(args, { env, ...running });
  };

  const killService = async () => void (await life.end("SIGKILL"));
  /** At the same address as before. */
  const startService = async () => {
    life = await installation.start({ PLATFORM_PORT: new URL(life.url).port });
    session = session.at(life);
  };

  /** The program of a test that is left in the sandbox, or `none`. */
  const left = async () => (await shell(["--", "sh", "-c", "pgrep -fx 'sleep 8639[9]' || echo none"])).stdout;
  /** What the writer of a test counts. */
  const written = async () => Number((await shell(["--", "cat", "count"])).stdout);
  /** A query of a command with pipes. */
  const piping: readonly [string, string][] = ["sh", "-c", "echo begun; exec sleep 86399"].map((word) => [
    "command",
    word,
  ]);
  const record = () => life.text("/v1/audit?limit=200");

  it(
    "is a shell as the agent, in the workspace, without the daemon's token",
    { timeout: TEST_MS },
    async () => {
      const terminal = await open();
      terminal.type(
        'pwd; tty; echo by name > "$(tty)"; stty size; env | grep -c ^PLATFORM_TOKEN=; env | grep -c ^PLATFORM_SESSION_ID=; echo é; exit 7\n',
      );
      expect(await terminal.closes()).toBe(1000);
      expect(terminal.exit).toBe(7);
      expect(terminal.output).toMatch(
        /\/workspace\r\n\/dev\/pts\/\d+\r\nby name\r\n24 80\r\n0\r\n1\r\né\r\n/,
      );
    },
  );

  it("sees what the agent sees: user, control group, environment", async () => {
    const about =
      "id -u; cat /proc/self/cgroup; env | grep -E '^(PATH|HOME|HTTPS?_PROXY|PLATFORM_[A-Z_]*)=' | sort";
    await session.run(`(${about}) > /workspace/agent-saw`);
    const terminal = await open({}, ["sh", "-c", `(${about}) | diff - /workspace/agent-saw && echo same`]);
    await terminal.closes();
    expect(terminal.output).toBe("same\r\n");
  });

  it("takes 10,000 sizes, and has the last one", async () => {
    const terminal = await open();
    for (let count = 0; count < 10_000; count += 1)
      terminal.socket.send(JSON.stringify({ resize: { rows: 10 + (count % 50), cols: 100 } }));
    terminal.socket.send(JSON.stringify({ resize: { rows: 33, cols: 111 } }));
    terminal.type("stty size\n");
    await terminal.shows("33 111\r\n");
  });

  it("passes Ctrl-C on to the program that runs", async () => {
    const terminal = await open();
    terminal.type("echo be''gun; sleep 1000\n");
    await terminal.shows("begun\r\n");
    terminal.type("\u0003");
    terminal.type("echo co''de $?\n");
    await terminal.shows("code 130");
  });

  it("comes back after a lost connection, with the output that came meanwhile", async () => {
    const id = randomUUID();
    const first = await open({ id });
    first.type("stty -echo; PS1=; echo fi''rst; read go; echo sec''ond\n");
    await first.shows("first\r\n");
    first.socket.terminate();
    await first.closes();
    const second = await open({ id, after: String(first.next) });
    second.type("go\n");
    await second.shows("second\r\n");
    expect(second.output).not.toContain("first");
    second.type("exit 5\n");
    await second.closes();
    expect(second.exit).toBe(5);
  });

  it("goes to a newer connection of the same person, and ends with it", async () => {
    const id = randomUUID();
    const first = await open({ id });
    const second = await open({ id, after: "0" });
    expect(await first.closes()).toBe(4409);
    second.socket.close(1000);
    await second.closes();
    const third = await open({ id, after: "0" });
    expect(await third.closes()).toBe(4404);
    expect(third.close?.reason).toBe("This terminal has ended.");
  });

  it("ends its programs when its person closes it", async () => {
    const terminal = await open({}, ["sh", "-c", "echo begun; exec sleep 86399"]);
    await terminal.shows("begun");
    terminal.socket.close(1000);
    await expect.poll(left, POLL).toBe("none\n");
  });

  const ENDLESS = "n=0; while :; do n=$((n+1)); echo $n > count; head -c 65536 /dev/zero | tr '\\0' x; done";
  /** Waits until the writer rests. @returns its count */
  const resting = async () => {
    let before = 0;
    const rests = async () => {
      const last = before;
      before = await written();
      // 64 MiB, which no buffer between them has.
      return before === last && before < 1024;
    };
    await expect.poll(rests, POLL).toBe(true);
    return before;
  };

  it("lets a program wait that writes faster than its reader reads", async () => {
    const terminal = await open({}, ["sh", "-c", ENDLESS]);
    await terminal.shows("x");
    terminal.socket.pause();
    const before = await resting();
    terminal.socket.resume();
    await expect.poll(written, POLL).toBeGreaterThan(before);
  });

  it("lets a program wait for a reader that says what it has read", async () => {
    const terminal = await open({}, ["sh", "-c", `read go; ${ENDLESS}`]);
    const say = (read: number) => terminal.socket.send(JSON.stringify({ read }));
    say(0);
    terminal.type("go\n");
    await terminal.shows("x");
    const before = await resting();
    // 256 KiB, and what pipes have.
    expect(terminal.next).toBeLessThan(1024 * 1024);
    say(terminal.next);
    await expect.poll(written, POLL).toBeGreaterThan(before);
    say(-1);
    expect(await terminal.closes()).toBe(1008);
  });

  it("has a limit, and says so", async () => {
    for (let count = 0; count < 8; count += 1) await open({}, ["sleep", "1000"]);
    const ninth = await open({}, ["sleep", "1000"]);
    expect(await ninth.closes()).toBe(4429);
    expect(ninth.close?.reason).toMatch(
      /^At most 8 terminals and 64 other commands of people run in a session\./,
    );
  });

  it("is on the audit record, without what was typed", async () => {
    const terminal = await open();
    terminal.type("exit # not-on-record\n");
    await terminal.closes();
    await expect.poll(async () => JSON.stringify(await record()), POLL).toContain("terminal.closed");
    expect(await record()).toContain("terminal.opened");
    expect(await record()).not.toContain("not-on-record");
  });

  describe("on the command line", () => {
    it("runs a command with pipes, and has its output and its exit code", { timeout: TEST_MS }, async () => {
      const ended = await shell(["--", "sh", "-c", "cat; echo problem >&2; exit 3"], { input: "a\0b\n" });
      expect(ended).toEqual({ code: 3, stdout: "a\0b\n", stderr: "problem\n" });
    });

    it("gives piped input to a shell", async () => {
      const ended = await shell([], { input: "pwd\n" });
      expect(ended).toEqual({ code: 0, stdout: "/workspace\n", stderr: "" });
    });

    it("passes a large input and a large output on unchanged", async () => {
      const input = "0123456789abcde\n".repeat(500_000);
      const ended = await shell(["--", "cat"], { input });
      expect(ended.code).toBe(0);
      expect(ended.stdout === input).toBe(true);
    });

    it("says that a program does not exist", async () => {
      const ended = await shell(["--", "no-such-program"]);
      expect(ended.code).toBe(127);
      expect(ended.stderr).toContain("no-such-program");
    });
  });

  describe("on the command line, in a terminal of its own", () => {
    const running: OnTerminal[] = [];
    afterEach(() => {
      for (const one of running.splice(0)) one.remove();
    });

    const started = (words: readonly string[] = []): OnTerminal => {
      const { args, env } = asked(words);
      const one = new OnTerminal([process.execPath, line.bundle, ...args], env);
      running.push(one);
      return one;
    };
    const BEGUN = ["--", "sh", "-c", "echo begun; exec sleep 86399"];

    it(
      "passes every key on, Ctrl-C too, and ends with the command's code",
      { timeout: TEST_MS },
      async () => {
        const one = started();
        one.type("echo be''gun; sleep 1000\r");
        await isBegun(one);
        one.type("\u0003");
        one.type("echo co''de $?\r");
        await one.shows("code 130");
        one.type("exit 7\r");
        expect(await one.ended()).toEqual({ code: 7, isRestored: true });
      },
    );

    it("leaves at ~. and ends the command", { timeout: TEST_MS }, async () => {
      const one = started(BEGUN);
      await isBegun(one);
      one.type("~.");
      expect(await one.ended()).toEqual({ code: 0, isRestored: true });
      await expect.poll(left, POLL).toBe("none\n");
    });

    it("restores the terminal after SIGTERM, and ends the command", { timeout: TEST_MS }, async () => {
      const one = started(BEGUN);
      await isBegun(one);
      process.kill(one.pid, "SIGTERM");
      expect(await one.ended()).toEqual({ code: 143, isRestored: true });
      await expect.poll(left, POLL).toBe("none\n");
    });

    it("restores the terminal after a refusal, and says why", { timeout: TEST_MS }, async () => {
      for (let count = 0; count < 8; count += 1) await open({}, ["sleep", "1000"]);
      const one = started(BEGUN);
      expect(await one.ended()).toEqual({ code: EXIT.refused, isRestored: true });
      expect(one.output).toContain("At most 8 terminals and 64 other commands of people run in a session.");
    });

    it("restores the terminal when it leaves a service that is gone", { timeout: TEST_MS }, async () => {
      // The sandbox does not hear that its person leaves, so this command waits for her.
      const one = started(["--", "sh", "-c", "echo begun; exec sleep 1000"]);
      await isBegun(one);
      await killService();
      await one.shows("The connection was lost.");
      one.type("~.");
      expect(await one.ended()).toEqual({ code: 0, isRestored: true });
      await startService();
    });

    it("comes back when the service does, and has the output once", { timeout: TEST_MS }, async () => {
      const one = started([
        "--",
        "sh",
        "-c",
        "echo begun; until [ -e go ]; do sleep 0.1; done; echo meanwhile; read x",
      ]);
      await isBegun(one);
      await killService();
      await one.shows("The connection was lost.");
      await startService();
      await shell(["--", "touch", "go"]);
      await one.shows("meanwhile");
      one.type("\r");
      expect(await one.ended()).toEqual({ code: 0, isRestored: true });
      expect(one.output.match(/begun|meanwhile/g)).toEqual(["begun", "meanwhile"]);
    });
  });

  describe("when something is killed", () => {
    it("ends with the program that makes it, and leaves nothing", { timeout: TEST_MS }, async () => {
      const terminal = await open({}, ["sh", "-c", "echo begun; exec sleep 86399"]);
      await terminal.shows("begun");
      const family =
        "command=$(pgrep -fx 'sleep 86399'); program=$(awk '/^PPid/ { print $2 }' /proc/$command/status); " +
        "echo $program $(pgrep -P $program)";
      const pids = (await shell(["--", "sh", "-c", family])).stdout.trim();
      // The program, its second process, and the command.
      expect(pids).toMatch(/^\d+ \d+ \d+$/);
      await shell(["--", "sh", "-c", `kill -9 ${pids.split(" ")[0]}`]);
      expect(await terminal.closes()).toBe(1000);
      expect(terminal.exit).toBe(137);
      const rest = `for pid in ${pids}; do kill -0 $pid 2>/dev/null && echo $pid; done; echo none`;
      await expect.poll(async () => (await shell(["--", "sh", "-c", rest])).stdout, POLL).toBe("none\n");
    });

    it("waits while the service is gone; a command with pipes ends", { timeout: TEST_MS }, async () => {
      const id = randomUUID();
      const terminal = await open({ id });
      terminal.type("stty -echo; PS1=; echo fi''rst; read go; echo sec''ond\n");
      await terminal.shows("first\r\n");
      const piped = new Terminal(session, new URLSearchParams([["id", randomUUID()], ...piping]));
      await piped.shows("begun");
      await killService();
      expect([await terminal.closes(), await piped.closes()]).toEqual([1006, 1006]);
      await startService();
      await expect.poll(left, POLL).toBe("none\n");
      const again = await open({ id, after: String(terminal.next) });
      again.type("go\n");
      await again.shows("second\r\n");
      expect(again.output).not.toContain("first");
    });

    it("leaves nothing after its session, whatever ignores its end", { timeout: TEST_MS }, async () => {
      const other = await LiveSession.startIn(life, session.path.split("/")[3] ?? "");
      const { id } = await other.call("GET", "sandbox");
      const query = { id: randomUUID(), rows: "24", cols: "80" };
      const terminal = new Terminal(other, query);
      await once(terminal.socket, "open");
      terminal.type("nohup setsid sleep 86396 & trap '' HUP TERM; echo be''gun; sleep 86396\n");
      await terminal.shows("begun");
      expect(processesOfSandbox(String(id))).not.toEqual([]);
      await other.stop();
      // The sandbox may end the command in time to say so.
      expect([1000, 1006]).toContain(await terminal.closes());
      await expect.poll(() => processesOfSandbox(String(id)), POLL).toEqual([]);
    });
  });
});

/** Terminals over real parts: the service, a sandbox, the daemon, the terminal program, and the command line. */
import { once } from "node:events";
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { CommandLine, type Running } from "../support/service/command-line.ts";
import { LiveSession, POLL } from "../support/service/live-session.ts";
import { Installation, type Life, TOKEN } from "../support/service/process-service.ts";
import { TEST_MS } from "../support/patience.ts";
import { sandboxesStartHere } from "../support/requirements.ts";

interface Said {
  readonly output_from?: number;
  readonly exit?: number;
}

/** One connection, and what came over it. */
class Terminal {
  readonly socket: WebSocket;
  output = "";
  /** The number of the output's next byte. */
  next = -1;
  exit: number | null = null;
  close: { readonly code: number; readonly reason: string } | null = null;

  constructor(session: LiveSession, query: Readonly<Record<string, string>> | URLSearchParams) {
    const { url, headers } = session.address("terminal");
    url.protocol = "ws:";
    url.search = new URLSearchParams(query).toString();
    this.socket = new WebSocket(url, { headers });
    this.socket.on("error", () => undefined);
    this.socket.on("message", (data: Buffer, isBinary) => {
      if (!isBinary) this.#hear(JSON.parse(data.toString()) as Said);
      else {
        this.next += data.length;
        this.output = (this.output + data.toString("utf8")).slice(-100_000);
      }
    });
    this.socket.on("close", (code, reason) => (this.close = { code, reason: reason.toString() }));
  }

  #hear({ output_from: from, exit }: Said): void {
    this.next = from ?? this.next;
    this.exit = exit ?? this.exit;
  }

  type(text: string): void {
    this.socket.send(Buffer.from(text));
  }

  shows(text: string | RegExp): Promise<unknown> {
    return expect.poll(() => this.output, POLL).toMatch(text);
  }

  async closes(): Promise<number | undefined> {
    await expect.poll(() => this.close, POLL).not.toBeNull();
    return this.close?.code;
  }
}

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

  const shell = (words: readonly string[], running: Running = {}) => {
    const [, , , pid = "", , sid = ""] = session.path.split("/");
    const env = { PLATFORM_API_URL: `${life.url}/v1`, PLATFORM_CLI_TOKEN: TOKEN, PLATFORM_PROJECT_ID: pid };
    return line.run(["sessions", "shell", sid, ...words], { env, ...running });
  };

  /** The program of a test that is left in the sandbox, or `none`. */
  const left = async () => (await shell(["--", "sh", "-c", "pgrep -fx 'sleep 8639[9]' || echo none"])).stdout;
  /** What the writer of a test counts. */
  const written = async () => Number((await shell(["--", "cat", "count"])).stdout);
  const record = () => life.text("/v1/audit?limit=200");

  it(
    "is a shell as the agent, in the workspace, without the daemon's token",
    { timeout: TEST_MS },
    async () => {
      const terminal = await open();
      terminal.type(
        "pwd; tty; stty size; env | grep -c ^PLATFORM_TOKEN=; env | grep -c ^PLATFORM_SESSION_ID=; echo é; exit 7\n",
      );
      expect(await terminal.closes()).toBe(1000);
      expect(terminal.exit).toBe(7);
      expect(terminal.output).toMatch(/\/workspace\r\n\/dev\/pts\/\d+\r\n24 80\r\n0\r\n1\r\né\r\n/);
    },
  );

  it("sees what the agent sees: user, control group, environment", { timeout: TEST_MS }, async () => {
    const about =
      "id -u; cat /proc/self/cgroup; env | grep -E '^(PATH|HOME|HTTPS?_PROXY|PLATFORM_[A-Z_]*)=' | sort";
    await session.run(`(${about}) > /workspace/agent-saw`);
    const terminal = await open({}, ["sh", "-c", `(${about}) | diff - /workspace/agent-saw && echo same`]);
    await terminal.closes();
    expect(terminal.output).toBe("same\r\n");
  });

  it("takes 10,000 sizes, and has the last one", { timeout: TEST_MS }, async () => {
    const terminal = await open();
    for (let count = 0; count < 10_000; count += 1)
      terminal.socket.send(JSON.stringify({ resize: { rows: 10 + (count % 50), cols: 100 } }));
    terminal.socket.send(JSON.stringify({ resize: { rows: 33, cols: 111 } }));
    terminal.type("stty size\n");
    await terminal.shows("33 111\r\n");
  });

  it("passes Ctrl-C on to the program that runs", { timeout: TEST_MS }, async () => {
    const terminal = await open();
    terminal.type("echo be''gun; sleep 1000\n");
    await terminal.shows("begun\r\n");
    terminal.type("\u0003");
    terminal.type("echo co''de $?\n");
    await terminal.shows("code 130");
  });

  it(
    "comes back after a lost connection, with the output that came meanwhile",
    { timeout: TEST_MS },
    async () => {
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
    },
  );

  it("goes to a newer connection of the same person, and ends with it", { timeout: TEST_MS }, async () => {
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

  it("ends its programs when its person closes it", { timeout: TEST_MS }, async () => {
    const terminal = await open({}, ["sh", "-c", "echo begun; exec sleep 86399"]);
    await terminal.shows("begun");
    terminal.socket.close(1000);
    await expect.poll(left, POLL).toBe("none\n");
  });

  it("lets a program wait that writes faster than its reader reads", { timeout: TEST_MS }, async () => {
    const loop = "n=0; while :; do n=$((n+1)); echo $n > count; head -c 65536 /dev/zero | tr '\\0' x; done";
    const terminal = await open({}, ["sh", "-c", loop]);
    await terminal.shows("x");
    terminal.socket.pause();
    let before = 0;
    const rests = async () => {
      const last = before;
      before = await written();
      // 64 MiB, which no buffer between them has.
      return before === last && before < 1024;
    };
    await expect.poll(rests, POLL).toBe(true);
    terminal.socket.resume();
    await expect.poll(written, POLL).toBeGreaterThan(before);
  });

  it("has a limit, and says so", { timeout: TEST_MS }, async () => {
    for (let count = 0; count < 8; count += 1) await open({}, ["sleep", "1000"]);
    const ninth = await open({}, ["sleep", "1000"]);
    expect(await ninth.closes()).toBe(4429);
    expect(ninth.close?.reason).toMatch(/^At most 8 terminals run in a session\./);
  });

  it("is on the audit record, without what was typed", { timeout: TEST_MS }, async () => {
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

    it("gives piped input to a shell", { timeout: TEST_MS }, async () => {
      const ended = await shell([], { input: "pwd\n" });
      expect(ended).toEqual({ code: 0, stdout: "/workspace\n", stderr: "" });
    });

    it("passes a large input and a large output on unchanged", { timeout: TEST_MS }, async () => {
      const input = "0123456789abcde\n".repeat(500_000);
      const ended = await shell(["--", "cat"], { input });
      expect(ended.code).toBe(0);
      expect(ended.stdout === input).toBe(true);
    });

    it("says that a program does not exist", { timeout: TEST_MS }, async () => {
      const ended = await shell(["--", "no-such-program"]);
      expect(ended.code).toBe(127);
      expect(ended.stderr).toContain("no-such-program");
    });
  });
});

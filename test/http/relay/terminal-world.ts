/** A real daemon for the terminals of a session, and clients that open them. Commands run on this machine. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { WebSocket } from "ws";
import { LogRing } from "../../../daemon/logs/log-ring.ts";
import { Report } from "../../../daemon/report.ts";
import { DaemonServer } from "../../../daemon/http/server.ts";
import { Terminals } from "../../../daemon/terminals/terminals.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { signUserContext, USER_CONTEXT_HEADER } from "../../../src/domain/sandbox/user-context.ts";
import type { DaemonLink } from "../../../src/sandbox/port.ts";
import { machineArchitecture } from "../../../src/sandbox/machine/isolation/seccomp.ts";
import { nativeProgram } from "../../../src/sandbox/native/programs.ts";
import type { TestService } from "../../support/service/service.ts";

/** How an attempt to open a terminal went. */
export interface Opened {
  /** 101: it is open. */
  readonly status: number;
  /** The error's code. Null: there is no error. */
  readonly code: string | null;
  readonly socket: WebSocket;
  /** The code with which the connection ended. Null: it is open. */
  readonly closed: () => number | null;
  /** Its output so far. */
  readonly output: () => string;
}

/** The terminals of one session, in a daemon of their own. */
export class TerminalWorld {
  #session = { sid: "", token: "" };
  readonly #directory = mkdtempSync(path.join(tmpdir(), "terminals-"));
  readonly #sockets: WebSocket[] = [];
  /** Terminals that wait for their person: how long, and what happens then. */
  waits: { readonly ms: number; readonly elapsed: () => void }[] = [];
  readonly #askEveryMs: number | undefined;
  /** How often a person typed, as the daemon counts. */
  keys = 0;
  #daemon: DaemonServer | null = null;
  #terminals: Terminals | null = null;

  /** @param askEveryMs how often the daemon asks a connection whether it is alive */
  constructor(askEveryMs?: number) {
    this.#askEveryMs = askEveryMs;
  }

  /** Where the service finds the daemon. */
  get link(): DaemonLink {
    return { kind: "unix", path: this.#socketPath };
  }

  get #socketPath(): string {
    return path.join(this.#directory, "d.sock");
  }

  /** Starts the daemon of a session. @param token the one of its sandbox */
  async start(sid: string, token: string): Promise<void> {
    this.#session = { sid, token };
    const program = path.join(this.#directory, "terminal");
    writeFileSync(program, nativeProgram("terminal", machineArchitecture()), { mode: 0o755 });
    this.#terminals = new Terminals({
      launch: (command) =>
        Promise.resolve({
          prefix: [],
          command,
          env: { PATH: process.env["PATH"] ?? "" },
          cwd: this.#directory,
        }),
      // A terminal waits for its person until the test ends the wait.
      after: (ms, elapsed) => {
        const wait = { ms, elapsed };
        this.waits.push(wait);
        return () => {
          this.waits = this.waits.filter((other) => other !== wait);
        };
      },
      ...(this.#askEveryMs !== undefined && { askEveryMs: this.#askEveryMs }),
      typed: () => (this.keys += 1),
      log: () => undefined,
      program,
    });
    this.#daemon = new DaemonServer({
      token,
      sessionId: sid,
      runtimePort: null,
      blockedPorts: [],
      report: new Report({ version: "0", redactor: new Redactor([]), repoUrl: "", branch: "" }),
      ring: new LogRing(() => undefined),
      terminals: this.#terminals,
      control: (name) => Promise.resolve({ done: { name } }),
      abort: () => Promise.resolve(false),
    });
    await this.#daemon.listen({ path: this.#socketPath });
  }

  /** Requests a terminal with a WebSocket's handshake. */
  async open(
    { port }: Pick<TestService, "port">,
    {
      at,
      headers,
      query = {},
    }: {
      readonly at: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly query?: Readonly<Record<string, string>>;
    },
  ): Promise<Opened> {
    // The command says which process it is, and stays until something ends it.
    const words: readonly [string, string][] = [
      ["command", "sh"],
      ["command", "-c"],
      ["command", "echo $$ > ran-$0; echo begun; exec sleep 86398"],
    ];
    const id = query["id"] ?? randomUUID();
    const search = new URLSearchParams([
      ...Object.entries({ id, rows: "24", cols: "80", ...query }),
      ...words,
      ["command", id],
    ]);
    const socket = new WebSocket(`ws://127.0.0.1:${port}${at}?${search.toString()}`, { headers });
    this.#sockets.push(socket);
    let closed: number | null = null;
    socket.on("error", () => undefined);
    socket.on("close", (code) => (closed = code));
    let output = "";
    socket.on("message", (message: Buffer, isBinary) => {
      if (isBinary) output += message.toString("utf8");
    });
    const refused = once(socket, "unexpected-response") as Promise<[unknown, IncomingMessage]>;
    const answer = await Promise.race([once(socket, "open").then(() => null), refused]);
    const opened = { socket, closed: () => closed, output: () => output };
    if (answer === null) return { ...opened, status: 101, code: null };
    const [, response] = answer;
    const { code } = JSON.parse(await text(response)) as { readonly code: string };
    return { ...opened, status: response.statusCode ?? 0, code };
  }

  #context(userId: string): Readonly<Record<string, string>> {
    const { sid: sessionId, token } = this.#session;
    // oxlint-disable-next-line no-restricted-properties -- the daemon reads the machine's clock
    const said = { userId, sessionId, role: "user", nowMs: Date.now() } as const;
    return { [USER_CONTEXT_HEADER]: signUserContext(said, token) };
  }

  /** Opens a terminal with `cat` at the daemon itself. @param autoPong whether the client says that it is alive */
  async direct(id: string, autoPong: boolean) {
    const target = `/platform/terminal?id=${id}&rows=24&cols=80&command=cat`;
    const options = { headers: this.#context("u"), autoPong };
    const socket = new WebSocket(`ws+unix:${this.#socketPath}:${target}`, options);
    this.#sockets.push(socket);
    socket.on("error", () => undefined);
    // It may come together with the answer to the handshake.
    const first = once(socket, "message") as Promise<[Buffer]>;
    await once(socket, "open");
    return { socket, first: first.then(([message]) => message.toString("utf8")) };
  }

  /** Asks the daemon to end a terminal, as the service does for a person. */
  async end(id: string, userId: string): Promise<void> {
    const asked = request({
      socketPath: this.#socketPath,
      path: `/platform/terminal?id=${id}`,
      method: "DELETE",
      headers: this.#context(userId),
    }).end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
  }

  /** The command of a terminal: its process, while that exists. */
  processOf(id: string): number | null {
    const name = `ran-${id}`;
    if (!readdirSync(this.#directory).includes(name)) return null;
    const pid = readFileSync(path.join(this.#directory, name), "utf8").trim();
    if (!pid) return null;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("86398") ? Number(pid) : null;
    } catch {
      return null;
    }
  }

  /** The commands that were started. */
  get started(): number {
    return readdirSync(this.#directory).filter((name) => name.startsWith("ran-")).length;
  }

  /** Ends all connections and commands. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.terminate();
    if (this.#terminals !== null) await Effect.runPromise(this.#terminals.endAll);
    this.#daemon?.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/**
 * Starts programs from a small process (program.mjs) instead of the service. Node starts a program with `fork`, for which
 * the kernel copies the page tables of the whole process. In a service with 300 MB that blocks the event loop for
 * milliseconds (docs/decisions/0052).
 *
 * 1. The first start starts the starter. It does not keep the service from ending, but a running program does.
 * 2. The standard streams are connections to a socket in a directory that only the service's user may enter.
 * 3. If the starter dies, its programs are killed, their `ended` says that they are lost, and the next start starts
 *    another starter.
 * 4. A service that ends in order ends the starter, and waits for it.
 * 5. A sandbox's launcher is not ended by 3 and 4: it outlives the service (`graceMs` null).
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Start {
  readonly program: string;
  readonly args: readonly string[];
  /** The whole environment. PATH in it says where the program is searched. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** `own`: a session and process group of its own, and signals go to the group. `shared`: the service's. */
  readonly group: "own" | "shared";
  /** Which of descriptors 0 to 3 are connected. The others are /dev/null, or one of the files. */
  readonly descriptors: readonly number[];
  readonly files?: readonly ProgramFile[];
  /** Uid and gid of the program. Without it, it has the service's. */
  readonly user?: number;
  /**
   * After a sudden end of the service: how long it may go on before SIGTERM, in milliseconds. SIGKILL follows 2 s later.
   * Null if it outlives the service and the starter. The caller has its own means of finding it again.
   */
  readonly graceMs: number | null;
}

/** A file that is a descriptor of the program. */
export interface ProgramFile {
  /** 0 to 4. */
  readonly descriptor: number;
  /** Absolute. */
  readonly path: string;
  /** `r`: read. `a`: append. A file that does not exist is made, with mode 0600. */
  readonly flags: "r" | "a";
}

export type StartOrder = Start & { readonly id: number };
export type Order = StartOrder | { readonly id: number; readonly signal: NodeJS.Signals };
export type Report =
  | { readonly id: number; readonly pid: number }
  | { readonly id: number; readonly failed: string }
  | ({ readonly id: number } & Exit);

/** `code` is null if a signal ended it. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}
export type End = Exit | "lost";

export interface Program {
  /** When it has been started. Rejects with a {@link StartError}. The fields below are of a started program. */
  readonly started: Promise<void>;
  readonly pid: () => number;
  /** By descriptor. They do not end with the program: the caller destroys them. One without output may have ended already. */
  readonly sockets: ReadonlyMap<number, Socket>;
  /** False as soon as the starter has reported its end. */
  readonly isRunning: () => boolean;
  /** Has no effect after the program's end. */
  readonly signal: (signal: "SIGTERM" | "SIGKILL") => void;
  readonly ended: Promise<End>;
  /** Kills it, without waiting. Also for a program whose start is not awaited any more. */
  readonly abandon: () => void;
}

/** The program could not be started. `code` is the system's, such as ENOENT. */
export class StartError extends Error {
  readonly code: string;
  constructor(program: string, code: string) {
    super(`${program} could not be started (${code})`);
    this.code = code;
  }
}

interface Task {
  readonly start: Start;
  readonly sockets: Map<number, Socket>;
  pid: number | null;
  isOver: boolean;
  isAbandoned: boolean;
  readonly started: PromiseWithResolvers<void>;
  readonly ended: PromiseWithResolvers<End>;
}

interface Starter {
  readonly process: ChildProcess;
  readonly tasks: Map<number, Task>;
}

const PROGRAM = join(import.meta.dirname, "program.mjs");
/** Each connection begins with this many bytes: the task's id and the descriptor. */
const HEAD_BYTES = 16;
/** Pending connections: three or four for each program that is being started. */
const BACKLOG = 4096;

/** A short program's end may be reported before its connections arrive. */
const proceed = (tasks: Map<number, Task>, id: number, task: Task): void => {
  if (task.sockets.size < task.start.descriptors.length) return;
  if (task.pid !== null) task.started.resolve();
  if (task.isOver) tasks.delete(id);
};

/** Gives a new connection to its task. @param onReceived called after that */
const receive = (tasks: Map<number, Task>, socket: Socket, onReceived: () => void): void => {
  // A pipe breaks when the program ends. Its exit code explains why.
  socket.on("error", () => undefined);
  const read = (): void => {
    const head: Buffer | null = socket.read(HEAD_BYTES);
    if (head === null) return;
    socket.off("readable", read);
    const [id = 0, descriptor = 0] = head.toString("latin1").trim().split(" ").map(Number);
    const task = tasks.get(id);
    if (task === undefined) return void socket.destroy();
    task.sockets.set(descriptor, socket);
    proceed(tasks, id, task);
    onReceived();
  };
  socket.on("readable", read);
};

const fail = (task: Task, code: string): void => {
  for (const socket of task.sockets.values()) socket.destroy();
  task.started.reject(new StartError(task.start.program, code));
};

/** The starter has died, and with it all that could reap or signal its programs. */
const lose = (task: Task): void => {
  if (task.pid !== null && !task.isOver && task.start.graceMs !== null) {
    try {
      process.kill(task.start.group === "shared" ? task.pid : -task.pid, "SIGKILL");
    } catch {
      // It ended with the starter.
    }
  }
  task.isOver = true;
  fail(task, "the starter ended"); // without effect on a program that has been started
  task.ended.resolve("lost");
};

const send = (starter: ChildProcess, order: Order): void => {
  // A starter that has ended is noticed by its exit.
  if (starter.connected) starter.send(order, () => undefined);
};

const hear = ({ process: starter, tasks }: Starter, report: Report): void => {
  const { id } = report;
  const task = tasks.get(id);
  if (task === undefined) return;
  if ("failed" in report) {
    tasks.delete(id);
    return fail(task, report.failed);
  }
  if ("pid" in report) {
    task.pid = report.pid;
    if (task.isAbandoned) send(starter, { id, signal: "SIGKILL" });
  } else {
    task.isOver = true;
    task.ended.resolve({ code: report.code, signal: report.signal });
  }
  proceed(tasks, id, task);
};

let lastId = 0;
let current: Promise<Starter> | null = null;

/** Starts the starter, and waits until it can be reached. */
const startStarter = async (): Promise<Starter> => {
  const directory = mkdtempSync(join(tmpdir(), "platform-starter-"));
  const tasks = new Map<number, Task>();
  let release: (() => void) | null = null;
  // The last connection may end a task: the program's end was reported before.
  const server = createServer((socket) => receive(tasks, socket, () => release?.())).unref();
  const address = join(directory, "socket");
  server.listen({ path: address, backlog: BACKLOG });
  await once(server, "listening");
  const starter = fork(PROGRAM, [address], {
    cwd: "/",
    env: {},
    // It holds little and computes nothing.
    execArgv: ["--v8-pool-size=1", "--max-old-space-size=64"],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  release = () => hold(starter, tasks);
  starter.on("message", (report: Report) => {
    hear({ process: starter, tasks }, report);
    release?.();
  });
  let hasEnded = false;
  const end = (): void => {
    if (hasEnded) return;
    hasEnded = true;
    current = null;
    server.close();
    rmSync(directory, { recursive: true, force: true });
    for (const task of tasks.values()) lose(task);
    tasks.clear();
  };
  starter.once("exit", end).once("error", end);
  starter.unref();
  return { process: starter, tasks };
};

/** A program that outlives the service does not keep it. */
const holds = ({ start, pid }: Task): boolean => start.graceMs !== null || pid === null;

/** Keeps the service from ending while there are tasks. */
const hold = ({ channel }: ChildProcess, tasks: ReadonlyMap<number, Task>): void => {
  if ([...tasks.values()].some(holds)) channel?.ref();
  else channel?.unref();
};

const order = async (id: number, task: Task): Promise<void> => {
  current ??= startStarter().catch((error: unknown) => {
    current = null;
    throw error;
  });
  const { process: starter, tasks } = await current;
  if (task.isAbandoned) return fail(task, "abandoned");
  if (!starter.connected) return lose(task);
  tasks.set(id, task);
  hold(starter, tasks);
  send(starter, { ...task.start, id });
};

/** How long the end of the service waits for the starter, in milliseconds. Its programs have ended before. */
const END_MS = 5_000;

/** Ends the starter, and waits until it is gone. A later start starts another one. */
export const endStarter = async (): Promise<void> => {
  const starter = await current?.catch(() => null);
  const child = starter?.process;
  if (!child?.connected) return;
  const exit = once(child, "exit", { signal: AbortSignal.timeout(END_MS) });
  child.ref();
  child.disconnect();
  await exit.catch(() => undefined);
};

/** Starts a program. */
export const startProgram = (start: Start): Program => {
  lastId += 1;
  const id = lastId;
  const task: Task = {
    start,
    sockets: new Map(),
    pid: null,
    isOver: false,
    isAbandoned: false,
    started: Promise.withResolvers(),
    ended: Promise.withResolvers(),
  };
  task.started.promise.catch(() => undefined); // the caller may have left
  order(id, task).catch((error: unknown) => fail(task, String(error)));
  const signal = (name: "SIGTERM" | "SIGKILL"): void => {
    if (task.pid === null || task.isOver) return;
    current?.then(
      // Another starter does not know it.
      ({ process: starter, tasks }) => tasks.has(id) && send(starter, { id, signal: name }),
      () => undefined,
    );
  };
  return {
    started: task.started.promise,
    pid: () => task.pid ?? 0,
    sockets: task.sockets,
    isRunning: () => task.pid !== null && !task.isOver,
    signal,
    ended: task.ended.promise,
    abandon: () => {
      task.isAbandoned = true;
      for (const socket of task.sockets.values()) socket.destroy();
      signal("SIGKILL");
    },
  };
};

import * as Effect from "effect/Effect";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterEach, expect, it, vi } from "vitest";
import { runGit } from "../../src/git/run.ts";
import { endStarter, type Program, type Start, startProgram } from "../../src/starter/starter.ts";
import { WAIT_MS } from "../support/patience.ts";

const HOLDER = join(import.meta.dirname, "../support/programs/starter-holder.ts");

const BLOCKED = join(import.meta.dirname, "../support/programs/starter-blocked.ts");

const started: Program[] = [];
afterEach(() => {
  for (const program of started.splice(0)) program.abandon();
});

const start = async (script: string, rest: Partial<Start> = {}): Promise<Program> => {
  const program = startProgram({
    program: "sh",
    args: ["-c", script],
    env: { PATH: process.env["PATH"], KEPT: "kept" },
    cwd: "/",
    group: "own",
    descriptors: [0, 1, 2, 3],
    graceMs: 0,
    ...rest,
  });
  started.push(program);
  await program.started;
  return program;
};

const socketAt = (program: Program, descriptor: number) => {
  const socket = program.sockets.get(descriptor);
  if (socket === undefined) throw new Error(`descriptor ${descriptor} is not connected`);
  return socket;
};

/** The process that has started it. */
const parentOf = (pid: number): number =>
  Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
const gone = (pid: number) =>
  vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: WAIT_MS, interval: 25 });

it("connects each descriptor with the caller", async () => {
  const program = await start(
    "read word; echo out-$word; echo err >&2; read answer <&3; echo heard-$answer >&3; exit 7",
  );
  const [out, err] = [text(socketAt(program, 1)), text(socketAt(program, 2))];
  socketAt(program, 0).end("in\n");
  socketAt(program, 3).write("question\n");
  expect(await text(socketAt(program, 3))).toBe("heard-question\n");
  expect([await out, await err]).toEqual(["out-in\n", "err\n"]);
  expect(await program.ended).toEqual({ code: 7, signal: null });
  expect(program.isRunning()).toBe(false);
});

it("does not keep a process from ending whose program's end was reported before its connections", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [BLOCKED], { timeout: WAIT_MS });
  expect(stdout).toBe("done\n");
});

it("is gone when its end was waited for, and the next start starts another one", async () => {
  const program = await start("sleep 600");
  const starter = parentOf(program.pid());
  program.abandon();
  await program.ended;
  await endStarter();
  expect(existsSync(`/proc/${starter}`)).toBe(false);
  expect(await (await start("exit 3")).ended).toEqual({ code: 3, signal: null });
});

it("gives a program its three streams and the requested variables, and nothing else", async () => {
  await start("sleep 600"); // its connections are open in the starter when the next one starts
  process.env["PLATFORM_CANARY"] = "canary";
  const list =
    "for each in /proc/$$/fd/*; do echo ${each##*/} $(readlink $each); done; tr '\\0' '\\n' < /proc/$$/environ";
  const program = await start(list, { descriptors: [1, 2] });
  delete process.env["PLATFORM_CANARY"];
  const lines = (await text(socketAt(program, 1))).trimEnd().split("\n");
  expect(lines[0]).toBe("0 /dev/null");
  expect(
    lines.filter((line) => /^\d+ (?:socket|anon_inode):/.test(line)).map((line) => line.split(":")[0]),
  ).toEqual(["1 socket", "2 socket"]);
  expect(lines.filter((line) => line.includes("="))).toEqual([`PATH=${process.env["PATH"]}`, "KEPT=kept"]);
});

it("signals the whole group of a program, and of a shared one only itself", async () => {
  const own = await start("sleep 600 & echo $!; wait");
  const child = Number((await once(createInterface(socketAt(own, 1)), "line"))[0]);
  own.signal("SIGTERM");
  expect(await own.ended).toEqual({ code: null, signal: "SIGTERM" });
  await gone(child);
  const shared = await start("trap '' TERM; echo ready; cat", { group: "shared" });
  await once(createInterface(socketAt(shared, 1)), "line");
  expect(readFileSync(`/proc/${shared.pid()}/stat`, "utf8").split(" ")[5]).toBe(
    readFileSync("/proc/self/stat", "utf8").split(" ")[5],
  );
  shared.signal("SIGKILL");
  expect(await shared.ended).toEqual({ code: null, signal: "SIGKILL" });
});

it("names the reason if a program cannot be started", async () => {
  await expect(start("", { program: "no-such-program" })).rejects.toMatchObject({ code: "ENOENT" });
  await expect(start("", { cwd: "/no/such/directory" })).rejects.toMatchObject({ code: "ENOENT" });
});

it("gives a program its files as descriptors, and makes a log file", async () => {
  const directory = mkdtempSync(join(tmpdir(), "platform-test-starter-"));
  try {
    const [log, filter] = [join(directory, "log"), join(directory, "filter")];
    writeFileSync(filter, "a filter");
    const files = [
      { descriptor: 1, path: log, flags: "a" },
      { descriptor: 2, path: log, flags: "a" },
      { descriptor: 4, path: filter, flags: "r" },
    ] as const;
    const program = await start("echo out; echo err >&2; cat <&4 >&3", { descriptors: [0, 3], files });
    expect(await text(socketAt(program, 3))).toBe("a filter");
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(readFileSync(log, "utf8")).toBe("out\nerr\n");
    expect(statSync(log).mode & 0o777).toBe(0o600);
    const missing = [{ descriptor: 4, path: join(directory, "missing"), flags: "r" }] as const;
    await expect(start("exit 0", { files: missing })).rejects.toMatchObject({ code: "ENOENT" });
    // The starter has survived that.
    expect(await (await start("exit 3")).ended).toEqual({ code: 3, signal: null });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

it.skipIf(process.getuid?.() !== 0)("starts a program as another user (needs root)", async () => {
  const program = await start("id -u; id -g; id -G", { descriptors: [1], user: 12_345 });
  expect(await text(socketAt(program, 1))).toBe("12345\n12345\n12345\n");
});

it("leaves a program alone that outlives the service, and says that its end is not known", async () => {
  const lasting = await start("trap '' TERM; echo ready; sleep 600", { graceMs: null });
  await once(createInterface(socketAt(lasting, 1)), "line");
  process.kill(parentOf(lasting.pid()), "SIGKILL");
  expect(await lasting.ended).toBe("lost");
  const other = await start("trap '' TERM; echo ready; sleep 600", { graceMs: null });
  await once(createInterface(socketAt(other, 1)), "line");
  const starter = parentOf(other.pid());
  await endStarter(); // it does not wait for the program
  expect(existsSync(`/proc/${starter}`)).toBe(false);
  expect([lasting.pid(), other.pid()].filter(isAlive)).toEqual([lasting.pid(), other.pid()]);
  for (const program of [lasting, other]) process.kill(-program.pid(), "SIGKILL");
  await Promise.all([lasting, other].map((program) => gone(program.pid())));
});

it("does not keep a process from ending whose program outlives it", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [HOLDER, "lasting"], { timeout: WAIT_MS });
  const pid = Number(stdout);
  expect(isAlive(pid)).toBe(true);
  process.kill(-pid, "SIGKILL");
  await gone(pid);
});

it("kills the programs of a starter that dies, says that they are lost, and starts another one", async () => {
  const lost = await start("sleep 600");
  const starter = parentOf(lost.pid());
  const alias = "alias.wait=!sleep 600";
  const running = Effect.runPromise(Effect.flip(runGit({ repository: null, args: ["-c", alias, "wait"] })));
  const child = (await start("sleep 600")).pid();
  process.kill(starter, "SIGKILL");
  expect(await lost.ended).toBe("lost");
  expect((await running).message).toBe("git -c was ended, because the process that starts git has died.");
  await Promise.all([gone(lost.pid()), gone(child)]);
  const next = await start("exit 0");
  expect(await next.ended).toEqual({ code: 0, signal: null });
});

it("does not wait beyond the deadline for a starter that stands still, and leaves no program behind", async () => {
  const witness = await start("sleep 600");
  const starter = parentOf(witness.pid());
  process.kill(starter, "SIGSTOP");
  try {
    const error = await Effect.runPromise(
      Effect.flip(
        runGit({ repository: null, args: ["-c", "alias.wait=!sleep 600", "wait"], deadlineMs: 50 }),
      ),
    );
    expect(error.code).toBe("timeout");
  } finally {
    process.kill(starter, "SIGCONT");
  }
  const children = () => readFileSync(`/proc/${starter}/task/${starter}/children`, "utf8").trim();
  expect(await (await start("exit 0")).ended).toEqual({ code: 0, signal: null }); // the starter has got as far as here
  await vi.waitFor(() => expect(children()).toBe(String(witness.pid())), { timeout: WAIT_MS, interval: 25 });
});

it("is not ended by signals for the service's whole group", async () => {
  const program = await start("cat");
  const starter = parentOf(program.pid());
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(starter, signal);
  const next = await start("exit 3");
  expect(await next.ended).toEqual({ code: 3, signal: null });
  expect(parentOf(program.pid())).toBe(starter);
});

it("leaves no program, no starter and no directory of a service that is killed", async () => {
  const holder = spawn(process.execPath, [HOLDER], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(holder.stdout), "line");
  const pid = Number(line);
  const starter = parentOf(pid);
  const address =
    readFileSync(`/proc/${starter}/cmdline`, "utf8")
      .split("\0")
      .find((word) => word.endsWith("/socket")) ?? "";
  expect(readdirSync(join(address, ".."))).toEqual(["socket"]);
  holder.kill("SIGKILL");
  await Promise.all([gone(pid), gone(starter)]);
  expect(existsSync(join(address, ".."))).toBe(false);
});

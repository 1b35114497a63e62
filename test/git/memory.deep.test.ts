/**
 * What the service's own process takes of the machine's memory while 500 MiB that do not pack pass through its git endpoint,
 * into and out of a repository of its own and one of another server's (smart-http.ts H1: nothing is buffered). The gits it
 * starts have bounds of their own (git/run.ts) and are not counted.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fill, sizeOf } from "../bench/git/repositories.ts";
import { Installation, TOKEN, type Life } from "../support/service/process-service.ts";
import { gitOk } from "./git-client.ts";
import { startUpstream, type UpstreamServer } from "./external/upstream-server.ts";
import { TEST_MS } from "../support/patience.ts";

/**
 * Above its memory right after the start: bytes in transfer, and uncollected ones. A body that is held in memory has
 * five hundred.
 */
const BOUND_MIB = 250;
const MIB = 1024 ** 2;
const SLOW_MIB = 20;
const SETUP_MS = 2 * TEST_MS;

let installation: Installation;
let life: Life;
let upstream: UpstreamServer;
let idleMib = 0;
const root = mkdtempSync(path.join(tmpdir(), "memory-"));
const source = path.join(root, "source.git");
const kept = path.join(root, "kept.git");

const residentMib = (figure: "VmHWM" | "VmRSS"): number => {
  const status = readFileSync(`/proc/${life.pid}/status`, "utf8");
  const [, kib] = new RegExp(`^${figure}:\\s+(\\d+) kB$`, "m").exec(status) ?? [];
  return Math.round(Number(kib) / 1024);
};

beforeAll(async () => {
  upstream = await startUpstream(root);
  for (const bare of [source, kept])
    await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
  await fill(source, sizeOf("large", 100));
  const first = await gitOk(
    source,
    "commit-tree",
    "-m",
    "Begin",
    await gitOk(source, "hash-object", "-w", "-t", "tree", "/dev/null"),
  );
  await gitOk(source, "push", "--quiet", kept, `${first}:refs/heads/main`);
  installation = await Installation.open();
  life = await installation.start({
    PLATFORM_SANDBOX_PROVIDER: "simulated",
    PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1",
  });
  idleMib = residentMib("VmRSS");
}, SETUP_MS);
afterAll(async () => {
  await life?.end("SIGTERM");
  await installation?.close();
  await upstream?.close();
  rmSync(root, { recursive: true, force: true });
}, SETUP_MS);

/** Does the work and says how large the process was at most meanwhile, in MiB above what it began with. */
const grownBy = async (what: string, work: () => Promise<unknown>): Promise<number> => {
  writeFileSync(`/proc/${life.pid}/clear_refs`, "5"); // The peak begins anew.
  const began = performance.now();
  await work();
  const grown = residentMib("VmHWM") - idleMib;
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  process.stderr.write(`${what}: ${grown} MiB above ${idleMib}, ${seconds} s\n`);
  return grown;
};

const remote = (pid: string): string => `${life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${pid}.git`;

const packet = (text: string): string => `${(text.length + 4).toString(16).padStart(4, "0")}${text}`;

/** Reads a fetch's answer at 1 MiB a second, and leaves before its end. @returns the bytes that were read. */
const fetchSlowly = (pid: string, commit: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const asked = request(
      `${life.url}/v1/git/${pid}.git/git-upload-pack`,
      {
        method: "POST",
        auth: `x:${TOKEN}`,
        headers: { "content-type": "application/x-git-upload-pack-request" },
      },
      (answer) => {
        const read = async () => {
          let bytes = 0;
          for await (const chunk of answer as AsyncIterable<Buffer>) {
            bytes += chunk.length;
            if (bytes >= SLOW_MIB * MIB) break;
            await delay((chunk.length / MIB) * 1000); // The pace is the case.
          }
          return bytes;
        };
        read().then(resolve, reject);
      },
    );
    asked.on("error", reject);
    asked.end(`${packet(`want ${commit} side-band-64k ofs-delta\n`)}0000${packet("done\n")}`);
  });

const KINDS = ["hosted", "git"] as const;

describe.each(KINDS)("the service, with a repository of the kind %s", (kind) => {
  let pid = "";
  let commit = "";
  beforeAll(async () => {
    const { origin, username, password } = upstream;
    const repository = kind === "hosted" ? { kind } : { kind, url: `${origin}/kept.git`, username, password };
    pid = String((await life.call("POST", "/v1/projects", { name: kind, repository }))["id"]);
    commit = await gitOk(source, "rev-parse", "main");
  });

  it("receives a push of 500 MiB within its memory limit", async () => {
    const grown = await grownBy(`push, ${kind}`, () =>
      gitOk(source, "push", "--quiet", remote(pid), "main:refs/heads/large"),
    );
    expect(await gitOk(root, "ls-remote", remote(pid), "refs/heads/large")).toContain(commit);
    expect(grown).toBeLessThan(BOUND_MIB);
  });

  it("serves a clone of 500 MiB within its memory limit", async () => {
    const clone = path.join(root, `clone-${kind}.git`);
    mkdirSync(clone);
    const grown = await grownBy(`clone, ${kind}`, () =>
      gitOk(clone, "clone", "--quiet", "--bare", "--single-branch", "--branch", "large", remote(pid), "."),
    );
    expect(await gitOk(clone, "rev-parse", "large")).toBe(commit);
    rmSync(clone, { recursive: true });
    expect(grown).toBeLessThan(BOUND_MIB);
  });

  it("holds little memory for a client that reads 1 MiB a second", async () => {
    let bytes = 0;
    const grown = await grownBy(`slow reader, ${kind}`, async () => {
      bytes = await fetchSlowly(pid, commit);
    });
    expect(bytes).toBeGreaterThanOrEqual(SLOW_MIB * MIB);
    expect(grown).toBeLessThan(BOUND_MIB);
  });
});

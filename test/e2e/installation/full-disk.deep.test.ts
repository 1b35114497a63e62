/** A service whose data directory is on a full disk: its answers, the operator's commands, and the next start. */
import { execFileSync, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Installation, TOKEN, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

const SIMULATED = { PLATFORM_SANDBOX_PROVIDER: "simulated" };
const CLI = path.join(import.meta.dirname, "../../../src/operator.ts");
const isRoot = process.geteuid?.() === 0;

let installation: Installation;
let life: Life;

const fillers = () => path.join(installation.dataDir, "fillers");
/** Takes what the disk has left. */
const fill = () => {
  mkdirSync(fillers(), { recursive: true });
  const { bavail, bsize } = statfsSync(installation.dataDir);
  if (bavail > 0)
    execFileSync("fallocate", ["-l", String(bavail * bsize), path.join(fillers(), randomUUID())]);
};

const asked = async (method: string, target: string, body?: object) => {
  const answer = await fetch(life.url + target, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const project = (name: string) => asked("POST", "/v1/projects", { name, repository: { kind: "hosted" } });

const platform = (...args: readonly string[]) =>
  spawnSync(process.execPath, [CLI, ...args], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"] ?? "", PLATFORM_DATA_DIR: installation.dataDir },
  });

describe.runIf(isRoot)("a service with a full disk", () => {
  beforeAll(async () => {
    installation = await Installation.open();
    mkdirSync(installation.dataDir);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=400m", "tmpfs", installation.dataDir]);
    life = await installation.start(SIMULATED);
    expect((await project("before")).status).toBe(201);
    fill();
  }, TEST_MS);
  afterAll(async () => {
    await life.end("SIGTERM").catch(() => undefined);
    execFileSync("umount", ["--lazy", installation.dataDir]);
    await installation.close();
  }, TEST_MS);

  it("still reads, and refuses to write with a 503 that names the disk", async () => {
    const list = await asked("GET", "/v1/projects");
    expect([list.status, (list.body["projects"] as readonly unknown[]).length]).toEqual([200, 1]);
    const refused = await project("during");
    expect(refused).toMatchObject({
      status: 503,
      body: { code: expect.stringMatching(/^(disk_full|database_unavailable)$/) },
    });
    expect(refused.body["error"]).toMatch(/disk .*is full/);
    const { body } = await asked("GET", "/v1/operator");
    expect(body["problems"]).toContainEqual(expect.objectContaining({ code: "disk_scarce" }));
  });

  it("can be examined and backed up to another disk, and no command leaves a file on the full one", () => {
    const file = path.join(installation.directory, "kept.backup");
    expect(platform("backup", file)).toMatchObject({ status: 0, stderr: "" });
    expect(existsSync(file)).toBe(true);
    expect(readdirSync(installation.dataDir).filter((name) => name.endsWith(".new"))).toEqual([]);
  });

  it("cannot start again, says that the disk is full, and leaves no file of the try", async () => {
    await life.end("SIGTERM");
    fill();
    await expect(installation.start(SIMULATED)).rejects.toThrow(/The disk of .* is full/);
    expect(readdirSync(installation.dataDir).filter((name) => name.startsWith("owner"))).toEqual([]);
  });

  it("works again as soon as there is space", async () => {
    rmSync(fillers(), { recursive: true });
    life = await installation.start(SIMULATED);
    expect((await project("after")).status).toBe(201);
  });
});

/** Saved work that is large, that changes while it is read, or that finds no room: it comes back, or it is named. */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, statfsSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life, LIGHT_AGENT } from "../../support/service/process-service.ts";

/** Large work has to be written, stored and brought back within this time, ms. */
const LARGE_MS = 6 * TEST_MS;

const stop = (session: LiveSession): Promise<Json> => session.call("POST", "stop", { save: "require" });

/** Stops as a person does who chooses to wait each time: what was stored stays, and the next try has less to do. */
const stopAtLast = async (
  session: LiveSession,
): Promise<{ readonly answer: Json; readonly tries: number }> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return { answer: await stop(session), tries };
    } catch (error) {
      if (!String(error).includes("not_saved") || tries > 9) throw error;
    }
  }
};

const again = async (session: LiveSession): Promise<Json> => {
  await session.call("POST", "restart", { restore_saved: true });
  const [, , , projectId = "", , id = ""] = session.path.split("/");
  const running = await session.life.session(projectId, id, ["running", "failed"]);
  expect(running["status"], JSON.stringify(running["failure"])).toBe("running");
  return running;
};

const seconds = (from: number): string => `${((performance.now() - from) / 1000).toFixed(1)} s`;

describe.skipIf(!sandboxesStartHere)("large saved work", () => {
  let installation: Installation;
  let life: Life;
  let projectId = "";
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start(LIGHT_AGENT);
    projectId = await life.project(installation.sample);
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  it.each([
    {
      name: "100,000 small files",
      write: "mkdir many && cd many && seq 100000 | split -l 1 -a 5 -d - f",
      digest: "(cd many && ls | wc -l && cat * | sha1sum)",
      files: 100_000,
    },
    {
      name: "1 GB in ten files",
      write: "for n in 0 1 2 3 4 5 6 7 8 9; do head -c 100000000 /dev/urandom > large$n; done",
      digest: "sha1sum large?",
      files: 10,
    },
  ])("comes back: $name", { timeout: LARGE_MS }, async ({ name, write, digest, files }) => {
    const session = await LiveSession.startIn(life, projectId);
    await session.run(`(${write}) && ${digest} > .git/digest && cp .git/digest digest.txt`);
    const stopped = performance.now();
    const { answer, tries } = await stopAtLast(session);
    process.stdout.write(`${name}: saved in ${seconds(stopped)}, ${tries} tries\n`);
    expect(answer["saved"]).toMatchObject({ state: "complete", files: files + 1, pending: [] });
    const restarted = performance.now();
    expect((await again(session))["restored"]).toMatchObject({ files: files + 1, error: null });
    process.stdout.write(`${name}: back in ${seconds(restarted)}\n`);
    await session.run(`[ ! -e .git/digest ] && ${digest} | cmp - digest.txt`);
    await session.call("POST", "stop", { save: "skip" });
  });

  it("of which a file never rests names that file, and has the others", { timeout: TEST_MS }, async () => {
    const session = await LiveSession.startIn(life, projectId);
    await session.run(
      "echo calm > calm.txt; head -c 60000000 /dev/urandom > restless.bin; " +
        "setsid sh -c 'while :; do date +%N | dd of=restless.bin conv=notrunc status=none; done' > /dev/null 2>&1 &",
    );
    const answer = await stop(session).catch(String);
    // Whether the file rests for long enough is up to the processor. The answer has to be true of it.
    if (typeof answer === "string") expect(answer).toContain('"path":"restless.bin"');
    const { saved } = await session.call("POST", "stop", { save: "try" });
    const pending = ((saved as Json)["pending"] as readonly Json[]).map((left) => left["path"]);
    expect(["", "restless.bin"]).toContain(pending.join());
    await again(session);
    await session.run(`grep -qx calm calm.txt && [ ${pending.length === 0 ? "" : "!"} -e restless.bin ]`);
    await session.call("POST", "stop", { save: "skip" });
  });
});

describe.skipIf(!sandboxesStartHere || process.geteuid?.() !== 0)("saved work on a full disk", () => {
  let installation: Installation;
  let life: Life;
  const filler = (): string => path.join(installation.dataDir, "filler");
  beforeAll(async () => {
    installation = await Installation.open();
    mkdirSync(installation.dataDir);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=600m", "tmpfs", installation.dataDir]);
    life = await installation.start({ ...LIGHT_AGENT, PLATFORM_SANDBOX_DISK_MB: "64" });
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    execFileSync("umount", ["--lazy", installation.dataDir]);
    await installation?.close();
  }, TEST_MS);

  it(
    "of the service keeps the session running, says so, and is complete once there is room",
    { timeout: TEST_MS },
    async () => {
      const session = await LiveSession.start(life, installation);
      await session.run("echo kept > kept.txt");
      const { bavail, blocks, bsize } = statfsSync(installation.dataDir);
      execFileSync("fallocate", ["-l", String((bavail - Math.floor(blocks * 0.05)) * bsize), filler()]);
      const refused = await stop(session).catch(String);
      expect(refused).toContain("not_saved");
      expect(refused).toContain("almost full");
      expect((await life.call("GET", session.path))["status"]).toBe("running");
      rmSync(filler());
      expect((await stop(session))["saved"]).toMatchObject({ state: "complete", files: 1 });
      await again(session);
      await session.run("grep -qx kept kept.txt");
      await session.call("POST", "stop", { save: "skip" });
    },
  );

  it("of the sandbox has what the last save had", { timeout: TEST_MS }, async () => {
    const session = await LiveSession.start(life, installation);
    await session.run("echo early > early.txt");
    await session.call("POST", "stop", { save: "require" });
    await again(session);
    await session
      .run("echo late > late.txt; head -c 100000000 /dev/urandom > huge.bin")
      .catch(() => undefined);
    await vi.waitFor(
      async () => {
        expect(await life.call("GET", session.path)).toMatchObject({
          status: "failed",
          failure: { code: "disk_exceeded" },
        });
      },
      { timeout: WAIT_MS, interval: 100 },
    );
    const { restored } = await again(session);
    expect(restored).toMatchObject({ error: null });
    await session.run("grep -qx early early.txt && [ ! -e huge.bin ]");
    await session.call("POST", "stop", { save: "skip" });
  });
});

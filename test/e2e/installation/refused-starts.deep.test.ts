/** Starts that the machine refuses: the operator reads which setting and directory it is about. No secret is in it. */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Installation } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

const SIMULATED = { PLATFORM_SANDBOX_PROVIDER: "simulated" };
const isRoot = process.geteuid?.() === 0;

let installation: Installation;
beforeAll(async () => {
  installation = await Installation.open();
});
afterAll(() => installation.close());

describe("a start is refused", () => {
  it(
    "without a reachable Postgres, and the message names DATABASE_URL and the host but not the password",
    async () => {
      const DATABASE_URL = "postgres://user:canary@127.0.0.1:1/platform";
      const refusal = await installation
        .start({ ...SIMULATED, DATABASE_URL, PLATFORM_MASTER_KEY: "0".repeat(64) })
        .catch(String);
      expect(refusal).toContain(
        "The database that DATABASE_URL names (127.0.0.1:1/platform) cannot be used: connect ECONNREFUSED",
      );
      expect(refusal).not.toContain("canary");
    },
    TEST_MS,
  );

  it(
    "if files of the embedded database are missing, and the message names them and PLATFORM_DATA_DIR",
    async () => {
      const life = await installation.start(SIMULATED);
      await life.end("SIGTERM");
      const base = path.join(installation.dataDir, "postgres", "base");
      rmSync(base, { recursive: true });
      const refusal = installation.start(SIMULATED);
      await expect(refusal).rejects.toThrow(`${base} is missing; restore the installation from a backup`);
      await expect(refusal).rejects.toThrow(`${installation.dataDir}/postgres (PLATFORM_DATA_DIR)`);
      expect(existsSync(base)).toBe(false);
    },
    TEST_MS,
  );

  it.runIf(isRoot)(
    "on a full disk, and the message names the directory and PLATFORM_DATA_DIR",
    async () => {
      const small = path.join(installation.directory, "small");
      mkdirSync(small);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", small]);
      try {
        const dataDir = path.join(small, "data");
        const refusal = installation.start({ ...SIMULATED, PLATFORM_DATA_DIR: dataDir });
        await expect(refusal).rejects.toThrow(`${dataDir}/postgres (PLATFORM_DATA_DIR)`);
        await expect(refusal).rejects.toThrow(`The disk of ${dataDir} is full`);
      } finally {
        execFileSync("umount", [small]);
      }
    },
    TEST_MS,
  );
});

describe("the first token", () => {
  it(
    "is in a file that only its owner may read if there is no terminal, and not in the log [I16]",
    async () => {
      const place = await Installation.open();
      try {
        let log = "";
        const life = await place.start({ ...SIMULATED, PLATFORM_BOOTSTRAP_TOKEN: "" }, "plain", (child) => {
          child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
        });
        const file = path.join(place.dataDir, "first-token");
        const token = readFileSync(file, "utf8").trim();
        const answer = await fetch(`${life.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
        expect([answer.status, statSync(file).mode & 0o777]).toEqual([200, 0o600]);
        expect(await life.end("SIGTERM")).toBe(0);
        expect(log).toContain(file);
        expect(log).not.toContain("platform_pat_");
      } finally {
        await place.close();
      }
    },
    TEST_MS,
  );
});

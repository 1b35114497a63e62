/** The whole service starts on what earlier versions left behind (README.md). */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import * as Effect from "effect/Effect";
import { afterEach, describe, expect, it } from "vitest";
import { restore } from "../../src/installation/operator/backup/restore.ts";
import { TEST_MS } from "../support/patience.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { Installation, type Json, type Life, LIGHT_AGENT } from "../support/service/process-service.ts";
import { sampled } from "../support/vitest/rings.ts";
import { daemonSocket, readExchanges, RecordedDaemon } from "./exchanges.ts";

const STATES = path.join(import.meta.dirname, "states");
const SIMULATED = { PLATFORM_SANDBOX_PROVIDER: "simulated" };

const installations: Installation[] = [];
afterEach(async () => {
  for (const installation of installations.splice(0)) await installation.close();
}, TEST_MS);
const open = async (): Promise<Installation> => {
  const installation = await Installation.open();
  installations.push(installation);
  return installation;
};

const unpack = (dataDir: string): void => {
  const archive = `${dataDir}.tar`;
  writeFileSync(archive, zstdDecompressSync(readFileSync(path.join(STATES, "before.tar.zst"))));
  mkdirSync(dataDir, { mode: 0o700 });
  execFileSync("tar", ["-x", "-f", archive, "-C", dataDir]);
  rmSync(archive);
};

const restoreInto = (state: string, dataDir: string, masterKey: string | null = null) =>
  Effect.runPromise(
    Effect.scoped(
      restore({ dataDir, file: path.join(STATES, `${state}.backup`), masterKey, takeOver: true }),
    ),
  );

const itemsOf = async (life: Life, at: string): Promise<readonly Json[]> =>
  (await life.call("GET", `${at}/conversation`))["items"] as readonly Json[];
const textsOf = (items: readonly Json[], kind: string): readonly unknown[] =>
  items.flatMap((item) =>
    item["kind"] === kind ? (item["content"] as readonly Json[]).map(({ text }) => text) : [],
  );

/** Fills a data directory. The restored states are migrated and read in states.test.ts, and a restored backup is started in test/e2e. */
const LEFT: Readonly<Record<string, (dataDir: string) => Promise<unknown>>> = {
  "a backup of the first state": (dataDir) => restoreInto("0001", dataDir),
  "a backup whose migrations have a gap": (dataDir) => restoreInto("0005_without_0003_0004", dataDir),
  "a data directory from before the baseline": async (dataDir) => unpack(dataDir),
};

describe("a restore", () => {
  it(
    "is refused with another master key, which the start would refuse, and leaves nothing",
    async () => {
      const { dataDir } = await open();
      await expect(restoreInto("0001", dataDir, "0".repeat(64))).rejects.toMatchObject({
        message: expect.stringMatching(
          /0001\.backup cannot be restored: PLATFORM_MASTER_KEY is not the key of this database's secrets/,
        ),
      });
      expect(existsSync(dataDir)).toBe(false);
    },
    TEST_MS,
  );
});

describe("this version starts on", () => {
  it.each(sampled(Object.keys(LEFT), ["a data directory from before the baseline"]))(
    "%s, and serves its sessions, its conversations and its repository",
    async (left) => {
      const installation = await open();
      await LEFT[left]?.(installation.dataDir);
      const life = await installation.start(SIMULATED);
      const { projects } = await life.call("GET", "/v1/projects");
      const [project] = projects as readonly Json[];
      const at = `/v1/projects/${String(project?.["id"])}`;
      const sessions = await life.everyPage<Json>(`${at}/sessions`, "sessions");
      expect(sessions).toHaveLength(2);
      const fired = sessions.find(({ trigger_slug: slug }) => slug === "hook");
      const items = await itemsOf(life, `${at}/sessions/${String(fired?.["id"])}`);
      expect(textsOf(items, "message")).toContain("write hooked.txt: from a webhook");
      expect(await life.text(`${at}/change-requests/1/diff`)).toContain("+from a webhook");
      expect(await life.end("SIGTERM")).toBe(0);
    },
    TEST_MS,
  );
});

describe.skipIf(!sandboxesStartHere)("a session whose sandbox runs during an upgrade", () => {
  it(
    "is saved and stopped if its daemon is too old, says so, and starts again with the message that waits",
    async () => {
      const installation = await open();
      // A recorded daemon takes the place of this sandbox's, so its agent has no turn.
      const before = await installation.start(LIGHT_AGENT);
      const pid = await before.project(installation.sample);
      const { id } = await before.call("POST", `/v1/projects/${pid}/sessions`, {});
      const at = `/v1/projects/${pid}/sessions/${String(id)}`;
      await before.session(pid, String(id), ["running"]);
      const sandbox = await before.call("GET", `${at}/sandbox`);
      expect(await before.end("SIGTERM")).toBe(0);
      const socket = daemonSocket(String(sandbox["id"]));
      rmSync(socket);
      await using daemon = await RecordedDaemon.start(readExchanges("protocol_0"), socket);
      const life = await installation.start();
      await life.call("POST", `${at}/messages`, { id: randomUUID(), text: "run: echo again" });
      const items = () => itemsOf(life, at);
      await expect.poll(async () => (await items()).map(({ kind }) => kind)).toContain("tool");
      expect(textsOf(await items(), "note")).toContainEqual(
        expect.stringContaining("too old for the new version"),
      );
      expect(daemon.asked).toEqual(expect.arrayContaining(["GET /platform/health", "POST /platform/save"]));
      const session = await life.call("GET", at);
      expect(session).toMatchObject({ status: "running", stop_reason: null });
      expect((await life.call("GET", `${at}/sandbox`))["id"]).not.toBe(sandbox["id"]);
      expect(await life.end("SIGTERM")).toBe(0);
    },
    TEST_MS,
  );
});

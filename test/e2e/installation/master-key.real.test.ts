/**
 * The master key of an installation: what a start does without the right one, and its replacement, killed at each step.
 * Services and commands are processes of their own; `platform admin master-key rotate` works on what they leave.
 */
import { execFile, spawnSync } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SEALED_COLUMNS } from "../../../src/assembly/database.ts";
import type { FaultPoint } from "../../../src/store/ports/faults.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { Installation, type Life, LIGHT_AGENT } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS } from "../../support/patience.ts";
import { deepTest, onlyDeep, sampled } from "../../support/vitest/rings.ts";

const CLI = path.join(import.meta.dirname, "../../../src/operator.ts");
const ARMED = path.join(import.meta.dirname, "../../support/programs/armed-rotation.ts");
const SIMULATED = { PLATFORM_SANDBOX_PROVIDER: "simulated" };
const withKey = (key: string) => ({ ...SIMULATED, PLATFORM_MASTER_KEY: key });
const SECRET = "a canary among the secrets";
const STEPS = [
  "rotation.drafted",
  "rotation.written",
  "rotation.committed",
] as const satisfies readonly FaultPoint[];
const MANIFEST = `
[[triggers]]
slug = "hook"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "{{ body.ref }}"
`;

const opened: Installation[] = [];
const lives: Life[] = [];
const scope = Effect.runSync(Scope.make());
afterAll(async () => {
  for (const life of lives) await life.end("SIGTERM");
  for (const one of opened) await one.close();
  await Effect.runPromise(Scope.close(scope, Exit.void));
}, TEST_MS);

const place = async (): Promise<Installation> => {
  const made = await Installation.open();
  opened.push(made);
  return made;
};
const started = async (of: Installation, settings: Readonly<Record<string, string>>): Promise<Life> => {
  const life = await of.start(settings);
  lives.push(life);
  return life;
};

const environmentOf = (of: Installation, settings: Readonly<Record<string, string>>) => {
  const { DATABASE_URL: _ours, ...environment } = process.env;
  return { ...environment, PLATFORM_DATA_DIR: of.dataDir, ...settings };
};
const rotate = async (
  of: Installation,
  settings: Readonly<Record<string, string>> = {},
  ...more: readonly string[]
): Promise<Record<string, unknown>> => {
  const args = [CLI, "admin", "master-key", "rotate", "--json", ...more];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: environmentOf(of, settings) });
  return JSON.parse(stdout) as Record<string, unknown>;
};
/** Kills the command with -9 at the point. */
const rotateAndDie = (
  of: Installation,
  point: FaultPoint,
  {
    settings = {},
    keyFile,
  }: { readonly settings?: Readonly<Record<string, string>>; readonly keyFile?: string } = {},
): void => {
  const args = [ARMED, point, ...(keyFile === undefined ? [] : [keyFile])];
  const { signal, stderr } = spawnSync(process.execPath, args, {
    env: environmentOf(of, settings),
    encoding: "utf8",
  });
  expect([signal, stderr]).toEqual(["SIGKILL", expect.stringContaining(`killed at ${point}`)]);
};

const keyFiles = (of: Installation): readonly string[] =>
  readdirSync(of.dataDir).filter((name) => name.startsWith("master-key"));
const keyIn = (of: Installation): string => readFileSync(path.join(of.dataDir, "master-key"), "utf8").trim();

/** A project whose webhook's secret is sealed, and a receiver's address with its signing secret. */
const furnish = async (of: Installation, life: Life): Promise<string> => {
  const projectId = await life.project(await of.repository(MANIFEST));
  await life.call("PUT", `/v1/projects/${projectId}/secrets/HOOK_SECRET`, { value: SECRET });
  const receiver = { url: "https://receiver.example.org/", events: ["queue.full"] };
  await life.call("POST", `/v1/projects/${projectId}/webhooks`, receiver);
  return projectId;
};
/** The service verifies a signature with the secret, and renews a receiver's: it opened both. */
const opensSecrets = async (life: Life, projectId: string, secret = SECRET): Promise<void> => {
  const body = JSON.stringify({ ref: randomBytes(4).toString("hex") });
  const sent = await fetch(`${life.url}/v1/webhooks/projects/${projectId}/hook`, {
    method: "POST",
    headers: { "x-platform-signature": createHmac("sha256", secret).update(body).digest("hex") },
    body,
  });
  expect(sent.status).toBe(202);
  // A new signing secret is sealed beside the address, which must be opened for that.
  const { webhooks } = await life.call("GET", `/v1/projects/${projectId}/webhooks`);
  const [receiver] = webhooks as readonly { readonly id: string }[];
  const renewed = await life.call(
    "POST",
    `/v1/projects/${projectId}/webhooks/${receiver?.id ?? ""}/rotate`,
    {},
  );
  expect(renewed["secret"]).toMatch(/^whsec_/);
};

onlyDeep(() => {
  describe("a start without the right master key", () => {
    let installation: Installation;
    let projectId = "";
    beforeAll(async () => {
      installation = await place();
      const life = await started(installation, SIMULATED);
      projectId = await furnish(installation, life);
      await life.end("SIGTERM");
    }, TEST_MS);
    const file = (name = "") => path.join(installation.dataDir, `master-key${name}`);

    it(
      "is refused if the file is missing, says what to do, and creates no other key [S08]",
      async () => {
        const aside = path.join(installation.directory, "aside");
        renameSync(file(), aside);
        const refusal = installation.start(SIMULATED);
        await expect(refusal).rejects.toThrow("The master key of this database's secrets is missing");
        await expect(refusal).rejects.toThrow(`restore the file ${file()} from a backup`);
        expect(keyFiles(installation)).toEqual([]);
        renameSync(aside, file());
        const life = await started(installation, SIMULATED);
        await opensSecrets(life, projectId);
        await life.end("SIGTERM");
      },
      TEST_MS,
    );

    it(
      "is refused if the file or the setting has another key, and names it [S08]",
      async () => {
        const wrong = randomBytes(32).toString("hex");
        const right = keyIn(installation);
        writeFileSync(file(), wrong);
        await expect(installation.start(SIMULATED)).rejects.toThrow(
          `The key in ${file()} is not the key of this database's secrets`,
        );
        expect(keyIn(installation)).toBe(wrong);
        writeFileSync(file(), right);
        await expect(installation.start({ ...SIMULATED, PLATFORM_MASTER_KEY: wrong })).rejects.toThrow(
          "PLATFORM_MASTER_KEY is not the key",
        );
        await expect(installation.start({ ...SIMULATED, PLATFORM_MASTER_KEY: "short" })).rejects.toThrow(
          "The master key in PLATFORM_MASTER_KEY must be 64 hexadecimal digits",
        );
        expect(keyFiles(installation)).toEqual(["master-key"]);
      },
      TEST_MS,
    );

    it(
      "on the database of other services names the setting that they have [S08]",
      async () => {
        const DATABASE_URL = await Effect.runPromise(Scope.provide(freshDatabase("empty"), scope));
        const key = randomBytes(32).toString("hex");
        const first = await place();
        const life = await started(first, { ...SIMULATED, DATABASE_URL, PLATFORM_MASTER_KEY: key });
        const second = await place();
        const refusal = second.start({ ...SIMULATED, DATABASE_URL });
        await expect(refusal).rejects.toThrow(
          "Set PLATFORM_MASTER_KEY to the key of the other services with this DATABASE_URL",
        );
        expect(keyFiles(second)).toEqual([]);
        expect(keyFiles(first)).toEqual([]);
        await life.end("SIGTERM");
      },
      TEST_MS,
    );
  });
});

describe("a rotation of the master key", () => {
  it(
    "encrypts everything with a new key, also previous values of secrets, and the old key decrypts nothing",
    async () => {
      const replacement = "the canary's replacement";
      const installation = await place();
      const former = () => writeFileSync(path.join(installation.directory, "former"), keyIn(installation));
      let life = await started(installation, SIMULATED);
      const projectId = await furnish(installation, life);
      await life.call("PUT", `/v1/projects/${projectId}/secrets/HOOK_SECRET`, {
        value: replacement,
        previous_valid_ms: 86_400_000,
      });
      await expect(rotate(installation)).rejects.toThrow("Stop it, then try again");
      await life.end("SIGTERM");
      former();
      expect(await rotate(installation)).toMatchObject({ version: 2, secrets: 1, key: "file" });
      life = await started(installation, SIMULATED);
      await opensSecrets(life, projectId);
      await opensSecrets(life, projectId, replacement);
      expect(await life.call("GET", "/v1/audit?action=master_key.rotated")).toMatchObject({
        events: [{ actor: { kind: "operator" }, outcome: "done", changes: { version: 2 } }],
      });
      await life.end("SIGTERM");
      copyFileSync(
        path.join(installation.directory, "former"),
        path.join(installation.dataDir, "master-key"),
      );
      await expect(installation.start(SIMULATED)).rejects.toThrow(
        "is not the key of this database's secrets",
      );
    },
    TEST_MS,
  );

  deepTest(
    "that is killed at any step leaves a service that starts and decrypts everything [S09]",
    async () => {
      const installation = await place();
      let life = await started(installation, SIMULATED);
      const projectId = await furnish(installation, life);
      await life.end("SIGTERM");
      for (const point of sampled(STEPS, ["rotation.written"])) {
        rotateAndDie(installation, point);
        const left = path.join(installation.directory, `${point}.tar.gz`);
        const env = environmentOf(installation, {});
        await promisify(execFile)(process.execPath, [CLI, "backup", left], { env });
        life = await started(installation, SIMULATED);
        await opensSecrets(life, projectId);
        await life.end("SIGTERM");
        expect(keyFiles(installation)).toEqual(["master-key"]);
      }
      rotateAndDie(installation, "rotation.committed");
      expect(await rotate(installation)).toMatchObject({ secrets: 1 });
      life = await started(installation, SIMULATED);
      await opensSecrets(life, projectId);
      await life.end("SIGTERM");
    },
    TEST_MS,
  );

  deepTest(
    "to a key that the operator keeps starts with one of the two after a kill, and reports its end [S09]",
    async () => {
      const installation = await place();
      const former = randomBytes(32).toString("hex");
      const next = randomBytes(32).toString("hex");
      const keyFile = path.join(installation.directory, "next");
      writeFileSync(keyFile, `${next}\n`);
      const settings = { PLATFORM_MASTER_KEY: former };
      let life = await started(installation, withKey(former));
      const projectId = await furnish(installation, life);
      await life.end("SIGTERM");
      await expect(rotate(installation, settings)).rejects.toThrow("--new-key-file");
      for (const point of ["rotation.drafted", "rotation.written"] as const) {
        rotateAndDie(installation, point, { settings, keyFile });
        life = await started(installation, withKey(former));
        await opensSecrets(life, projectId);
        await life.end("SIGTERM");
      }
      rotateAndDie(installation, "rotation.committed", { settings, keyFile });
      await expect(installation.start(withKey(former))).rejects.toThrow("PLATFORM_MASTER_KEY is not the key");
      expect(await rotate(installation, settings, "--new-key-file", keyFile)).toMatchObject({ version: 2 });
      life = await started(installation, withKey(next));
      await opensSecrets(life, projectId);
      await life.end("SIGTERM");
      expect(keyFiles(installation)).toEqual([]);
    },
    TEST_MS,
  );

  deepTest(
    "waits until the services of an external database are stopped",
    async () => {
      const DATABASE_URL = await Effect.runPromise(Scope.provide(freshDatabase("empty"), scope));
      const former = randomBytes(32).toString("hex");
      const installation = await place();
      const life = await started(installation, { ...SIMULATED, DATABASE_URL, PLATFORM_MASTER_KEY: former });
      const elsewhere = await place();
      const keyFile = path.join(elsewhere.directory, "next");
      writeFileSync(keyFile, randomBytes(32).toString("base64"));
      const settings = { DATABASE_URL, PLATFORM_MASTER_KEY: former };
      await expect(rotate(elsewhere, settings, "--new-key-file", keyFile)).rejects.toThrow(
        "Stop every service of this DATABASE_URL",
      );
      expect(existsSync(elsewhere.dataDir)).toBe(false);
      await life.end("SIGTERM");
    },
    TEST_MS,
  );

  it("covers every column with encrypted values", () => {
    const schema = readFileSync(path.join(import.meta.dirname, "../../../migrations/schema.sql"), "utf8");
    const found = [...schema.matchAll(/CREATE TABLE (\w+) \(([^;]*)\);/g)].flatMap(
      ([, table, columns = ""]) =>
        [...columns.matchAll(/^\s+(\w*envelope\w*) bytea/gm)].map(([, column]) => `${table}.${column}`),
    );
    expect(found.toSorted()).toEqual([...SEALED_COLUMNS]);
  });

  onlyDeep(() => {
    it.runIf(sandboxesStartHere)(
      "does not disturb running sessions: their sandboxes keep their tokens",
      async () => {
        const installation = await place();
        const settings = {
          PLATFORM_SANDBOX_PROVIDER: "local",
          ...LIGHT_AGENT,
        };
        let life = await started(installation, settings);
        const projectId = await life.project(installation.sample);
        const sessions = `/v1/projects/${projectId}/sessions`;
        const running = async (): Promise<string> => {
          const { id } = await life.call("POST", sessions, {});
          const session = await life.session(projectId, String(id), ["running", "failed"]);
          expect(session["status"]).toBe("running");
          return String(id);
        };
        const old = await running();
        for (const version of [2, 3]) {
          await life.end("SIGTERM");
          expect(await rotate(installation)).toMatchObject({ version });
          life = await started(installation, settings);
          // The daemon takes what the service signs, and the service what the sandbox shows it.
          expect(await life.call("POST", `${sessions}/${old}/runtime/push`)).toHaveProperty("commit");
        }
        const young = await running();
        expect(await life.call("POST", `${sessions}/${young}/runtime/push`)).toHaveProperty("commit");
        await life.call("POST", `${sessions}/${old}/runtime/scratch`);
        for (const id of [old, young]) await life.call("POST", `${sessions}/${id}/stop`);
        const stopped = await life.call("GET", `${sessions}/${old}`);
        expect(stopped).toMatchObject({
          status: "stopped",
          saved: { error: null, wip: expect.any(String) as string },
        });
      },
      TEST_MS,
    );
  });
});

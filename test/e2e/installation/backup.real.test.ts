/**
 * An installation is backed up while it works, restored elsewhere and started there, with the programs that an
 * operator runs. Sandboxes are simulated: the new place has no sandbox of the old one.
 */
import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFileSync, statSync, truncateSync, writeFileSync, copyFileSync } from "node:fs";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { backup } from "../../../src/installation/operator/backup/backup.ts";
import { ArchiveWriter, readEntries, entryText } from "../../../src/installation/operator/backup/archive.ts";
import { restore } from "../../../src/installation/operator/backup/restore.ts";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { startEmbedded } from "../../../src/store/postgres/embedded/embedded.ts";
import { migrate, MigrationDirectory } from "../../../src/store/postgres/migrate.ts";
import { gitOk } from "../../git/git-client.ts";
import {
  countedOf,
  emptied,
  eventually,
  filled,
  ledgerOf,
  sessionsOf,
} from "../../support/service/account-view.ts";
import { BackupLoad, pausingGit } from "../../support/service/backup-load.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { writeSavedWork } from "../../support/service/sessions/saved-work.ts";
import { unaccounted } from "../../support/webhooks/webhook-ledger.ts";
import { type RequestLog, WebhookSender } from "../../support/webhooks/webhook-sender.ts";
import { TEST_MS } from "../../support/patience.ts";
import { pausedSince, pauseSince } from "../../support/service/paused-since.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const CLI = path.join(import.meta.dirname, "../../../src/operator.ts");
const [CAP, DELIVERIES] = [10, 40] as const;
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  PLATFORM_TIER_CAPS: JSON.stringify({ free: CAP }),
};
const SECRET = "a canary among the secrets";
const MANIFEST = `
[[triggers]]
slug = "hook"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "{{ body.ref }}"

[[triggers]]
slug = "yearly"
type = "cron"
cron = "0 0 0 1 1 *"
prompt = "A new year"
`;
let old: Installation;
let oldLife: Life;
let place: Installation;
let life: Life;
let projectId = "";
let file = "";
/** The answer to every delivery before the backup began, and the sessions that ran at that time. */
let answered: RequestLog;
let ranBefore: readonly string[] = [];
let savedIn: (dataDir: string) => Promise<unknown>;

/** The command as an operator gives it. @param programs a directory that is looked into before the others of PATH */
const platform = (
  args: readonly string[],
  { dataDir, programs = "/nonexistent" }: { readonly dataDir: string; readonly programs?: string },
) => {
  const { DATABASE_URL: _ours, ...environment } = process.env;
  const PATH = `${programs}:${environment["PATH"] ?? ""}`;
  const env = { ...environment, PATH, PLATFORM_DATA_DIR: dataDir };
  return promisify(execFile)(process.execPath, [CLI, ...args], { cwd: old.directory, env });
};
const hook = (of: Life) => `${of.url}/v1/webhooks/projects/${projectId}/hook`;
const installationId = (dataDir: string) => readFile(path.join(dataDir, "installation-id"), "utf8");
/**
 * Backs the service up while all of that goes on, also between the reading of rows and of repositories, whichever is first:
 * what a repository was given after it was read is in no row of the backup.
 */
const backupUnderLoad = async (): Promise<string> => {
  const programs = path.join(old.directory, "programs");
  const git = await pausingGit(programs);
  const load = new BackupLoad(oldLife, projectId, path.join(old.directory, "work"));
  await load.goesOn();
  const made = platform(["backup", file], { dataDir: old.dataDir, programs });
  await Promise.race([git.stands(), made]);
  await load.goesOn();
  await git.goOn();
  const { stdout } = await made;
  await load.end();
  return stdout;
};

beforeAll(async () => {
  old = await Installation.open();
  place = await Installation.open();
  file = path.join(old.directory, "backup.tar.gz");
  oldLife = await old.start(SETTINGS);
  projectId = await oldLife.project(await old.repository(MANIFEST));
  await oldLife.call("PUT", `/v1/projects/${projectId}/secrets/HOOK_SECRET`, { value: SECRET });
  const held = await filled(oldLife, projectId, CAP);
  await eventually(async () => {
    const sessions = await sessionsOf(oldLife, projectId);
    expect(sessions.filter(({ status }) => status === "running")).toHaveLength(held.length);
  });
  ranBefore = held;
  savedIn = await writeSavedWork(old.dataDir, { projectId, sessionId: held[0] ?? "" });
  answered = await new WebhookSender({
    url: hook(oldLife),
    secret: SECRET,
    deliveries: DELIVERIES,
    duplicateShare: 0,
    burst: 1,
    concurrency: 8,
    random: () => 0.5,
    whenUp: () => Promise.resolve(),
  }).send();
}, TEST_MS);
afterAll(async () => {
  for (const one of [oldLife, life]) await one?.end("SIGTERM");
  for (const one of [old, place]) await one?.close();
}, TEST_MS);

describe("a backup of a running service under load", () => {
  it(
    "is one file that only its owner may read, and contains no secret in plain text [S10]",
    async () => {
      expect(await backupUnderLoad()).toContain("It contains the master key");
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(gunzipSync(readFileSync(file)).includes(SECRET)).toBe(false);
      await expect(platform(["backup", file], { dataDir: old.dataDir })).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining("already exists") as string,
      });
    },
    TEST_MS,
  );

  it(
    "is restored elsewhere with saved work, and with every branch that a session or a change request names",
    async () => {
      const { stdout } = await platform(["restore", file], { dataDir: place.dataDir });
      expect(stdout).toContain("1 repository");
      life = await place.start(SETTINGS);
      expect(JSON.parse(await life.text("/readyz"))).toMatchObject({ paused: true });
      expect((await fetch(hook(life), { method: "POST", body: "{}" })).status).toBe(503);
      const resumed = await platform(["admin", "resume"], { dataDir: place.dataDir });
      expect(resumed.stdout).toContain("The pause has ended.");
      await eventually(async () => expect(await life.text("/readyz")).toContain('"paused":false'));
      expect(await savedIn(place.dataDir)).toEqual([["a.txt"], ["not pushed"]]);
      const repository = path.join(place.dataDir, "repositories", `${projectId}.git`);
      const listed = await gitOk(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads/");
      const branches = new Set(listed.split("\n"));
      const sessions = (await sessionsOf(life, projectId)) as readonly {
        readonly id: string;
        readonly running_at?: string | null;
      }[];
      const ran = sessions.filter(({ running_at: at }) => at !== null);
      expect(ran.length).toBeGreaterThan(CAP);
      expect(ran.filter(({ id }) => !branches.has(id))).toEqual([]);
      const target = `/v1/projects/${projectId}/change-requests`;
      const proposed = await life.everyPage<{ number: number; head_ref: string }>(target, "change_requests");
      expect(proposed.length).toBeGreaterThan(0);
      for (const { number, head_ref: head } of proposed) {
        expect(branches).toContain(head);
        expect(await life.call("GET", `${target}/${number}`)).toMatchObject({ mergeable: true });
      }
    },
    TEST_MS,
  );

  deepTest(
    "does not move sandboxes: their sessions are lost in the restored service and continue in the original",
    async () => {
      await eventually(async () => {
        const sessions = (await sessionsOf(life, projectId)) as readonly {
          readonly id: string;
          readonly status: string;
          readonly failure?: { readonly code: string } | null;
        }[];
        const former = sessions.filter(({ id }) => ranBefore.includes(id));
        expect(former).toHaveLength(CAP);
        const ends = former.map(({ status, failure }) => failure?.code ?? status);
        expect(ends.filter((end) => end !== "stopped" && end !== "sandbox_lost")).toEqual([]);
        expect(ends).toContain("sandbox_lost");
      });
      const running = await sessionsOf(oldLife, projectId);
      expect(running.filter(({ status }) => status === "running").length).toBeGreaterThan(0);
    },
    TEST_MS,
  );

  deepTest(
    "has everything accepted before it: each delivery once, queued ones start, counters and rows agree [I1, I4, I5]",
    async () => {
      expect(unaccounted(answered, await ledgerOf(life, projectId))).toEqual([]);
      const { said, counted, waiting } = await countedOf(life, [projectId]);
      expect(said).toEqual(counted);
      expect(waiting).toBe(said.queued);
      await emptied(life, [projectId]);
      const { fires } = await ledgerOf(life, projectId);
      expect(fires).toHaveLength(DELIVERIES);
      expect(fires.filter(({ status }) => status !== "fired")).toEqual([]);
    },
    TEST_MS,
  );

  deepTest(
    "has its triggers, and its secrets can be decrypted there",
    async () => {
      const listing = (await life.call("GET", `/v1/projects/${projectId}/triggers`)) as {
        readonly triggers: readonly { readonly slug: string; readonly last_fired_at: string | null }[];
      };
      expect(listing.triggers.map(({ slug }) => slug)).toEqual(["hook", "yearly"]);
      expect(listing.triggers[0]?.last_fired_at).not.toBeNull();
      const body = "{}";
      const signature = createHmac("sha256", SECRET).update(body).digest("hex");
      const sent = await fetch(hook(life), {
        method: "POST",
        headers: { "x-platform-signature": signature },
        body,
      });
      expect(sent.status).toBe(202);
    },
    TEST_MS,
  );

  deepTest(
    "of a stopped installation needs no running service, and the restored installation keeps its id",
    async () => {
      expect(await installationId(place.dataDir)).not.toBe(await installationId(old.dataDir));
      expect(await oldLife.end("SIGTERM")).toBe(0);
      await pauseSince(old.dataDir, 1); // as a restored copy that was not let go
      const second = path.join(old.directory, "second.tar.gz");
      await Effect.runPromise(backup({ dataDir: old.dataDir, file: second, masterKey: null }));
      const dataDir = path.join(old.directory, "taken-over");
      const { rows } = await Effect.runPromise(
        restore({ dataDir, file: second, masterKey: null, takeOver: true }),
      );
      expect(rows).toBeGreaterThan(DELIVERIES);
      expect(await installationId(dataDir)).toBe(await installationId(old.dataDir));
      expect(await pausedSince(dataDir)).toBe(null);
    },
    TEST_MS,
  );
});

/** An archive of these texts. */
const archiveOf = async (name: string, entries: Readonly<Record<string, string>>): Promise<string> => {
  const made = path.join(old.directory, name);
  const archive = new ArchiveWriter(made);
  for (const [entry, text] of Object.entries(entries)) await archive.addText(entry, text);
  await archive.finish();
  return made;
};

const manifestOfBackup = async (): Promise<Record<string, unknown>> => {
  for await (const entry of readEntries(file)) return JSON.parse(await entryText(entry));
  throw new Error("the backup is empty");
};

/** The reason why a restore into a new place is refused; it must leave no files. */
const refusalOf = async (
  from: string,
  dataDir = path.join(old.directory, "nothing-here"),
): Promise<string> => {
  const before = await readdir(old.directory);
  const error = await Effect.runPromise(
    Effect.flip(restore({ dataDir, file: from, masterKey: null, takeOver: false })),
  );
  expect(await readdir(old.directory)).toEqual(before);
  return error.message;
};

/** What a compressed file contains. Null: it is damaged. */
const contentOf = (compressed: Buffer): Buffer | null => {
  try {
    return gunzipSync(compressed);
  } catch {
    return null;
  }
};

/**
 * The file with one bit changed at the first byte from here that matters. One bit in some hundred does not: where text
 * repeats itself, it then stands for an equal text farther away, and the backup is still whole.
 */
const modified = (bytes: Buffer, from: number) => {
  const content = gunzipSync(bytes);
  for (let at = from; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ 0x10, at);
    if (contentOf(changed)?.equals(content) !== true) return { changed, at };
  }
  throw new Error("every modification leaves the content as it was");
};

describe("a restore", () => {
  deepTest(
    "refuses a file that is cut off at any position",
    async () => {
      const { size } = statSync(file);
      const cut = path.join(old.directory, "cut.tar.gz");
      for (const bytes of [0, 5, 300, Math.floor(size / 2), size - 4]) {
        copyFileSync(file, cut);
        truncateSync(cut, bytes);
        expect(await refusalOf(cut), `${bytes} bytes`).toContain("it is cut off");
      }
    },
    TEST_MS,
  );

  deepTest(
    "refuses a file with any modification of its content",
    async () => {
      const damaged = path.join(old.directory, "damaged.tar.gz");
      const bytes = readFileSync(file);
      for (const from of [100, Math.floor(bytes.length / 2), bytes.length - 6]) {
        const { changed, at } = modified(bytes, from);
        writeFileSync(damaged, changed);
        expect(await refusalOf(damaged), `byte ${at}`).toMatch(/it is (?:damaged|cut off)/);
      }
    },
    TEST_MS,
  );

  deepTest("refuses a file that is not a backup", async () => {
    const text = path.join(old.directory, "text");
    await writeFile(text, "no archive at all");
    expect(await refusalOf(text)).toContain("it is not a backup of this service");
    expect(await refusalOf(await archiveOf("foreign.tar.gz", { "a.txt": "a" }))).toContain(
      "it is not a backup of this service",
    );
  });

  deepTest("refuses a backup of a newer version, and names the version", async () => {
    const manifest = await manifestOfBackup();
    const newer = JSON.stringify({ ...manifest, format: 2, more: true });
    expect(await refusalOf(await archiveOf("format.tar.gz", { "backup.json": newer }))).toContain(
      "its format 2 is not supported by this version of the service",
    );
    const migrations = [...(manifest["migrations"] as object[]), { name: "9999_later.sql", checksum: "x" }];
    const later = JSON.stringify({ ...manifest, migrations });
    expect(await refusalOf(await archiveOf("later.tar.gz", { "backup.json": later }))).toContain(
      "migration 9999_later.sql",
    );
  });

  deepTest("refuses a backup from before the baseline, and names the commit that upgrades it", async () => {
    const migrations = [{ name: "0001_accounts.sql", checksum: "x" }];
    const older = JSON.stringify({ ...(await manifestOfBackup()), migrations });
    expect(await refusalOf(await archiveOf("older.tar.gz", { "backup.json": older }))).toMatch(
      /its last migration, 0001_accounts\.sql, is older .*commit [0-9a-f]{12} .*restore the file with it/,
    );
  });

  deepTest(
    "of an older version's backup fills that version's schema, and the next start migrates it",
    async () => {
      const later = path.join(old.directory, "later");
      await cp(fileURLToPath(new URL("../../../migrations/", import.meta.url)), later, { recursive: true });
      // A row of the older schema lacks the column.
      const change = "ALTER TABLE accounts ADD COLUMN later integer NOT NULL DEFAULT 7";
      await writeFile(path.join(later, "9998_later.sql"), `-- Why.\n${change};\n`);
      const dataDir = path.join(old.directory, "older");
      const started = Effect.gen(function* () {
        yield* restore({ dataDir, file, masterKey: null, takeOver: false });
        const { url } = yield* startEmbedded(dataDir);
        return yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient;
          expect(yield* migrate).toEqual(["9998_later.sql"]);
          return yield* sql`SELECT later FROM accounts`;
        }).pipe(Effect.provide(Client.layer({ url, maxConnections: 1 })));
      });
      const directory = pathToFileURL(`${later}/`);
      const rows = started.pipe(Effect.scoped, Effect.provideService(MigrationDirectory, directory));
      expect(await Effect.runPromise(rows)).toEqual([{ later: 7 }]);
    },
    TEST_MS,
  );

  it(
    "leaves nothing behind if it fails half-way",
    async () => {
      const manifest = JSON.stringify(await manifestOfBackup());
      const rows = JSON.stringify(["(no row of this table)"]);
      const broken = await archiveOf("rows.tar.gz", { "backup.json": manifest, "database/accounts/0": rows });
      expect(await refusalOf(broken)).toContain("Filling the database failed");
    },
    TEST_MS,
  );

  deepTest("overwrites nothing: neither a directory in use nor one that is not empty", async () => {
    expect(await refusalOf(file, place.dataDir)).toMatch(/is in use by the service with process id \d+/);
    expect(await refusalOf(file, old.dataDir)).toContain("is not empty");
  });
});

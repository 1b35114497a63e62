/** The operator's commands on the audit record, and the record's export. */
import { userInfo } from "node:os";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { auditCommands } from "../../../src/cli/commands/audit.ts";
import {
  createAccount,
  createToken,
  createUser,
  deleteToken,
  setTier,
} from "../../../src/installation/operator/accounts.ts";
import { pause, resume } from "../../../src/installation/operator/backup/resume.ts";
import { pruneMerged } from "../../../src/installation/operator/prune.ts";
import { Pauses } from "../../../src/store/ports/pauses.ts";
import { Audit } from "../../../src/store/ports/audit.ts";
import { makeProject } from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const environment = () => ({ DATABASE_URL: service.databaseUrl, PLATFORM_DATA_DIR: service.dataDir });

const FILTERS = { projectId: null, actorId: null, action: null, since: null, until: null };

/** The rows of an account, the oldest first. */
const rowsOf = (accountId: string) =>
  service.inside(
    Effect.flatMap(Audit, ({ list }) =>
      Effect.map(list({ accountId, ...FILTERS, limit: 200, cursor: null }), ({ items }) =>
        items.toReversed(),
      ),
    ),
  );

/** Since when the installation is paused. */
const since = () => service.inside(Effect.flatMap(Pauses, (pauses) => pauses.since));

describe("an operator's command", () => {
  it("pauses a copy from its next start on, and lets it go", async () => {
    await Effect.runPromise(pause(environment()));
    expect(await since()).toBeGreaterThan(0);
    expect(await Effect.runPromise(resume(environment()))).toBe(true);
    expect(await since()).toBeNull();
  });

  it("leaves one row for each change, with the name of the machine's user [T14]", async () => {
    const run = Effect.runPromise;
    const account = await run(createAccount(environment(), { name: "Team", tier: undefined }));
    const accountId = account.id;
    const user = await run(createUser(environment(), { name: "Ada", accountId, role: "owner" }));
    const wish = { name: "first", userId: user.id, projectId: null, expiresAt: null };
    const made = await run(createToken(environment(), wish));
    await run(setTier(environment(), accountId, "pro"));
    await run(deleteToken(environment(), accountId, made.id));
    await run(Effect.flip(deleteToken(environment(), accountId, made.id)));
    const rows = await rowsOf(accountId);
    expect(rows.map(({ action, target }) => [action, target])).toEqual([
      ["account.created", accountId],
      ["person.created", user.id],
      ["token.created", made.id],
      ["account.tier_set", accountId],
      ["token.deleted", made.id],
    ]);
    const actor = { kind: "operator", id: null, name: userInfo().username, tokenId: null };
    expect(rows.map((row) => row.actor)).toEqual(rows.map(() => actor));
    expect(JSON.stringify(rows)).not.toContain(made.token);
  });

  it("says before it removes branches that it was called, but not for a dry run", async () => {
    const projectId = await makeProject(service, { files: { a: "a" } });
    const prune = (isDryRun: boolean) =>
      Effect.runPromise(Effect.scoped(pruneMerged(environment(), { projectId, isDryRun })));
    const pruned = async () => {
      const { account } = (await service.request("GET", "/v1/me")).json as { account: { id: string } };
      return (await rowsOf(account.id)).filter(({ action }) => action === "branches.pruned");
    };
    await prune(true);
    expect(await pruned()).toEqual([]);
    await prune(false);
    expect(await pruned()).toEqual([
      expect.objectContaining({ outcome: "begun", projectId, target: projectId }),
    ]);
  });
});

describe("platform audit --export", () => {
  const [audit] = auditCommands;
  /** Runs it against these pieces of an answer. @returns what it wrote */
  const exported = async (pieces: () => AsyncIterable<Buffer>, options: Record<string, unknown> = {}) => {
    const written: string[] = [];
    const asked: string[] = [];
    const stream = (target: string) => {
      asked.push(target);
      return Promise.resolve(pieces());
    };
    const call = {
      options: { export: true, ...options },
      write: (text: string) => void written.push(text),
      api: () => ({ stream }),
    };
    const result = await audit?.run(call as unknown as Parameters<typeof audit.run>[0]);
    return { result, asked, text: written.join("") };
  };

  it("writes characters whole that arrive in two pieces, and none that a terminal obeys", async () => {
    const line = `{"name":"Zo\u00eb\u009b"}\n`;
    const bytes = Buffer.from(line);
    const pid = "0190f3b2-0000-7000-8000-000000000001";
    const { text, asked } = await exported(
      async function* () {
        yield bytes.subarray(0, 12);
        yield bytes.subarray(12);
      },
      { project: pid, since: "2027-01-31", action: "secret.set" },
    );
    expect(text).toBe(`{"name":"Zo\u00eb\\u009b"}\n`);
    expect(asked).toEqual([`/projects/${pid}/audit?action=secret.set&since=2027-01-31T00%3A00%3A00.000Z`]);
  });

  it("fails if the service breaks the answer off", async () => {
    const broken = exported(async function* () {
      yield Buffer.from("{}\n");
      throw new Error("aborted");
    });
    await expect(broken).rejects.toMatchObject({ code: "broken_off" });
  });
});

/** Reads of the API: their statements, their answers, and long lists. */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectBare, type Bare } from "../../support/postgres/bare.ts";
import { FirePage } from "../../../src/http/api/triggers/fires.ts";
import { SessionPage, SessionWire } from "../../../src/http/api/sessions/sessions.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  eventually,
  expectStatus,
  fields,
  listOf,
  makeAccount,
  makeProject,
  makeUserToken,
  refusal,
  runSession,
} from "../../support/service/requests.ts";

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

const SESSIONS = 2_000;
const PAGE = 50;

let service: TestService;
let database: Bare;
let pid = "";
let sid = "";
let statements: Statement[] = [];
beforeAll(async () => {
  service = await startTestService(
    {},
    { requestStatements: (text, values) => void statements.push({ text, values }) },
  );
  database = await connectBare(service.databaseUrl);
  pid = await makeProject(service);
  sid = await runSession(service, pid, { initial_prompt: "Begin", metadata: { ticket: "ABC-1" } });
});
afterAll(async () => {
  await database?.end();
  await service?.close();
});
beforeEach(() => {
  statements = [];
});

const project = (rest: string) => `/v1/projects/${pid}${rest}`;

/** How many statements a request needs. */
const asked = async (target: string): Promise<number> => {
  // The first use of a token within a minute is noted.
  expectStatus(await service.request("GET", target), 200);
  statements = [];
  expectStatus(await service.request("GET", target), 200);
  return statements.length;
};

/** Ended sessions, two of each instant, so that their ids decide as well, and a fire of each. */
const fill = async (): Promise<void> => {
  await database.query(
    `WITH made AS (
       INSERT INTO project_sessions (id, project_id, account_id, status, state_context, base_ref, agent_name, metadata,
         created_by, origin, provisioned_at, boot_deadline_at, created_at, updated_at, stopped_at)
       SELECT gen_random_uuid(), project_id, account_id, 'stopped', state_context, 'main', 'default', '{}',
         created_by, 'session', at, at, at, at, at
       FROM project_sessions, generate_series(1, ${SESSIONS}) AS n,
         LATERAL (SELECT date_trunc('milliseconds', now()) - make_interval(mins => n / 2) AS at) AS each
       WHERE id = $1 RETURNING id, project_id, account_id, created_at
     )
     INSERT INTO fires (id, account_id, project_id, trigger_slug, kind, status, received_at, answers_delivery, attempts)
     SELECT id, account_id, project_id, 'push', 'webhook', 'skipped', created_at, false, 1 FROM made`,
    [sid],
  );
  await database.query("ANALYZE project_sessions, conversations, fires");
};

describe("a read", () => {
  it("asks the database once for its caller and what its path names", async () => {
    expect(await asked(project(`/sessions/${sid}`))).toBe(1);
    expect(await asked(project("/sessions"))).toBe(2);
    expect(await asked("/v1/sessions")).toBe(2);
    expect(await asked(project("/fires"))).toBe(2);
    expect(await asked(project("/change-requests"))).toBe(2);
    expect(await asked(project(`/sessions/${sid}/sandbox`))).toBe(2);
  });

  it("does not read the rows of another account or project, or of a caller without power", async () => {
    const stranger = await makeAccount(service);
    const elsewhere = await makeProject(service);
    const bound = await makeUserToken(service, { project_id: elsewhere });
    const notFound = [404, "not_found"];
    const target = project(`/sessions/${sid}`);
    expect(refusal(await service.request("GET", target, { token: stranger }))).toEqual(notFound);
    expect(refusal(await service.request("GET", project("/sessions"), { token: stranger }))).toEqual(
      notFound,
    );
    expect(refusal(await service.request("GET", target, { token: bound.token }))).toEqual(notFound);
    const wrong = `/v1/projects/${elsewhere}/sessions/${sid}`;
    expect(refusal(await service.request("GET", wrong))).toEqual(notFound);
  });

  it("refuses a token that was deleted a moment ago [T03]", async () => {
    const { id, token } = await makeUserToken(service);
    const target = project(`/sessions/${sid}`);
    for (let use = 0; use < 10; use += 1) expectStatus(await service.request("GET", target, { token }), 200);
    expectStatus(await service.request("DELETE", `/v1/tokens/${id}`), 204);
    expect((await service.request("GET", target, { token })).status).toBe(401);
  });
});

interface Plan {
  readonly "Node Type": string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}

/** How many rows the plan's nodes passed on and dropped. */
const rowsOf = (plan: Plan): number =>
  (plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)) * plan["Actual Loops"] +
  (plan.Plans ?? []).reduce((sum, child) => sum + rowsOf(child), 0);

/** The rows of a statement whose prepared plan knows no values, as every connection soon has it. */
const rowsOfPrepared = async ({ text, values }: Statement): Promise<number> => {
  await database.query("SET plan_cache_mode = force_generic_plan");
  await database.query(`PREPARE asked AS ${text}`);
  const literals = values.map((value) =>
    value instanceof Date ? `'${value.toISOString()}'` : `'${String(value)}'`,
  );
  const { rows } = await database.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
    `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE asked${literals.length === 0 ? "" : ` (${literals.join(", ")})`}`,
  );
  await database.query("DEALLOCATE asked");
  const plan = rows[0]?.["QUERY PLAN"][0].Plan;
  if (plan === undefined) throw new Error("the statement has no plan");
  return rowsOf(plan);
};

describe("a long list", () => {
  beforeAll(fill);

  it.each([
    ["sessions", "created_at", "project_sessions"],
    ["fires", "received_at", "fires"],
  ])("of %s has each row once, in order, and reads few rows for a page", async (name, at, table) => {
    const { rows } = await database.query<{ readonly id: string }>(
      `SELECT id FROM ${table} WHERE project_id = $1 ORDER BY ${at} DESC, id DESC`,
      [pid],
    );
    expect(rows.length).toBeGreaterThanOrEqual(SESSIONS);
    const found: unknown[] = [];
    let [cursor, most] = ["", 0];
    do {
      statements = [];
      /* oxlint-disable no-await-in-loop -- a page begins where the one before ends */
      const answer = expectStatus(
        await service.request("GET", project(`/${name}?limit=${PAGE}${cursor}`)),
        200,
      );
      for (const statement of statements) most = Math.max(most, await rowsOfPrepared(statement));
      /* oxlint-enable no-await-in-loop */
      found.push(...listOf(answer, name).map(({ id }) => id));
      const next = fields(answer)["next_cursor"];
      cursor = next === null ? "" : `&cursor=${String(next)}`;
    } while (cursor !== "");
    expect(found).toEqual(rows.map(({ id }) => id));
    expect(most).toBeLessThan(10 * PAGE);
  });

  it("and its sessions have the fields of their schema and no others", async () => {
    const strict = { onExcessProperty: "error", errors: "all" } as const;
    const check = (schema: Schema.Top, target: string) =>
      service.request("GET", target).then((answer) => {
        expect(answer.headers["content-type"]).toBe("application/json");
        const decode = Schema.decodeUnknownEffect(schema as Schema.Codec<unknown>, strict);
        return Effect.runPromise(decode(expectStatus(answer, 200).json));
      });
    await eventually(async () => {
      const { turn } = fields(await service.request("GET", project(`/sessions/${sid}`)));
      expect(turn).toMatchObject({ state: "idle" });
    });
    await check(SessionWire, project(`/sessions/${sid}`));
    await check(SessionPage, project("/sessions"));
    await check(SessionPage, "/v1/sessions");
    await check(FirePage, project("/fires"));
  });
});

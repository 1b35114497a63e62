/**
 * The lists of the page over the real service's HTTP and Postgres, with 10,000 sessions and 50,000 fires: they page and filter on the
 * server, and a page of them costs as many statements and rows as with twice as many.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectBare, type Bare } from "../support/postgres/bare.ts";
import { LIST_SCAN_MAX } from "../../src/store/ports/sessions/sessions.ts";
import { expectStatus, fields, makeProject, runSession } from "../support/service/requests.ts";
import { startTestService, type TestService } from "../support/service/service.ts";
import { followLink, hasChromium, launch, newPage } from "./browser.ts";

const SESSIONS = 10_000;
const FIRES = 50_000;
/** What the page asks for at once. */
const PAGE = 50;

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

interface Plan {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
}

const nodesOf = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/** How many rows of tables the plan read. */
const rowsRead = (plan: Plan): number =>
  nodesOf(plan)
    .filter((node) => node["Relation Name"] !== undefined)
    .reduce((sum, node) => {
      const removed = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
      return sum + (node["Actual Rows"] + removed) * node["Actual Loops"];
    }, 0);

let service: TestService;
let database: Bare;
let pid = "";
let statements: Statement[] = [];
beforeAll(async () => {
  const manifest = ["a", "b"].map(
    (slug) => `[[triggers]]\nslug = "${slug}"\ntype = "webhook"\nsecret_env = "S"\nprompt = "Look."\n`,
  );
  service = await startTestService(
    {},
    { requestStatements: (text, values) => void statements.push({ text, values }) },
  );
  database = await connectBare(service.databaseUrl);
  pid = await makeProject(service, { files: { "platform.toml": manifest.join("\n") }, name: "large" });
  await runSession(service, pid, { name: "The one that runs" });
  await fill(1);
});
afterAll(async () => {
  await database?.end();
  await service?.close();
});

/** Ended sessions, one a minute and the newest an hour ago, and the fires of triggers that started them or did not. */
const fill = async (round: number): Promise<void> => {
  const { rows } = await database.query<{ account: string; user: string }>(
    `SELECT account_id AS account, created_by AS user FROM project_sessions WHERE project_id = $1 LIMIT 1`,
    [pid],
  );
  const [{ account, user } = { account: "", user: "" }] = rows;
  await database.query(
    `INSERT INTO project_sessions (id, project_id, account_id, status, state_context, base_ref, agent_name, name, metadata,
       trigger_slug, created_by, origin, provisioned_at, boot_deadline_at, created_at, updated_at, failure, failed_at, stopped_at)
     SELECT gen_random_uuid(), $1, $2, status::project_session_status,
       '{"sandboxId": null, "branched": true, "deleted": false, "ending": null}', 'main', 'build', 'Session ' || n, '{}',
       CASE WHEN n % 2 = 0 THEN 'a' END, $3, CASE WHEN n % 2 = 0 THEN 'trigger' ELSE 'session' END, at, at, at, at,
       CASE WHEN status = 'failed' THEN '{"code": "sandbox_lost", "message": "gone"}'::jsonb END,
       CASE WHEN status = 'failed' THEN at END, CASE WHEN status = 'stopped' THEN at END
     FROM generate_series(1, ${SESSIONS}) AS n,
       LATERAL (SELECT CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'stopped' END AS status,
         now() - make_interval(mins => 60 + n + ${round * SESSIONS})  AS at) AS each`,
    [pid, account, user],
  );
  await database.query(
    `INSERT INTO fires (id, account_id, project_id, trigger_slug, kind, status, received_at, answers_delivery, attempts,
       session_id, fired_at)
     SELECT gen_random_uuid(), $2, $1, CASE WHEN n % 2 = 0 THEN 'a' ELSE 'b' END, 'webhook',
       CASE WHEN session.id IS NOT NULL THEN 'fired' WHEN n % 100 = 1 THEN 'failed' ELSE 'skipped' END, at, false, 1,
       session.id, CASE WHEN session.id IS NOT NULL THEN at END
     FROM generate_series(1, ${FIRES}) AS n
     CROSS JOIN LATERAL (SELECT now() - make_interval(secs => 3600 + n + ${round * FIRES}) AS at) AS each
     LEFT JOIN (SELECT id, row_number() OVER () * 5 AS place FROM project_sessions WHERE project_id = $1
       AND status <> 'running' AND name = 'Session ' || right(name, -8) ORDER BY created_at DESC LIMIT ${SESSIONS / 10}) AS session
       ON session.place = n`,
    [pid, account],
  );
  await database.query("ANALYZE project_sessions, fires");
};

const project = (rest: string) => `/v1/projects/${pid}${rest}`;

/** What the page asks. */
const LISTS: readonly (() => string)[] = [
  () => project("/sessions?"),
  () => project("/sessions?status=failed&"),
  () => project("/sessions?trigger=a&"),
  () => project("/sessions?status=running&"),
  () => project("/sessions?turn=running&"),
  // Found nowhere: it looks at so many of the newest sessions, then at where to go on.
  () => project("/sessions?search=nowhere&"),
  () => "/v1/sessions?",
  () => "/v1/sessions?turn=requires_action&",
  () => "/v1/sessions?activity=needs_you,failed&",
  () => "/v1/sessions?activity=queued,starting,working&",
  () => "/v1/sessions?activity=ready_for_review&",
  () => "/v1/sessions?activity=resting,asleep,done&",
  () => project("/fires?"),
  () => project("/fires?status=failed&"),
  () => project("/fires?status=fired&"),
  () => project("/fires?status=queued&"),
  () => project("/fires?slug=a&"),
  () => project("/fires?slug=b&status=failed&"),
  () => "/v1/queue?",
  () => project("/webhook-refusals?"),
  () => project("/change-requests?"),
];

interface Cost {
  readonly target: string;
  readonly items: number;
  readonly statements: number;
  readonly rows: number;
}

/** One page of a list, its cursor, and what it cost: each statement is asked again, with its plan. */
const costOf = async (target: string) => {
  statements = [];
  const answer = expectStatus(await service.request("GET", target), 200);
  const asked = statements.filter(({ text }) => /FROM (?:project_sessions|fires|fire_queue)\b/.test(text));
  let rows = 0;
  for (const { text, values } of asked) {
    // oxlint-disable-next-line no-await-in-loop -- one connection
    const explained = await database.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
      [...values],
    );
    const plan = explained.rows[0]?.["QUERY PLAN"][0].Plan;
    rows += plan === undefined ? 0 : rowsRead(plan);
  }
  const cost: Cost = {
    target: target.replaceAll(pid, "…").replace(/cursor=[^&]+/, "cursor=…"),
    items: Object.values(fields(answer)).find(Array.isArray)?.length ?? 0,
    statements: asked.length,
    rows: Math.round(rows),
  };
  return { cost, next: fields(answer)["next_cursor"] as string | null };
};

/** The cost of the first page of each list, and of the one after it. */
const costs = async (): Promise<readonly Cost[]> => {
  const all: Cost[] = [];
  for (const target of LISTS) {
    /* oxlint-disable no-await-in-loop -- the statements are of one request */
    const first = await costOf(`${target()}limit=${PAGE}`);
    all.push(first.cost);
    if (typeof first.next !== "string") continue;
    const second = await costOf(`${target()}limit=${PAGE}&cursor=${encodeURIComponent(first.next)}`);
    all.push(second.cost);
    /* oxlint-enable no-await-in-loop */
  }
  return all;
};

/** A list that finds few rows among all looks at so many of the newest sessions, then at where to go on. Other lists look at few rows. */
const rowsMax = ({ target }: Cost): number =>
  600 + (/search=|,failed|review/.test(target) ? 2 * LIST_SCAN_MAX : 0);

/** The second page of a list that finds few rows shows the remaining rows. */
const isWhole = ({ target }: Cost): boolean => !/(?:search=|,failed|review).*cursor=/.test(target);

describe("the page's lists with 10,000 sessions and 50,000 fires", () => {
  it.skipIf(!hasChromium)("show, page and filter on the server", async () => {
    const browser = await launch();
    try {
      const { page, complaints } = await newPage(browser);
      const rows = () => page.locator("main .rows > .row").count();
      const { url } = fields(await service.request("POST", "/dashboard/links"));
      await followLink(page, String(url));
      await page.getByRole("link", { name: "Projects" }).click();
      await page.getByRole("link", { name: "large" }).click();
      await page.getByRole("link", { name: "The one that runs" }).waitFor();
      expect(await rows()).toBe(PAGE);
      await page.getByRole("button", { name: "Show older sessions" }).click();
      await expect.poll(rows).toBe(2 * PAGE);
      await page.getByLabel("State").selectOption("failed");
      await page.getByRole("link", { name: "Session 10", exact: true }).waitFor();
      await expect.poll(rows).toBe(PAGE);
      await page.getByLabel("State").selectOption("");
      await page.getByLabel("Name").fill("session 9999");
      await page.getByRole("link", { name: "Session 9999" }).waitFor();
      await expect.poll(rows).toBe(1);
      await page.locator(".tabs").getByRole("link", { name: "Automations" }).click();
      await page.getByRole("link", { name: "Runs and deliveries" }).click();
      await page.getByRole("status").getByText("50 runs, and older ones").waitFor();
      expect(await rows()).toBe(PAGE);
      await page.getByRole("button", { name: "Show older entries" }).click();
      await page.getByRole("status").getByText("100 runs, and older ones").waitFor();
      expect(await rows()).toBe(2 * PAGE);
      await page.getByLabel("State").selectOption("failed");
      await page
        .getByRole("link", { name: /^b, by a webhook, failed/ })
        .first()
        .waitFor();
      await expect.poll(rows).toBe(PAGE);
      await page.getByLabel("Trigger").selectOption("a");
      await page.getByText("No runs match the filter.").waitFor();
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });

  it("cost as many statements and rows as with twice as many", async () => {
    const before = await costs();
    expect(before.filter(({ items }) => items === PAGE).length).toBeGreaterThan(12);
    await fill(2);
    const after = await costs();
    expect(after.filter(isWhole)).toEqual(before.filter(isWhole));
    for (const cost of after) expect(cost.rows, cost.target).toBeLessThanOrEqual(rowsMax(cost));
  });
});

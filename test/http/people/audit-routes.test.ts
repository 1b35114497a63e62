/** Every route that changes something leaves exactly one row on the audit record, in the transaction of its change. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Call } from "../call.ts";
import { makeCalls } from "../calls.ts";
import { startCast, type Cast } from "../cast.ts";
import { AUDITED } from "./audited-routes.ts";
import { ROUTES } from "../../../src/assembly/api.ts";
import type { Route } from "../../../src/http/routes.ts";
import { listOf } from "../../support/service/requests.ts";

let cast: Cast;
let calls: Readonly<Record<string, Call>> = {};
beforeAll(async () => {
  cast = await startCast();
  calls = makeCalls(cast);
});
afterAll(() => cast.service.close());

const nameOf = ({ method, pattern }: Route): string => `${method} ${pattern}`;
const changing = ROUTES.filter(({ method }) => method !== "GET");

const rows = async (): Promise<readonly Record<string, unknown>[]> =>
  listOf(await cast.service.request("GET", "/v1/audit?limit=200"), "events");

/** Calls the route as an owner. @returns the rows that came with it, the newest first */
const rowsOf = async (name: string) => {
  const { target, body, headers = {} } = calls[name] ?? { target: () => "" };
  // This may make other things, with rows of their own.
  const made = await target("user");
  const before = new Set((await rows()).map(({ id }) => id));
  const answer = await cast.service.request(name.split(" ")[0]?.replace("*", "GET") ?? "", made, {
    headers: { ...headers, "user-agent": "audit test", "x-request-id": "the-request" },
    ...(body === undefined ? {} : { body: body("user") }),
  });
  const after = await rows();
  return { answer, made: after.filter(({ id }) => !before.has(id)) };
};

describe("every route that changes something", () => {
  it("is in the table, and the table has no other route", () => {
    expect(Object.keys(AUDITED).toSorted()).toEqual(changing.map(nameOf).toSorted());
  });

  const onRecord = Object.entries(AUDITED).flatMap(([name, entry]) =>
    typeof entry === "string" || entry.elsewhere !== undefined ? [] : [[name, entry.action] as const],
  );
  it.each(onRecord)("%s leaves one row: %s [T14]", async (name, action) => {
    const { answer, made } = await rowsOf(name);
    expect(answer.status, answer.text.slice(0, 200)).toBeLessThan(300);
    // The work of an actor has two rows: the question and its answer.
    const outcomes = made.map((row) => row["outcome"]);
    expect([["done"], ["done", "begun"]]).toContainEqual(outcomes);
    expect(new Set(made.map((row) => row["action"]))).toEqual(new Set([action]));
    const [row] = made;
    expect(row).toMatchObject({
      actor: { kind: "person", name: "admin" },
      address: "127.0.0.1",
      user_agent: "audit test",
      request_id: "the-request",
    });
    if (name.includes(":pid")) expect(row?.["project_id"]).toBe(cast.pid);
    else expect(row?.["project_id"]).toBe(action === "project.created" ? row?.["target"] : null);
  });

  const silent = Object.entries(AUDITED).filter(
    ([name, entry]) => typeof entry === "string" && !name.startsWith("* "),
  );
  it.each(silent.map(([name]) => name))("%s leaves none", async (name) => {
    // A refused request has a row of its own kind (refused-requests.test.ts).
    const { made } = await rowsOf(name);
    expect(made.filter(({ action }) => action !== "request")).toEqual([]);
  });
});

const forbidRows = (actions: readonly string[]) =>
  cast.service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* sql.unsafe(
        `ALTER TABLE audit_events ADD CONSTRAINT no_more CHECK (action NOT IN (${actions.map((each) => `'${each}'`).join(", ")})) NOT VALID`,
      );
    }),
  );
const allowRows = () =>
  cast.service.inside(
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql`ALTER TABLE audit_events DROP CONSTRAINT no_more`),
  );

/** What three of the changes would add to. */
const names = async () => ({
  tokens: listOf(await cast.service.request("GET", "/v1/tokens"), "tokens").map(({ id }) => id),
  secrets: listOf(await cast.service.request("GET", `/v1/projects/${cast.pid}/secrets`), "secrets"),
  webhooks: listOf(await cast.service.request("GET", `/v1/projects/${cast.pid}/webhooks`), "webhooks"),
});

describe("a change", () => {
  it("is not made if its row cannot be written [T14]", async () => {
    const before = await names();
    await forbidRows(["token.created", "secret.set", "webhook.created"]);
    const tried = await Promise.all(
      ["POST /v1/tokens", "PUT /v1/projects/:pid/secrets/:name", "POST /v1/projects/:pid/webhooks"].map(
        (name) => rowsOf(name),
      ),
    ).finally(allowRows);
    expect(tried.map(({ answer }) => answer.status)).toEqual([500, 500, 500]);
    expect(await names()).toEqual(before);
  });
});

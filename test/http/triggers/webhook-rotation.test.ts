/** While a signing secret is rotated both of its values verify webhooks, for as long as its person said (api.md 5). */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { prune } from "../../../src/duties/retention.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  eventually,
  expectStatus,
  fields,
  hmac,
  listOf,
  makeHookProject,
  runSession,
  sandboxEnvironment,
  SECRET,
  SECRET_NAME,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";

const HOUR = 3_600_000;
const NEXT = "the next secret";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

const put = (pid: string, body: Fields) =>
  service.request("PUT", `/v1/projects/${pid}/secrets/${SECRET_NAME}`, { body });

/** Status of a delivery that is signed with a value, and which value the ledger says that was. */
const verified = async (pid: string, secret: string): Promise<readonly unknown[]> => {
  const answer = await deliver(service, `${pid}/push`, {
    headers: { "x-platform-signature": hmac("{}", secret) },
  });
  if (answer.status !== 202) return [answer.status];
  const fires = listOf(await service.request("GET", `/v1/projects/${pid}/fires`), "fires");
  const own = fires.find(({ session_id: id }) => id === fields(answer)["session_id"]);
  return [answer.status, own?.["verified_with"]];
};

/** Lets a previous value's time end: only its instant is moved, and the receiver learns of it. */
const endTime = (pid: string) =>
  service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* sql`UPDATE project_secrets SET previous_until = now() - interval '1 second' WHERE project_id = ${pid}`;
      yield* sql`UPDATE projects SET version = version + 1, changed_tx = pg_current_xact_id() WHERE id = ${pid}`;
    }),
  );

const storedPrevious = (pid: string) =>
  service.inside(
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql<{ readonly bytes: number | null; readonly text: string }>`
        SELECT octet_length(previous_envelope) AS bytes, encode(coalesce(previous_envelope, ''), 'escape') AS text
        FROM project_secrets WHERE project_id = ${pid}`,
    ),
  );

describe("a rotated signing secret", () => {
  it("verifies with both values for its time, and the ledger says with which", async () => {
    const pid = await makeHookProject(service);
    expect(await verified(pid, SECRET)).toEqual([202, "current"]);
    const answer = expectStatus(await put(pid, { value: NEXT, previous_valid_ms: HOUR }), 200);
    const until = Date.parse(String(fields(answer)["previous_valid_until"]));
    expect(until - Date.parse(String(fields(answer)["updated_at"]))).toBe(HOUR);
    expect(await verified(pid, SECRET)).toEqual([202, "previous"]);
    expect(await verified(pid, NEXT)).toEqual([202, "current"]);
    expect(await verified(pid, "another")).toEqual([401]);
    const [listed] = listOf(await service.request("GET", `/v1/projects/${pid}/secrets`), "secrets");
    expect(listed).toMatchObject({ name: SECRET_NAME, previous_valid_until: new Date(until).toISOString() });
  });

  it("verifies with the new value alone if no time was requested", async () => {
    const pid = await makeHookProject(service);
    for (const body of [{ value: NEXT }, { value: "third", previous_valid_ms: 0 }]) {
      // oxlint-disable-next-line no-await-in-loop -- one write after the other
      const answer = expectStatus(await put(pid, body), 200);
      expect(fields(answer)["previous_valid_until"]).toBeNull();
    }
    expect([await verified(pid, SECRET), await verified(pid, NEXT)]).toEqual([[401], [401]]);
    expect(await verified(pid, "third")).toEqual([202, "current"]);
  });

  it("verifies with its new value alone once the time is over, also before the old one is removed", async () => {
    const pid = await makeHookProject(service);
    await put(pid, { value: NEXT, previous_valid_ms: HOUR });
    await endTime(pid);
    await eventually(async () => expect(await verified(pid, SECRET)).toEqual([401]));
    expect(await verified(pid, NEXT)).toEqual([202, "current"]);
    const [listed] = listOf(await service.request("GET", `/v1/projects/${pid}/secrets`), "secrets");
    expect(listed?.["previous_valid_until"]).toBeNull();
    expect(await storedPrevious(pid)).toMatchObject([{ bytes: expect.any(Number) }]);
    const options = { fireRetentionMs: 30 * 24 * HOUR, auditRetentionMs: 30 * 24 * HOUR };
    await service.inside(prune({ ...options, features: () => Effect.succeed(0) }));
    expect(await storedPrevious(pid)).toMatchObject([{ bytes: null }]);
  });

  it("ends with its deletion, including the previous value", async () => {
    const pid = await makeHookProject(service);
    await put(pid, { value: NEXT, previous_valid_ms: HOUR });
    expectStatus(await service.request("DELETE", `/v1/projects/${pid}/secrets/${SECRET_NAME}`), 204);
    expect([await verified(pid, SECRET), await verified(pid, NEXT)]).toEqual([[409], [409]]);
    expect(await storedPrevious(pid)).toMatchObject([{ bytes: null }]);
    expectStatus(await put(pid, { value: "new", previous_valid_ms: HOUR }), 201);
    expect(await verified(pid, NEXT)).toEqual([401]);
  });

  it("stores its previous value encrypted, and outside every sandbox", async () => {
    const pid = await makeHookProject(service);
    await put(pid, { value: NEXT, previous_valid_ms: HOUR });
    const [row] = await storedPrevious(pid);
    expect(row?.bytes).toBeGreaterThan(SECRET.length);
    expect(row?.text).not.toContain(SECRET);
    const sid = await runSession(service, pid);
    expect(JSON.stringify(await sandboxEnvironment(service, sid))).not.toContain(SECRET);
    await stopSession(service, pid, sid);
  });

  it("accepts no time that is out of bounds", async () => {
    const pid = await makeHookProject(service);
    expectStatus(await put(pid, { value: NEXT, previous_valid_ms: 7 * 24 * HOUR + 1 }), 400);
    expect(await verified(pid, SECRET)).toEqual([202, "current"]);
  });
});

it("invisible characters of a value are named in the listing, and in the refusal of a sender without them", async () => {
  const pid = await makeHookProject(service);
  const set = fields(expectStatus(await put(pid, { value: `${NEXT}\n` }), 200));
  expect(set).toMatchObject({ unseen: ["ends with a line end"] });
  const secrets = listOf(await service.request("GET", `/v1/projects/${pid}/secrets`), "secrets");
  expect(secrets).toMatchObject([{ name: SECRET_NAME, unseen: ["ends with a line end"] }]);
  const signed = (secret: string) =>
    deliver(service, `${pid}/push`, { headers: { "x-platform-signature": hmac("{}", secret) } });
  expect((await signed(`${NEXT}\n`)).status).toBe(202);
  const refused = await signed(NEXT);
  expect([refused.status, fields(refused)["error"]]).toEqual([
    401,
    expect.stringContaining("the stored value ends with a line end"),
  ]);
  expect(fields(await signed("other"))["error"]).not.toContain("line end");
  await eventually(async () => {
    const refusals = listOf(
      await service.request("GET", `/v1/projects/${pid}/webhook-refusals`),
      "webhook_refusals",
    );
    expect(refusals.map(({ reason }) => reason)).toContain(
      "signature_mismatched: the stored value ends with a line end",
    );
  });
});

/**
 * What the receiver keeps of a flood of unknown slugs. The test reads a snapshot of its process' whole heap, so it has a
 * process of its own (vitest.config.ts): the heap of a shared worker is many times larger.
 */
import { randomUUID } from "node:crypto";
import { getHeapSnapshot } from "node:v8";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { deliver, expectStatus, makeProject, webhookEntry } from "../../support/service/requests.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

/** How many of the strings that the process holds match, garbage taken away. */
const remembered = async (pattern: RegExp): Promise<number> => {
  const found = new Set<string>();
  let rest = "";
  for await (const chunk of getHeapSnapshot()) {
    const text = rest + String(chunk);
    for (const [match] of text.matchAll(pattern)) found.add(match);
    rest = text.slice(-256);
  }
  return found.size;
};

describe("a flood of unknown slugs", () => {
  const FLOOD = 5_000;
  const AT_ONCE = 64;

  it("leaves no trace of any slug, in memory or in the tables [W38]", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
    const mark = `flood-${randomUUID().slice(0, 8)}`;
    let sent = 0;
    const sender = async (): Promise<void> => {
      while (sent < FLOOD) {
        const slug = `${mark}-${String(sent).padStart(5, "0")}`;
        sent += 1;
        // oxlint-disable-next-line no-await-in-loop -- so many senders, one request each
        expectStatus(await deliver(service, `${pid}/${slug}`), 404);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, sender));
    expect(sent).toBe(FLOOD);
    // Each connection may hold the last requests it carried.
    expect(await remembered(new RegExp(`${mark}-\\d{5}`, "g"))).toBeLessThan(AT_ONCE * 8);
    const rows = await service.inside(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient;
        return yield* sql`SELECT
          (SELECT count(*)::int FROM fires WHERE trigger_slug LIKE ${`${mark}%`}) AS fires,
          (SELECT count(*)::int FROM project_trigger_runtime WHERE slug LIKE ${`${mark}%`}) AS runtime`;
      }),
    );
    expect(rows).toEqual([{ fires: 0, runtime: 0 }]);
  });
});

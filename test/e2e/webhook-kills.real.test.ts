/** Webhooks through kills of the real service (threats.md "Steps before and after which the process is killed"). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KilledService, seedOfRun } from "../support/webhooks/webhook-kills.ts";
import { unaccounted } from "../support/webhooks/webhook-ledger.ts";
import { TEST_MS } from "../support/patience.ts";

const DELIVERIES = 600;
const seed = seedOfRun();

describe(`a service that is killed while webhooks arrive, WEBHOOK_KILLS_SEED=${seed}`, () => {
  let service: KilledService;
  beforeAll(async () => {
    service = await KilledService.open();
  }, TEST_MS);
  afterAll(() => service.close(), TEST_MS);

  it(
    "loses no webhook that it accepted, starts nothing twice, and leaves no process behind [W33, W35, W40, I4, I5]",
    async () => {
      const { log, unanswered } = await service.survive({ deliveries: DELIVERIES, kills: 2, seed });
      const { waiting, ...ledger } = await service.ledger();

      expect(unanswered).toBeGreaterThan(0);
      expect(unaccounted(log, ledger)).toEqual([]);
      expect(log.size).toBe(DELIVERIES);
      const statuses = Map.groupBy(ledger.fires, ({ status }) => status);
      // Both ways of accepting were taken, and the account's counter is the ledger's.
      expect(statuses.get("fired")?.length).toBeGreaterThanOrEqual(50);
      expect(statuses.get("queued")?.length).toBe(waiting);
      expect(waiting).toBeGreaterThan(0);
      expect(await service.end()).toEqual({ code: 0, left: [] });
    },
    TEST_MS,
  );
});

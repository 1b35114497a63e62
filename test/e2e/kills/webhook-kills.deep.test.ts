/** Webhooks through kills of the real service (threats.md "Steps before and after which the process is killed"). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KilledService, seedOfRun } from "../../support/webhooks/webhook-kills.ts";
import { unaccounted } from "../../support/webhooks/webhook-ledger.ts";

const DELIVERIES = 20_000;
const seed = seedOfRun();

describe(`a service that is killed twenty times, WEBHOOK_KILLS_SEED=${seed}`, () => {
  let service: KilledService;
  beforeAll(async () => {
    service = await KilledService.open();
  });
  afterAll(() => service.close());

  it("loses no webhook that it accepted, starts nothing twice, and leaves no process behind [W33, W35, W40, I4, I5]", async () => {
    const { log, unanswered } = await service.survive({ deliveries: DELIVERIES, kills: 20, seed });
    const { waiting, ...ledger } = await service.ledger();

    expect(unanswered).toBeGreaterThan(0);
    expect(unaccounted(log, ledger)).toEqual([]);
    expect(log.size).toBe(DELIVERIES);
    // Both ways of accepting were taken, and the account's counter is the ledger's.
    expect(ledger.fires.filter(({ status }) => status === "fired").length).toBeGreaterThanOrEqual(50);
    expect(ledger.fires.filter(({ status }) => status === "queued").length).toBe(waiting);
    expect(waiting).toBeGreaterThan(0);
    expect(await service.end()).toEqual({ code: 0, left: [] });
  });
});

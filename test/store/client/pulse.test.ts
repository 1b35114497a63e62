import { describe, expect, it } from "vitest";
import { LATELY_MS, Pulse } from "../../../src/store/postgres/connection/pulse.ts";

/** A pulse, its clock, and how often its connections ended. */
const watched = () => {
  const at = { now: 0, eras: 0 };
  const pulse = new Pulse(() => at.now);
  pulse.onEra(() => (at.eras += 1));
  return { at, pulse };
};

describe("the database's pulse", () => {
  it("takes writes for good from a heartbeat on, until none comes for a while", () => {
    const { at, pulse } = watched();
    expect(pulse.writes).toBe(false);
    pulse.beat();
    at.now = LATELY_MS;
    expect(pulse.writes).toBe(true);
    at.now += 1;
    expect(pulse.writes).toBe(false);
  });

  it("takes writes for bad as soon as a heartbeat fails or the server says that it is read-only", () => {
    const { at, pulse } = watched();
    pulse.beat();
    pulse.missed();
    expect([pulse.writes, at.eras]).toEqual([false, 0]);
    pulse.beat();
    expect(pulse.writes).toBe(true);
    pulse.readOnly();
    expect([pulse.writes, at.eras, pulse.era]).toEqual([false, 1, 1]);
  });

  it("takes writes for bad while others find the disk full, though a heartbeat still fits", () => {
    const { at, pulse } = watched();
    pulse.full();
    pulse.beat();
    expect(pulse.writes).toBe(false);
    at.now = LATELY_MS + 1;
    pulse.beat();
    expect(pulse.writes).toBe(true);
  });

  it("ends all connections when the notification of a heartbeat does not come back", () => {
    const { at, pulse } = watched();
    pulse.beat();
    pulse.heard();
    at.now = LATELY_MS;
    pulse.beat();
    at.now = 2 * LATELY_MS;
    pulse.beat();
    expect([pulse.notifies, at.eras]).toEqual([true, 0]);
    at.now += 1;
    expect(pulse.notifies).toBe(false);
    pulse.beat();
    expect(at.eras).toBe(1);
    at.now += 1;
    pulse.beat();
    expect(at.eras).toBe(1);
    pulse.heard();
    expect(pulse.notifies).toBe(true);
  });
});

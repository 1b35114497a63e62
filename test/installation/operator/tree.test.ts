import * as Effect from "effect/Effect";
import { describe, expect, it } from "vitest";
import { readableMs, supervisionTree, treeText } from "../../../src/installation/operator/tree.ts";

/** The one default that depends on the machine is set. */
const textWith = async (settings: Readonly<Record<string, string>>) =>
  treeText(await Effect.runPromise(supervisionTree({ PLATFORM_BOOTS_AT_ONCE: "8", ...settings })));

describe("the supervision tree", () => {
  it("matches its golden, on one screen", async () => {
    const text = await textWith({});
    await expect(`${text}\n`).toMatchFileSnapshot("../../golden/supervision-tree.txt");
    const lines = text.split("\n");
    expect(lines.length).toBeLessThanOrEqual(60);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
  });

  it("shows the given settings", async () => {
    const text = await textWith({
      PLATFORM_RECOVERY_INTERVAL_MS: "7000",
      PLATFORM_IDLE_TIMEOUT_MS: "20000",
      PLATFORM_ACTOR_IDLE_MS: "2000",
      PLATFORM_REQUESTS_AT_ONCE: "3",
      DATABASE_URL: "postgres://user:password@db.example.org/platform",
    });
    expect(text).toMatch(/recovery +7 s /);
    expect(text).toMatch(/sweeper +2 s /);
    expect(text).toContain("idle 2 s");
    expect(text).toContain("3 at once");
    expect(text).not.toContain("embedded Postgres");
    expect(text).not.toContain("password");
  });

  it("writes a time in the largest unit that divides it", () => {
    expect([20, 1000, 1500, 60_000, 90_000, 3_600_000, 172_800_000].map(readableMs)).toEqual([
      "20 ms",
      "1 s",
      "1500 ms",
      "1 min",
      "90 s",
      "1 h",
      "2 d",
    ]);
  });
});

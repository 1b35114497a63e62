import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EVENT_SKIPS } from "../../../src/domain/trigger/event-skip.ts";
import type { TriggerDefinition } from "../../../src/domain/trigger/trigger.ts";
import { HeldTriggers, UnpackedTriggers } from "../../../src/services/triggers/held-triggers.ts";

const cron = (slug: string, prompt = "Look around."): TriggerDefinition => ({
  slug,
  name: slug,
  prompt,
  agent: "build",
  enabled: true,
  type: "cron",
  cron: "0 0 9 * * *",
  timezone: "Europe/Berlin",
});

const common = {
  slug: fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,127}$/),
  name: fc.string({ unit: "binary" }),
  prompt: fc.string({ unit: "binary", maxLength: 2000 }),
  agent: fc.string(),
  enabled: fc.boolean(),
};
const filter = fc.record({
  events: fc.option(fc.array(fc.string())),
  branches: fc.option(fc.array(fc.string({ unit: "binary" }))),
  conditions: fc.array(
    fc.record({
      path: fc.string(),
      equals: fc.oneof(fc.string(), fc.boolean(), fc.double({ noNaN: true, noDefaultInfinity: true })),
    }),
  ),
  includes: fc.subarray([...EVENT_SKIPS]),
});
const definition: fc.Arbitrary<TriggerDefinition> = fc.oneof(
  fc.record({ ...common, type: fc.constant("cron" as const), cron: fc.string(), timezone: fc.string() }),
  fc.record(
    { ...common, type: fc.constant("webhook" as const), secretEnv: fc.string(), filter },
    {
      requiredKeys: ["slug", "name", "prompt", "agent", "enabled", "type", "secretEnv"],
      noNullPrototype: true,
    },
  ),
);
const project = fc.uniqueArray(definition, { selector: ({ slug }) => slug, maxLength: 120 });

/** As JSON, which has one zero only. */
const expectSame = (found: unknown, wanted: unknown): void =>
  expect(JSON.stringify(found)).toBe(JSON.stringify(wanted));

describe("the triggers of a project", () => {
  test("are found by their slug, and listed in the manifest's order, equal to what was packed", () => {
    fc.assert(
      fc.property(project, (definitions) => {
        const held = new HeldTriggers(definitions, new UnpackedTriggers());
        expectSame(held.all, definitions);
        for (const wanted of definitions) expectSame(held.get(wanted.slug), wanted);
        expect(held.size).toBe(definitions.length);
      }),
      { numRuns: 50 },
    );
  });

  test("are not found by another slug, whether there are any or none", () => {
    const unpacked = new UnpackedTriggers();
    expect(new HeldTriggers([cron("nightly")], unpacked).get("nightlies")).toBeUndefined();
    expect(new HeldTriggers([], unpacked).get("nightly")).toBeUndefined();
    expect(new HeldTriggers([], unpacked).all).toEqual([]);
  });
});

describe("an unpacked part", () => {
  test("stays while it is used", () => {
    const held = new HeldTriggers([cron("nightly")], new UnpackedTriggers());
    expect(held.get("nightly")).toBe(held.get("nightly"));
  });

  test("is one part of a large project, not all of it", () => {
    const unpacked = new UnpackedTriggers();
    const definitions = Array.from({ length: 1000 }, (_, index) => cron(`job-${index}`, "x".repeat(100)));
    new HeldTriggers(definitions, unpacked).get("job-7");
    expect(unpacked.chars).toBeLessThan(JSON.stringify(definitions).length / 10);
  });

  test("is bounded, and what was read last remains", () => {
    const unpacked = new UnpackedTriggers(10_000);
    const projects = Array.from(
      { length: 50 },
      (_, index) => new HeldTriggers([cron(`job-${index}`, "x".repeat(1000))], unpacked),
    );
    const often = projects[0]?.get("job-0");
    for (const [index, held] of projects.entries()) {
      held.get(`job-${index}`);
      expect(unpacked.chars).toBeLessThanOrEqual(10_000);
      expect(projects[0]?.get("job-0")).toBe(often);
    }
    expect(projects[1]?.get("job-1")).toEqual(cron("job-1", "x".repeat(1000)));
  });

  test("is found although it alone is larger than the bound", () => {
    const held = new HeldTriggers([cron("large", "x".repeat(1000))], new UnpackedTriggers(100));
    expect(held.get("large")?.prompt).toHaveLength(1000);
  });
});

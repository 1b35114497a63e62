import { describe, expect, it } from "vitest";
import { findProblems, type ServiceFacts } from "../../src/services/problems.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const MINUTE = 60_000;
const NONE = { waiting: 0, oldestAt: null };

const well: ServiceFacts = {
  now: NOW,
  database: { version: "18.4", sizeBytes: 1, connections: 10, connectionsMax: 100 },
  nodes: [{ id: "n1", url: "http://n1", beats: 5, deadAt: null }],
  countSandboxes: () => 2,
  diskFreeBytes: 1024 ** 3,
  scheduler: { late: false },
  fires: { waiting: 3, oldestAt: NOW - 9 * MINUTE },
  commands: { waiting: 1, oldestAt: NOW - 4 * MINUTE },
  ownerless: 0,
  stale: 0,
  doctor: null,
  boots: { started: 5, failures: [], waited: null, booted: null },
  duties: [
    { name: "nodes", periodMs: 1000, last: { endedAt: NOW - 59_000, failed: false } },
    { name: "unclaimed", periodMs: 10 * MINUTE, last: null },
  ],
};

const doctor = { provider: "local", usable: false, problem: "bwrap is missing.", findings: [] };
const failures = [{ code: "clone_failed", count: 1 }];

describe("the service's problems", () => {
  it("are none while everything is in time", () => {
    expect(findProblems(well)).toEqual([]);
    expect(
      findProblems({ ...well, fires: NONE, commands: NONE, doctor: { ...doctor, usable: true } }),
    ).toEqual([]);
  });

  it("say of a node without sandboxes only how long it has been silent", () => {
    const silent = { nodes: [{ id: "n3", url: null, beats: 1, deadAt: NOW - 1 }], countSandboxes: () => 0 };
    expect(findProblems({ ...well, ...silent }).map(({ message }) => message)).toEqual([
      "Node n3 has been silent for less than a minute.",
    ]);
  });

  const wrongs: readonly (readonly [string, Partial<ServiceFacts>, RegExp])[] = [
    ["sandboxes_unusable", { doctor }, /bwrap is missing/],
    [
      "boots_fail",
      { boots: { ...well.boots, failures } },
      /1 of 5 boots failed, most often with clone_failed/,
    ],
    [
      "node_dead",
      { nodes: [{ id: "n2", url: null, beats: 1, deadAt: NOW - 2 * MINUTE }] },
      /Node n2 has been silent for 2 minutes. It had 2 sandboxes/,
    ],
    ["disk_scarce", { diskFreeBytes: 1024 ** 3 - 1 }, /1023 MiB left/],
    ["scheduler_late", { scheduler: { late: true } }, /cron triggers may be late/],
    ["connections_scarce", { database: { ...well.database, connections: 91 } }, /91 of 100/],
    [
      "commands_late",
      { commands: { waiting: 2, oldestAt: NOW - 6 * MINUTE } },
      /2 commands has waited for 6/,
    ],
    ["sessions_ownerless", { ownerless: 1 }, /1 live session\./],
    [
      "duty_failed",
      { duties: [{ name: "orphans", periodMs: 1, last: { endedAt: NOW, failed: true } }] },
      /orphans crashed/,
    ],
    [
      "duty_late",
      { duties: [{ name: "nodes", periodMs: 1, last: { endedAt: NOW - 61_000, failed: false } }] },
      /nodes last ran 1 minute ago/,
    ],
    ["fires_wait", { fires: { waiting: 1, oldestAt: NOW - 11 * MINUTE } }, /1 queued run has waited for 11/],
    ["manifests_stale", { stale: 2 }, /2 active projects have/],
  ];

  it.each(wrongs)("name %s, and what to do", (code, change, message) => {
    const found = findProblems({ ...well, ...change });
    expect(found.map((problem) => problem.code)).toEqual([code]);
    expect(found[0]?.message).toMatch(message);
    expect(found[0]?.remedy).not.toBe("");
  });

  it("come with what stops all work first", () => {
    const all = findProblems({ ...well, ...Object.assign({}, ...wrongs.map(([, change]) => change)) });
    expect(all[0]?.code).toBe("sandboxes_unusable");
    expect(all.at(-1)?.code).toBe("manifests_stale");
  });
});

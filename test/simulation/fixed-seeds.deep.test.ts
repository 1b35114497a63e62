/** Runs from fixed seeds, which meet every fault and make every call that the simulation has a name for. */
import { describe, expect, it } from "vitest";
import { BATCH_LIMIT_MS, explained, runsFrom } from "./world/batch.ts";
import { MARKABLE, OF_APPROVALS, OF_PEOPLE, OF_WARM } from "./marks.ts";

/** Its runs meet every fault that is looked for below. */
const FIXED_SEED = 712;
/** Enough for every call of every port, and for every fault that is looked for below. */
const FIXED_RUNS = 22;

/** The seeds of planted bugs hold for a list of marked calls without these. */
const BY_CHANCE = [
  "git.hasChanges",
  "git.objectIds",
  "provider.installed",
  "saves.remove",
  "site.collect",
  "site.held",
  "store.ChangeRequests.findMerged",
  "store.EnvironmentBuilds.inUse",
  "store.EnvironmentBuilds.newestReady",
  "store.EnvironmentBuilds.prune",
  "store.EnvironmentBuilds.unheld",
  "store.EnvironmentBuilds.unsettled",
  "store.Projects.lastFired",
  "store.Secrets.list",
  "store.Secrets.sealed",
  "store.Sessions.noteSaved",
  "store.Sessions.noteTurn",
  "store.Sessions.shown",
  "store.Conversations.memory.save",
  "store.Conversations.page",
  "store.Conversations.pruneAttachments",
  "store.Conversations.unsettled",
];

/** Its runs meet what is looked for below. */
const FIXED_WITH_PEOPLE = { seed: 1_000_001, runs: 6 };

/** The same, where people decide on calls. */
const FIXED_WITH_APPROVALS = { seed: 2_000_001, runs: 8 };

/** The same, where sandboxes wait for sessions. */
const FIXED_WITH_WARM = { seed: 3_000_000_013, runs: 12 };

describe("a simulated service", () => {
  it(
    `keeps every invariant in ${FIXED_RUNS} runs from a fixed seed [I6] [I11] [I21]`,
    () => {
      const totals = runsFrom(FIXED_SEED, FIXED_RUNS);
      expect(explained(totals)).toBe("");
      // Runs in which nothing happens would keep them, too.
      for (const point of [
        "passed admission.committed",
        "passed drain.committed",
        "passed webhook.verified",
        "passed instant.accounted",
        "crash after store.Admissions.admit",
        "crash before store.Sessions.memory.save",
        "unknown store.Sessions.memory.save",
        "lie provider.destroy",
        "lost provider.create",
        "hang provider.create",
        "step freeze",
        "step restore",
      ]) {
        expect(totals.hits.get(point) ?? 0, point).toBeGreaterThan(0);
      }
      // Of these ports nothing fails but what is marked.
      const marked = [...totals.hits.keys()].filter((point) =>
        /^(?:refused|unknown) store\.(?:Counters|Events|Identity|Secrets)\./.test(point),
      );
      expect(marked).not.toEqual([]);
      // A call that is in no list is met by chance alone; a call that is never made wastes its marks.
      expect([...totals.calls].toSorted()).toEqual([...MARKABLE, ...BY_CHANCE].toSorted());
    },
    BATCH_LIMIT_MS,
  );

  it(
    `keeps every invariant in ${FIXED_WITH_PEOPLE.runs} runs from a fixed seed where people talk to agents`,
    () => {
      const totals = runsFrom(FIXED_WITH_PEOPLE.seed, FIXED_WITH_PEOPLE.runs);
      expect(explained(totals)).toBe("");
      for (const point of [
        "handed accepted",
        "handed busy",
        "stopped turn",
        "heard a person",
        "heard expired",
        "heard unattended",
        "step unsay",
        "step resume",
      ]) {
        expect(totals.hits.get(point) ?? 0, point).toBeGreaterThan(0);
      }
      // A call that is never made wastes its marks.
      expect(OF_PEOPLE.filter((name) => !totals.calls.has(name))).toEqual([]);
    },
    BATCH_LIMIT_MS,
  );

  it(
    `keeps every invariant in ${FIXED_WITH_APPROVALS.runs} runs from a fixed seed where people decide on agents' calls [K11]`,
    () => {
      const totals = runsFrom(FIXED_WITH_APPROVALS.seed, FIXED_WITH_APPROVALS.runs);
      expect(explained(totals)).toBe("");
      for (const state of ["approved", "calling", "done", "denied", "expired", "unknown"])
        expect(totals.hits.get(`approval ${state}`) ?? 0, state).toBeGreaterThan(0);
      // A call that is never made wastes its marks.
      expect(OF_APPROVALS.filter((name) => !totals.calls.has(name))).toEqual([]);
    },
    BATCH_LIMIT_MS,
  );

  it(
    `keeps every invariant in ${FIXED_WITH_WARM.runs} runs from a fixed seed where sandboxes wait for sessions [E17] [E18]`,
    () => {
      const totals = runsFrom(FIXED_WITH_WARM.seed, FIXED_WITH_WARM.runs);
      expect(explained(totals)).toBe("");
      for (const point of ["wished", "claimed", "step secret", "crash after store.WarmSandboxes.keep"])
        expect(totals.hits.get(point) ?? 0, point).toBeGreaterThan(0);
      // A call that is never made wastes its marks.
      expect(OF_WARM.filter((name) => !totals.calls.has(name))).toEqual([]);
    },
    BATCH_LIMIT_MS,
  );
});

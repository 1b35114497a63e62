/**
 * Kill -9 of the real service under load, with real sandboxes (threats.md "Steps before and after which the process is
 * killed"); and whether the checkers that look at it afterwards see anything.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sandboxesStartHere } from "../support/requirements.ts";
import { CHECKERS } from "./checkers/checkers.ts";
import { killed } from "./faults.ts";
import { groundOf } from "./ground.ts";
import { FaultyService } from "./installation.ts";
import { PLANTS, type Ground } from "./checkers/plants.ts";
import { seedOfRun, SHORT_ROUNDS } from "./rounds.ts";
import { startStray } from "./stray.ts";
import { Trial } from "./trial.ts";
import { TEST_MS } from "../support/patience.ts";

const seed = seedOfRun();

describe.runIf(sandboxesStartHere)(`a service under load, REAL_FAULTS_SEED=${seed}`, () => {
  let service: FaultyService;
  let trial: Trial;
  beforeAll(async () => {
    service = await FaultyService.make();
    await service.start();
    await service.furnish();
    trial = new Trial({ service, seed });
    await trial.begin();
  }, TEST_MS);
  afterAll(async () => {
    await trial.load.end();
    await service.close();
  }, TEST_MS);

  it(
    "loses nothing and leaves nothing behind when it is killed at any moment [I1, I4, I9, I15, I17, I19]",
    async () => {
      await trial.rounds(SHORT_ROUNDS.kills, killed(service));
      process.stderr.write(`${trial.summary}\n`);
      expect(trial.violations).toEqual([]);
    },
    TEST_MS,
  );

  it(
    "removes at its start what a former start left when it was killed while it probed the machine [I9]",
    async () => {
      await service.life.end("SIGKILL");
      const record = {
        version: 1,
        sessionId: randomUUID(),
        installationId: "trial",
        nodeId: service.nodeId,
        uidBase: null,
        launcher: null,
        cgroups: [],
        egressAllow: [],
        secretNames: [],
        llmUpstream: null,
      };
      const tried = await startStray(service, record);
      // Killed a moment earlier: between the directory and its record.
      const begun = await startStray(service, null);
      try {
        await service.start();
        const left = service.machine().sandboxes.map(({ id }) => id);
        expect(left).not.toContain(tried.id);
        expect(left).not.toContain(begun.id);
      } finally {
        await tried.end();
        await begun.end();
      }
    },
    TEST_MS,
  );

  describe("is checked by checkers that", () => {
    let ground: Ground;
    beforeAll(async () => {
      ground = await groundOf(trial);
    }, TEST_MS);

    it("find no violation if none is planted", () => {
      expect(trial.violations).toEqual([]);
    });

    it.each(PLANTS)(
      "find $what ($checker)",
      async ({ checker, told, plant }) => {
        const sentence = typeof told === "string" ? told : told(ground);
        expect(await CHECKERS[checker](await plant(ground))).toContainEqual(
          expect.stringContaining(sentence),
        );
        expect((await CHECKERS[checker](ground.seen)).join("\n")).not.toContain(sentence);
      },
      TEST_MS,
    );

    it("are all covered by a plant", () => {
      expect(new Set(PLANTS.map(({ checker }) => checker))).toEqual(new Set(Object.keys(CHECKERS)));
    });
  });
});

/** A day of each agent runtime: 200 turns in one session, whose sandbox may reach no host. Ends with the hosts that each asked for. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Talk } from "../../conformance/agents/runtime-talk.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { type Step, TalkingModel } from "../../support/servers/talking-model.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import {
  PROVIDER_KEY,
  RUNTIME_ROWS,
  startWithRuntimes,
} from "../../support/service/sessions/runtime-installation.ts";

const TURNS = 200;
const REFUSED = "a sandbox asked for a host that it may not reach: ";

/** The steps of a turn: words, a command or a new file. */
const stepsOf = (turn: number): readonly Step[] => {
  if (turn % 10 === 3) return [{ run: `echo ${turn}` }, { say: `Ran ${turn}.` }];
  if (turn % 10 === 7) return [{ write: [`notes-${turn}.txt`, "written\n"] }, { say: `Wrote ${turn}.` }];
  return [{ think: "Let me see.", say: `Words of ${turn}.` }];
};

/** The hosts in the lines of a service's log, without their order. */
const hostsIn = (lines: readonly string[]): readonly string[] =>
  lines
    .flatMap((line) => line.split(REFUSED)[1] ?? [])
    .map((rest) => /^[\w.-]+/.exec(rest)?.[0] ?? rest)
    .toSorted();

describe.skipIf(!sandboxesStartHere)("a day of an agent runtime", () => {
  const database = useRunDatabase();
  const model = new TalkingModel(PROVIDER_KEY);
  const asked = new Map<string, readonly string[]>();
  let installation: Installation;
  let life: Life;
  let pid: string;

  beforeAll(async () => {
    installation = await Installation.open();
    ({ life, pid } = await startWithRuntimes(installation, model, {
      rows: RUNTIME_ROWS,
      settings: database(),
    }));
  }, TEST_MS * 2);
  afterAll(async () => {
    for (const [name, hosts] of asked)
      process.stderr.write(`${name} asked for ${hosts.join(", ") || "no other host"}\n`);
    model.stop();
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  it.each(RUNTIME_ROWS)(
    "$name reaches its model and no other host",
    async ({ name }) => {
      const from = life.log.length;
      const talk = new Talk(await LiveSession.startIn(life, pid, { agent_name: `${name}-allow` }));
      for (let turn = 0; turn < TURNS; turn += 1) {
        // oxlint-disable-next-line no-await-in-loop -- turns follow each other
        const items = await talk.turn(stepsOf(turn));
        expect(items.at(-1)).toMatchObject({ kind: "message", status: "completed" });
      }
      await talk.session.stop();
      const hosts = hostsIn(life.log.slice(from));
      asked.set(name, hosts);
      // The service's own names are no hosts of the network.
      expect(hosts.filter((host) => host.endsWith(".internal"))).toEqual([]);
    },
    TEST_MS * 6,
  );
});

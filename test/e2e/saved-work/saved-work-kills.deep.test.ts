/**
 * Sandbox, service and database are killed at random instants of a save and of a restoration. Each path of the workspace
 * exists again afterwards, or it is named. A sandbox that was killed may have lost what came after its last save, and nothing else.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Random } from "../../simulation/random.ts";
import { killSandbox } from "../../support/machine/processes-seeing.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life, LIGHT_AGENT } from "../../support/service/process-service.ts";

const SEED = Number(process.env["SAVE_KILLS_SEED"] ?? 1);
const KILLS = Number(process.env["SAVE_KILLS"] ?? 200);
/** A save or a restoration takes about so long, ms. */
const SAVE_MS = 1500;
const RESTORE_MS = 3000;
const AGAIN_MS = 100;
/** Bringing work back may take ten minutes (saves.md 6), which it needs on a loaded machine. */
const BACK_MS = 10 * 60_000 + WAIT_MS;

const VICTIMS = ["sandbox", "service", "database"] as const;
type Victim = (typeof VICTIMS)[number];

/** The digest of each file, by its path. */
type Content = ReadonlyMap<string, string>;

const DIGESTS = `find . -path ./.git -prune -o -type f -exec sha1sum {} + | sort -k 2`;
const contentOf = (text: string): Content =>
  new Map(
    text.split("\n").flatMap((line) => {
      const [, digest, name] = /^([0-9a-f]{40}) {2}\.\/(.+)$/.exec(line) ?? [];
      return digest === undefined || name === undefined ? [] : [[name, digest] as const];
    }),
  );

/** The agent's work in one turn: new files, changed ones, one that goes, sometimes a commit or a large file. */
const workOf = (random: Random, round: number): string => {
  const fresh = Array.from(
    { length: random.between(1, 30) },
    (_, at) => `head -c ${random.between(0, 60_000)} /dev/urandom > r${round}-${at}`,
  );
  return [
    ...fresh,
    `echo ${round} >> always`,
    "rm -f $(ls | grep '^r' | head -n 1)",
    ...(random.chance(0.2) ? [`head -c ${random.between(2_000_000, 8_000_000)} /dev/urandom > large`] : []),
    ...(random.chance(0.3) ? [`git add -A && git commit -qm 'Round ${round}'`] : []),
    ...(random.chance(0.2) ? ["git add -A"] : []),
  ].join("; ");
};

class Trial {
  readonly installation: Installation;
  life: Life;
  readonly #start: () => Promise<Life>;
  readonly #path: string;
  readonly #random: Random;

  constructor(
    { installation, start }: { readonly installation: Installation; readonly start: () => Promise<Life> },
    session: LiveSession,
    random: Random,
  ) {
    this.installation = installation;
    this.life = session.life;
    this.#start = start;
    this.#path = session.path;
    this.#random = random;
  }

  /** Repeats a call until it is answered: the service or its database may be away. A refusal is an answer. */
  async call(method: string, below: string, body?: Json): Promise<Json> {
    const until = performance.now() + WAIT_MS;
    for (;;) {
      try {
        return await this.life.call(method, `${this.#path}${below}`, body);
      } catch (error) {
        if (/answered 4\d\d/.test(String(error)) || performance.now() > until) throw error;
        await delay(AGAIN_MS);
      }
    }
  }

  async reached(statuses: readonly string[]): Promise<Json> {
    const until = performance.now() + BACK_MS;
    for (;;) {
      const session = await this.call("GET", "");
      if (statuses.includes(String(session["status"]))) return session;
      if (performance.now() > until) throw new Error(`the session stays ${JSON.stringify(session)}`);
      await delay(AGAIN_MS);
    }
  }

  /** @returns what the command printed */
  async run(command: string): Promise<string> {
    const { id } = await this.call("POST", "/runtime/session", { title: "asked for by a test" });
    const parts = [{ type: "text", text: `run: ${command}` }];
    const answer = await this.call("POST", `/runtime/session/${String(id)}/message`, { parts });
    return String((answer["parts"] as readonly Json[])[0]?.["text"]);
  }

  async kill(victim: Victim): Promise<void> {
    if (victim === "service") {
      await this.life.end("SIGKILL");
      this.life = await this.#start();
    } else if (victim === "database") {
      const file = path.join(this.installation.dataDir, "postgres", "postmaster.pid");
      process.kill(Number(readFileSync(file, "utf8").split("\n")[0]), "SIGKILL");
    } else {
      const { id } = await this.call("GET", "/sandbox");
      killSandbox(String(id));
    }
  }

  /** Restarts the session with its work, and kills once meanwhile if there is a victim. */
  async back(victim: Victim | null): Promise<Json> {
    for (let attempt = 0; ; attempt += 1) {
      await this.call("POST", "/restart", { restore_saved: true }).catch((error: unknown) => {
        // The restart whose answer was lost is under way.
        if (!String(error).includes("not_restartable")) throw error;
      });
      if (victim !== null && attempt === 0) {
        await delay(this.#random.between(0, RESTORE_MS));
        await this.kill(victim).catch(() => undefined);
      }
      const session = await this.reached(["running", "failed", "stopped"]);
      if (session["status"] === "running") return session;
      if (attempt > 3) throw new Error(`it does not start: ${JSON.stringify(session["failure"])}`);
    }
  }
}

/** The paths that a session names as not saved or not restored, and how many more are only counted. */
const namedIn = (...lists: readonly unknown[]) => {
  const all = lists.flatMap((left) => (left as readonly Json[] | undefined) ?? []);
  return {
    names: new Set(all.map(({ path: name }) => String(name))),
    more: all.reduce((sum, { count }) => sum + Number(count ?? 1) - 1, 0),
  };
};

describe.skipIf(!sandboxesStartHere)("saved work", () => {
  let installation: Installation;
  let life: Life;
  const start = () => installation.start({ ...LIGHT_AGENT, PLATFORM_SAVE_EVERY_MS: "700" });
  beforeAll(async () => {
    installation = await Installation.open();
    life = await start();
  }, WAIT_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
  }, WAIT_MS);

  it(
    `survives ${KILLS} kills (SAVE_KILLS_SEED=${SEED})`,
    async () => {
      const random = new Random(SEED, "kills");
      const session = await LiveSession.start(life, installation);
      const trial = new Trial({ installation, start }, session, random);
      let before: Content = new Map();
      let kills = 0;
      const lost: string[] = [];
      for (let round = 0; kills < KILLS; round += 1) {
        const wanted = contentOf(await trial.run(`${workOf(random, round)}; ${DIGESTS}`));
        const victim = random.pick(VICTIMS);
        const stopping = trial.call("POST", "/stop", { save: "try" }).catch(() => ({}));
        await delay(random.between(0, SAVE_MS));
        await trial.kill(victim);
        kills += 1;
        await stopping;
        const ended = await trial.reached(["stopped", "failed"]);
        const later = random.chance(0.4) ? random.pick(VICTIMS) : null;
        if (later !== null) kills += 1;
        const again = await trial.back(later);
        // A sandbox that was killed late is found to be lost only now.
        const found = contentOf(
          await trial.run(DIGESTS).catch(async (error: unknown) => {
            if (!String(error).includes("session_not_running")) throw error;
            await trial.back(null);
            return trial.run(DIGESTS);
          }),
        );
        const saved = ended["saved"] as Json | null;
        const restored = again["restored"] as Json | null;
        const known = namedIn(saved?.["pending"], restored?.["skipped"]);
        const isLost = ended["status"] === "failed" || String(saved?.["error"] ?? "") !== "";
        const gone = [...new Set([...wanted.keys(), ...before.keys()])].filter((name) => {
          const now = found.get(name);
          if (now === wanted.get(name) || known.names.has(name)) return false;
          return !isLost || now !== before.get(name);
        });
        if (gone.length > known.more)
          lost.push(...gone.map((name) => `round ${round}, ${victim}, then ${String(later)}: ${name}`));
        expect(lost, JSON.stringify({ victim, later, ended, restored })).toEqual([]);
        before = found;
        process.stdout.write(`after round ${round}: ${kills} of ${KILLS} kills, none lost\n`);
      }
      life = trial.life;
      await trial.call("POST", "/stop", { save: "skip" });
      process.stdout.write(`${kills} kills, ${lost.length} paths lost without a name\n`);
    },
    KILLS * 60_000,
  );
});

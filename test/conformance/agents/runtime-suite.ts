/** The duties of agent runtimes (runtime.ts), run against a service with one provider of sandboxes. Ends with a table of the outcomes. */
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { TEST_MS } from "../../support/patience.ts";
import { TalkingModel } from "../../support/servers/talking-model.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import {
  PROVIDER_KEY,
  type RuntimeRow,
  startWithRuntimes,
} from "../../support/service/sessions/runtime-installation.ts";
import { RUNTIME_CASES } from "./runtime.ts";
import { type RuntimeCase, Talk } from "./runtime-talk.ts";

/** Outcomes and the reasons of failures. */
class Outcomes {
  readonly reasons: string[] = [];
  readonly #byRuntime = new Map<string, Map<string, string>>();

  note(runtime: string, name: string, outcome: string): void {
    const own = this.#byRuntime.get(runtime) ?? new Map<string, string>();
    this.#byRuntime.set(runtime, own.set(name, outcome));
  }

  /** A line for each case. */
  get table(): string {
    const names = [...this.#byRuntime.keys()];
    const width = Math.max(...RUNTIME_CASES.map(({ name }) => name.length));
    const line = (first: string, cells: readonly string[]) =>
      `${first.padEnd(width)}  ${cells.map((cell) => cell.padEnd(12)).join("  ")}\n`;
    const rows = RUNTIME_CASES.map(({ name }) =>
      line(
        name,
        names.map((one) => this.#byRuntime.get(one)?.get(name) ?? "-"),
      ),
    );
    return `\n${line("", names)}${rows.join("")}\n${this.reasons.join("\n")}\n`;
  }
}

export interface RuntimeSuite {
  readonly rows: readonly RuntimeRow[];
  /** Of the service. */
  readonly settings: Readonly<Record<string, string>>;
  readonly cases: readonly RuntimeCase[];
}

export const runtimeSuite = ({ rows, settings, cases }: RuntimeSuite): void => {
  const database = useRunDatabase();
  const model = new TalkingModel(PROVIDER_KEY);
  const outcomes = new Outcomes();
  let installation: Installation;
  let life: Life;
  let pid: string;

  beforeAll(async () => {
    installation = await Installation.open();
    ({ life, pid } = await startWithRuntimes(installation, model, {
      rows,
      settings: { ...database(), ...settings },
    }));
  }, TEST_MS * 2);
  afterAll(async () => {
    process.stderr.write(outcomes.table);
    model.stop();
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  describe.each(rows)("$name", ({ record: { lacks }, ...row }) => {
    const subject = { ...row, lacks };
    let talk: Talk | null = null;
    let others: Talk[] = [];
    const start = async (body: Json): Promise<Talk> => {
      const started = new Talk(await LiveSession.startIn(life, pid, body));
      others.push(started);
      return started;
    };
    const fire = async (slug: string): Promise<Talk> => {
      const { session_id: id } = await life.call("POST", `/v1/projects/${pid}/triggers/${slug}/fire`, {});
      const started = new Talk(await LiveSession.running(life, pid, String(id)));
      others.push(started);
      return started;
    };

    afterEach(async ({ task }) => {
      for (const other of others) await other.session.stop().catch(() => undefined);
      others = [];
      // The next case gets another one if this one is still at work.
      if (task.result?.state !== "pass") {
        await talk?.session.stop().catch(() => undefined);
        talk = null;
      }
    }, TEST_MS);
    afterAll(() => talk?.session.stop(), TEST_MS);

    it.each(cases)(
      "$name",
      async ({ name, ability, run }) => {
        const reason = ability === null ? undefined : lacks[ability];
        outcomes.note(subject.name, name, "failed");
        talk ??= new Talk(await LiveSession.startIn(life, pid, { agent_name: `${subject.name}-allow` }));
        const place = { life, pid, model, key: PROVIDER_KEY };
        const held = await run({ subject, place, talk, start, fire }).then(
          () => true,
          (error: unknown) => {
            if (reason !== undefined) return false;
            outcomes.reasons.push(`${subject.name}: ${name}: ${String(error).slice(0, 1200)}`);
            throw error;
          },
        );
        if (held && reason !== undefined) throw new Error(`the record says that it cannot: ${reason}`);
        outcomes.note(subject.name, name, held ? "held" : "declared");
      },
      TEST_MS,
    );
  });
};

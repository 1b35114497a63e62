/**
 * `npm run bench:runtimes [-- --rounds 3 --only codex,gemini]`: from the request for a session to the first words of its agent, for each
 * agent runtime with its real program, cold and in a sandbox that waited for the session, and the memory of the sandbox (PSS) when it rests
 * again. The model is on this machine and answers at once.
 *
 * In each round, the runtimes take turns in the order of the table, first cold, then waiting: as for a person who is about to start a session,
 * one sandbox waits, and none is started in its place. A first round warms everything up and is not counted. Packages that npm has to bring
 * are brought before.
 *
 * It measures and judges nothing. The last line is one JSON object.
 */
import { randomUUID } from "node:crypto";
import { loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { promptOf, TalkingModel } from "../support/servers/talking-model.ts";
import { WAIT_MS } from "../support/patience.ts";
import { Installation, type Json, type Life } from "../support/service/process-service.ts";
import {
  PROVIDER_KEY,
  RUNTIME_ROWS,
  startWithRuntimes,
} from "../support/service/sessions/runtime-installation.ts";
import { middle, mib } from "./boot/figures.ts";
import { memoryOf, placeOf, stopWhole } from "./boot/places.ts";
import { untilReady } from "./boot/warm.ts";
import { wholeFrom1 } from "./figures.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    only: { type: "string", default: RUNTIME_ROWS.map(({ name }) => name).join(",") },
  },
});
const rounds = wholeFrom1("rounds", values.rounds);
const only = values.only.split(",");

const LOOK_MS = 20;

/** One session, ms since its request and MiB. */
interface Measured {
  /** The session is running: its agent takes messages. */
  readonly running: number;
  /** The agent's first words are in the conversation. */
  readonly answered: number;
  /** The whole sandbox, after the turn. */
  readonly memory: number;
  /** Whether it waited for the session. */
  readonly waited: boolean;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  const end = performance.now() + WAIT_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error("an agent did not answer in time");
    await delay(LOOK_MS);
  }
};

const measure = async (life: Life, projectId: string, agent: Json): Promise<Measured> => {
  const word = `word-${randomUUID()}`;
  const sent = performance.now();
  const prompt = promptOf([{ say: word }]);
  const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {
    ...agent,
    initial_prompt: prompt,
  });
  const target = `/v1/projects/${projectId}/sessions/${String(id)}`;
  let running = 0;
  await until(async () => {
    const { status, failure } = await life.call("GET", target);
    if (status === "failed") throw new Error(JSON.stringify(failure));
    if (status === "running") running = performance.now() - sent;
    return running > 0;
  });
  const conversation = () => life.call("GET", `${target}/conversation`);
  await until(async () =>
    ((await conversation())["items"] as readonly Json[]).some(
      ({ role, content }) => role === "agent" && JSON.stringify(content).includes("word-"),
    ),
  );
  const answered = performance.now() - sent;
  const sandbox = await life.call("GET", `${target}/sandbox`);
  const place = placeOf(String(sandbox["id"]));
  await until(async () => ((await conversation())["state"] as Json)["state"] === "idle");
  const memory = mib(memoryOf(place).pss);
  await stopWhole(life, target, place);
  return { running, answered, memory, waited: sandbox["waited"] === true };
};

const installation = await Installation.open();
const model = new TalkingModel(PROVIDER_KEY);
try {
  const rows = RUNTIME_ROWS.filter(({ name }) => only.includes(name));
  const { life, pid } = await startWithRuntimes(installation, model, { rows, settings: {} });
  /** A project whose sandboxes wait with this runtime. */
  const projects = new Map<string, string>();
  for (const { name, provider, table } of rows) {
    const manifest = `[agents.default]\n${table}\nmodel = "${provider}/talking"\npermissions = "allow"\n`;
    projects.set(name, await life.project(await installation.repository(manifest)));
  }
  const measureWaiting = async (name: string): Promise<Measured> => {
    const projectId = projects.get(name) ?? "";
    await life.call("POST", `/v1/projects/${projectId}/environment/warm`);
    await untilReady(life, projectId, 1);
    const one = await measure(life, projectId, {});
    if (!one.waited) throw new Error("a session did not get the sandbox that waited");
    return one;
  };
  const measured = new Map(
    rows.flatMap(({ name }) => [name, `${name}, waiting`].map((one) => [one, [] as Measured[]])),
  );
  for (let round = 0; round <= rounds; round += 1)
    for (const row of rows) {
      const cold = await measure(life, pid, { agent_name: `${row.name}-allow` });
      const waiting = await measureWaiting(row.name);
      say(
        `round ${round}  ${row.name}  cold ${Math.round(cold.answered)} ms, waiting ${Math.round(waiting.answered)} ms`,
      );
      if (round === 0) continue;
      measured.get(row.name)?.push(cold);
      measured.get(`${row.name}, waiting`)?.push(waiting);
    }
  const figures = [...measured].map(([runtime, all]) => ({
    runtime,
    running_ms: Math.round(middle(all.map(({ running }) => running))),
    answered_ms: Math.round(middle(all.map(({ answered }) => answered))),
    memory_mib: Math.round(middle(all.map(({ memory }) => memory))),
  }));
  for (const { runtime, running_ms, answered_ms, memory_mib } of figures)
    say(`${runtime.padEnd(24)} running ${running_ms} ms   answered ${answered_ms} ms   ${memory_mib} MiB`);
  say(JSON.stringify({ bench: "runtimes", rounds, load: loadavg()[0], rows: figures }));
  await life.end("SIGTERM");
} finally {
  model.stop();
  await installation.close();
}

/**
 * `npm run bench:conversation [-- --parts opencode,streams,idle --rounds 3 --tokens 100 --every-ms 100 --counts 1,50,500
 * --readers 500 --opencodes 1,4 --sessions 2000 --idle-readers 200 --window-s 30]`: how long a token takes from the model
 * to an event in a browser's hands, what a turn writes, and what a conversation costs that rests.
 *
 * `opencode`: all parts are real. A model on loopback writes tokens that carry their instant. They are read from
 * `GET …/conversation/events` of sessions in sandboxes, and, by turns, from `/event` of as many bare opencodes. The last
 * round's rows and bytes of WAL are counted, and those of bare inserts of the same items.
 *
 * `streams`: the service with its Postgres, the daemon's HTTP server and its feed are real, one unix socket for each
 * session. Sandboxes and agents are missing: the daemons are one process, which writes the tokens. Beside it, by turns,
 * a bare server of events in the same process writes the same tokens to as many readers. Last, many readers read one
 * session.
 *
 * `idle`: live sessions of the same kind that rest, beside as many with twins in memory that say nothing. CPU time
 * is from /proc. Memory is taken after a collection, and the figure per session is the growth during the second half.
 *
 * Each figure is the smallest, the median and the largest of the rounds. The first round is not counted. The benchmark
 * measures and judges nothing; its last line is one JSON object.
 */
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { DaemonFarm } from "../support/servers/daemon-farm.ts";
import { Installation } from "../support/service/process-service.ts";
import { spread, told } from "./conversation/figures.ts";
import { idle, settingsFor } from "./conversation/idle.ts";
import { realTurns } from "./conversation/opencode.ts";
import { stream, type Rounds } from "./conversation/streaming.ts";
import { begin } from "./sessions/begin.ts";

const { values } = parseArgs({
  options: {
    parts: { type: "string", default: "opencode,streams,idle" },
    rounds: { type: "string", default: "3" },
    tokens: { type: "string", default: "100" },
    "every-ms": { type: "string", default: "100" },
    counts: { type: "string", default: "1,50,500" },
    readers: { type: "string", default: "500" },
    opencodes: { type: "string", default: "1,4" },
    sessions: { type: "string", default: "2000" },
    "idle-readers": { type: "string", default: "200" },
    "window-s": { type: "string", default: "30" },
  },
});
const numbersOf = (list: string): readonly number[] => list.split(",").map(Number);
const parts = new Set(values.parts.split(","));
const rounds = Number(values.rounds);
const talk = { tokens: Number(values.tokens), everyMs: Number(values["every-ms"]), rounds };

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const summary = ({ ours, bare }: Rounds) => ({
  p50_ms: spread(ours.map(({ p50 }) => p50)),
  p99_ms: spread(ours.map(({ p99 }) => p99)),
  bare_p50_ms: spread(bare.map(({ p50 }) => p50)),
  bare_p99_ms: spread(bare.map(({ p99 }) => p99)),
  more_p50_ms: spread(ours.map(({ p50 }, index) => p50 - (bare[index]?.p50 ?? Number.NaN))),
  more_p99_ms: spread(ours.map(({ p99 }, index) => p99 - (bare[index]?.p99 ?? Number.NaN))),
  seen: `${ours.reduce((sum, { seen }) => sum + seen, 0)} of ${ours.reduce((sum, { written }) => sum + written, 0)}`,
});

const show = (name: string, rows: ReturnType<typeof summary>): void =>
  say(
    `${name}: p50 ${told(rows.p50_ms)} ms, bare ${told(rows.bare_p50_ms)}; p99 ${told(rows.p99_ms)} ms, bare ${told(rows.bare_p99_ms)}; tokens ${rows.seen}`,
  );

const withOpencode = async () => {
  const all: Record<string, unknown> = {};
  for (const count of numbersOf(values.opencodes)) {
    const { written, ...turns } = await realTurns(count, talk);
    const rows = summary(turns);
    show(`opencode, ${count} at once`, rows);
    say(`written: ${JSON.stringify(written)}`);
    all[count] = { ...rows, written };
  }
  return all;
};

const withStreams = async () => {
  const all: Record<string, unknown> = {};
  const counts = numbersOf(values.counts);
  const installation = await Installation.open();
  const farm = await DaemonFarm.start(installation.directory);
  const life = await installation.start({ ...settingsFor(Math.max(...counts)), ...farm.settings });
  try {
    const projectId = await life.project(installation.sample);
    const at = { farm, life, projectId };
    const ids: string[] = [];
    for (const count of counts) {
      ids.push(...(await begin(life, projectId, count - ids.length)));
      const rows = summary(await stream(at, { talkers: ids, readers: ids }, talk));
      show(`streams, ${count} at once`, rows);
      all[count] = rows;
    }
    const [one = ""] = ids;
    const readers = Array.from({ length: Number(values.readers) }, () => one);
    const rows = summary(await stream(at, { talkers: [one], readers }, talk));
    show(`streams, ${readers.length} readers of one`, rows);
    return { ...all, readers: rows };
  } finally {
    await life.end("SIGTERM");
    await farm.end();
    await installation.close();
  }
};

const atRest = async () => {
  const order = {
    sessions: Number(values.sessions),
    readers: Number(values["idle-readers"]),
    windows: rounds,
    windowMs: Number(values["window-s"]) * 1000,
  };
  const all: Record<string, unknown> = {};
  for (const [name, isFollowed] of [
    ["silent", false],
    ["followed", true],
  ] as const) {
    const rest = await idle(order, isFollowed);
    say(`idle, ${name}: ${JSON.stringify(rest)}`);
    all[name] = rest;
  }
  return { ...order, ...all };
};

const load = loadavg().map((value) => Math.round(value * 10) / 10);
say(`${availableParallelism()} cores, load ${load.join(" ")} at the start`);
const result = {
  cores: availableParallelism(),
  load,
  ...talk,
  opencode: parts.has("opencode") ? await withOpencode() : null,
  streams: parts.has("streams") ? await withStreams() : null,
  idle: parts.has("idle") ? await atRest() : null,
};
say(JSON.stringify(result));

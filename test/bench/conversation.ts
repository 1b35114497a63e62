/**
 * `npm run bench:conversation [-- --rounds 1 --tokens 25 --every-ms 100 --counts 1,50,500 --readers 500
 * --sessions 2000 --idle-readers 200 --windows 1 --window-s 8]`: how long a token takes from the daemon to an event in a
 * browser's hands, and what a conversation costs that rests. Its waits add up to two and a half minutes; the rest is the
 * machine's.
 *
 * The service with its Postgres, the daemon's HTTP server and its feed are real, one unix socket for each session. Sandboxes and agents are missing: the daemons are one process, which writes the tokens. Beside it, by turns,
 * a bare server of events in the same process writes the same tokens to as many readers. Then many readers read one
 * session. Last, sessions rest, without readers and with one for some of them. CPU time is from /proc. Memory is taken
 * after a collection, and the figure for one is the growth by the last ones.
 *
 * Each figure is the smallest, the median and the largest of the rounds. The first round is not counted. The benchmark
 * measures and judges nothing; its last line is one JSON object. It leaves nothing behind.
 */
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { spread, told } from "./conversation/figures.ts";
import type { Rounds } from "./conversation/streaming.ts";
import { twins } from "./conversation/twins.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "1" },
    tokens: { type: "string", default: "25" },
    "every-ms": { type: "string", default: "100" },
    counts: { type: "string", default: "1,50,500" },
    readers: { type: "string", default: "500" },
    sessions: { type: "string", default: "2000" },
    "idle-readers": { type: "string", default: "200" },
    windows: { type: "string", default: "1" },
    "window-s": { type: "string", default: "8" },
  },
});
const numbersOf = (list: string): readonly number[] => list.split(",").map(Number);
const talk = {
  tokens: Number(values.tokens),
  everyMs: Number(values["every-ms"]),
  rounds: Number(values.rounds),
};

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const loads = (): readonly number[] => loadavg().map((value) => Math.round(value * 10) / 10);

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

const withTwins = async () => {
  say("The next sessions have a light twin of the daemon in place of a sandbox.");
  const order = {
    talk,
    counts: numbersOf(values.counts),
    readers: Number(values.readers),
    sessions: Number(values.sessions),
    idleReaders: Number(values["idle-readers"]),
    windows: Number(values.windows),
    windowMs: Number(values["window-s"]) * 1000,
  };
  const { streams, idle } = await twins(order, (name, figures) =>
    say(`twins, ${name}, load ${loads()[0]}: ${JSON.stringify(figures)}`),
  );
  const rows = [...streams].map(
    ([name, { rounds, cpu }]) => [name, { ...summary(rounds), cpu_ms_a_token: cpu }] as const,
  );
  for (const [name, row] of rows) show(`twins, ${name}`, row);
  if (idle !== null)
    say(
      `one session at rest of ${order.sessions}: ${JSON.stringify(idle.session)}; one reader: ${JSON.stringify(idle.reader)}`,
    );
  return { streams: Object.fromEntries(rows), idle };
};

const load = loads();
say(`${availableParallelism()} cores, load ${load.join(" ")} at the start`);
const result = {
  cores: availableParallelism(),
  load,
  ...talk,
  twins: await withTwins(),
};
say(JSON.stringify(result));

/**
 * `npm run bench:page [-- --parts size,views,events,memory,talk --sessions 50 --minutes 1 --every-ms 200 --seconds 12 --lines 200]`: what the page costs
 * its reader, beside the budgets. Prints each figure with its aim; the last line is one JSON object. It judges nothing.
 *
 * `size`: the page's files as the service sends them. `views`: the first view in an empty browser, and changes between the pages of
 * a project. `events`: from an event's commit to the page, while the agents of all sessions talk, a token each `--every-ms`.
 * `memory`: the page's heap, after collections, while one session talks for `--minutes`; the slope leaves out the first third.
 * `talk`: a conversation of 5,000 items, while a fence of 20,000 lines grows by `--lines` a second.
 *
 * Real (but for `talk`): the service in its own process, its Postgres, the daemon's HTTP server and feed, Chromium. Not there: sandboxes and agents. The
 * daemons are one process that does what it is told.
 */
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { items, rows, type Delays } from "./page/events.ts";
import { memory } from "./page/memory.ts";
import { pageSize, SIZE_MAX_KB } from "./page/size.ts";
import { onStage, type Stage } from "./page/stage.ts";
import { talk } from "./page/talk.ts";
import { changes, firstViews, type Times } from "./page/views.ts";

const AIMS = { firstViewMs: 500, slowViewMs: 3_000, changeMs: 100, eventMs: 300 } as const;
const FIRST_VIEWS = 5;
const CHANGES = 10;

const { values } = parseArgs({
  options: {
    parts: { type: "string", default: "size,views,events,memory,talk" },
    sessions: { type: "string", default: "50" },
    minutes: { type: "string", default: "1" },
    seconds: { type: "string", default: "12" },
    "every-ms": { type: "string", default: "200" },
    lines: { type: "string", default: "200" },
  },
});
const parts = new Set(values.parts.split(","));
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes is ${values.minutes}; expected a number above 0`);
const work = { seconds: Number(values.seconds), everyMs: Number(values["every-ms"]) };

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const share = (value: number, aim: number): string => `${(value / aim).toFixed(2)} of the aim`;

const times = (name: string, { median, max, count }: Times, aim: number): void =>
  say(`${name}: median ${median} ms, longest ${max} of ${count}; aim ${aim} ms, ${share(median, aim)}`);

const delays = (name: string, { p50, p99, max, seen, of }: Delays): void =>
  say(
    `${name}: p50 ${p50} ms, p99 ${p99}, longest ${max}, ${seen} of ${of} seen; aim at p99 ${AIMS.eventMs} ms, ${share(p99, AIMS.eventMs)}`,
  );

const views = async (stage: Stage) => {
  const first = await firstViews(stage, FIRST_VIEWS);
  times("first view of a project, empty browser", first.project, AIMS.firstViewMs);
  times("first view of the first page, empty browser", first.home, AIMS.firstViewMs);
  times("the same, processor four times slower and 1.6 Mbit/s", first.slowHome, AIMS.slowViewMs);
  const changed = await changes(stage, CHANGES);
  times("change of page, data not at hand", changed.first, AIMS.changeMs);
  times("change of page, data at hand", changed.again, AIMS.changeMs);
  return { first, change: changed.first, changeAgain: changed.again };
};

const events = async (stage: Stage) => {
  const [listed, said] = [await rows(stage, work), await items(stage, work)];
  delays("a new session in the list, since its record's instant", listed.sinceRecord);
  delays("a new session in the list, since the answer to its request", listed.sinceAnswer);
  delays("a message on the session's page", said);
  return { ...work, sessions: stage.sessions.length, listed, said };
};

const held = async (stage: Stage) => {
  const measured = await memory(stage, minutes, (line) => say(line));
  const { slope, first, last } = measured;
  say(
    `memory: ${first.heapMiB.toFixed(2)} to ${last.heapMiB.toFixed(2)} MiB in ${measured.minutes.toFixed(1)} min, ` +
      `slope ${slope.slope.toFixed(2)} ± ${slope.error.toFixed(2)} MiB an hour`,
  );
  return measured;
};

const load = loadavg().map((value) => Math.round(value * 10) / 10);
say(`${availableParallelism()} cores, load ${load.join(" ")} at the start`);
const size = parts.has("size") ? await pageSize() : null;
if (size !== null)
  say(
    `size: ${size.files} files, ${size.gzippedKb} kB compressed; aim ${SIZE_MAX_KB} kB, ${share(size.gzippedKb, SIZE_MAX_KB)}; ` +
      `${size.homeKb} kB with the first page, ${size.laterKb} kB more with pages that are loaded when they are opened, ${size.sessionKb} kB with the page of a session, and ${size.terminalKb} kB with the terminal`,
  );
const isStaged = ["views", "events", "memory"].some((part) => parts.has(part));
const onPage = !isStaged
  ? null
  : await onStage(Number(values.sessions), async (stage) => ({
      views: parts.has("views") ? await views(stage) : null,
      events: parts.has("events") ? await events(stage) : null,
      memory: parts.has("memory") ? await held(stage) : null,
    }));
const talked = parts.has("talk") ? await talk(Number(values.lines)) : null;
if (talked !== null)
  say(
    `talk: ${talked.linesPerSecond} lines a second, ${talked.pauses.count} pauses above 50 ms, the longest ${talked.pauses.longest} ms (aim none); a key p50 ${talked.keys.p50} ms, ` +
      `p99 ${talked.keys.p99} (aim 50); a reader above moved by ${talked.moved} px; 5,000 events left ${talked.heapMiB} MiB (aim 20)`,
  );
say(JSON.stringify({ cores: availableParallelism(), load, size, talked, ...onPage }));

/**
 * `npm run bench:scheduler [-- --counts 10000,100000 --ticks 100]`: what cron triggers cost while none is due. The long form is
 * `--counts 10000,100000,1000000 --ticks 200`.
 *
 * For each count, in a process of its own (`scheduler/holding.ts` says what in it is real): memory a trigger and of the whole
 * process, the time to take all of them up at a start, the poll's tick with nothing due, and to hand all of them out at once.
 * It measures and judges nothing. The last line is one JSON object.
 */
import { parseArgs } from "node:util";
import { rounded, wholeFrom1 } from "./figures.ts";
import { startWorker } from "./programs.ts";
import type { Holding, HoldingOrder } from "./scheduler/holding.ts";

const { values } = parseArgs({
  options: {
    counts: { type: "string", default: "10000,100000" },
    ticks: { type: "string", default: "100" },
  },
});
const counts = values.counts.split(",").map((text) => wholeFrom1("counts", text));
const ticks = wholeFrom1("ticks", values.ticks);

/** A million triggers with their definitions and texts take more than the heap that Node has by itself. */
const HEAP = ["--expose-gc", "--max-old-space-size=8192"];

const held: Holding[] = [];
for (const triggers of counts) {
  const worker = startWorker<HoldingOrder, Holding>("scheduler/holding.ts", HEAP);
  const holding = await worker.ask({ triggers, ticks });
  worker.close();
  held.push(holding);
  process.stdout.write(`${JSON.stringify(holding)}\n`);
}
const [least, most] = [held[0], held.at(-1)];
const growth =
  least === undefined || most === undefined
    ? null
    : {
        triggers: rounded(most.triggers / least.triggers),
        tick: rounded(most.tick_us / least.tick_us),
        schedules_bytes: rounded(most.schedules_bytes / least.schedules_bytes),
      };
process.stdout.write(`${JSON.stringify({ ticks, held, growth })}\n`);

/** What the page of a busy session holds, after a collection, while its agent talks. */
import type { CDPSession } from "playwright-core";
import { setTimeout as delay } from "node:timers/promises";
import { lineThrough, type Line, type Sample } from "../../real-faults/slope.ts";
import { sessionAddress, type Stage } from "./stage.ts";

const MIB = 1024 * 1024;
const SAMPLES = 60;
const INTERVAL_MIN_MS = 2_000;
/** Caches fill and code is compiled: this part of the run says nothing of leaks. */
const WARM_UP_SHARE = 1 / 3;
/** A message of one second, then the next one: at most 3,600 messages and 36,000 tokens an hour. */
const TALK = { tokens: 10, everyMs: 100 } as const;

interface Held {
  readonly heapMiB: number;
  readonly nodes: number;
  readonly listeners: number;
}

const held = async (cdp: CDPSession): Promise<Held> => {
  await cdp.send("HeapProfiler.collectGarbage");
  const { usedSize } = await cdp.send("Runtime.getHeapUsage");
  const { nodes, jsEventListeners } = await cdp.send("Memory.getDOMCounters");
  return { heapMiB: usedSize / MIB, nodes, listeners: jsEventListeners };
};

export interface Memory {
  readonly minutes: number;
  readonly messages: number;
  readonly first: Held;
  readonly last: Held;
  /** MiB an hour after the warm-up, and its standard error. */
  readonly slope: Line;
  readonly samples: readonly number[];
}

const perHour = ({ slope, error }: Line): Line => ({ slope: slope * 60, error: error * 60 });

export const memory = async (stage: Stage, minutes: number, say: (line: string) => void): Promise<Memory> => {
  const { farm, life, projectId, sessions, open } = stage;
  const [id = ""] = sessions;
  const { context, page } = await open();
  await page.goto(sessionAddress(stage, id));
  const cdp = await context.newCDPSession(page);
  await cdp.send("HeapProfiler.enable");
  const over = new AbortController();
  let messages = 0;
  const talking = (async () => {
    while (!over.signal.aborted) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await farm.order({ kind: "talk", sessions: [id], ...TALK });
      messages += 1;
    }
  })();
  const samples: (Sample & Held)[] = [];
  const begun = performance.now();
  const passed = () => (performance.now() - begun) / 60_000;
  try {
    await page.locator(".talk").waitFor();
    do {
      await delay(Math.max(INTERVAL_MIN_MS, (minutes * 60_000) / SAMPLES));
      const now = await held(cdp);
      samples.push({ minutes: passed(), value: now.heapMiB, ...now });
      say(
        `memory: ${passed().toFixed(1)} min, ${messages} messages, heap ${now.heapMiB.toFixed(2)} MiB, ${now.nodes} nodes, ${now.listeners} listeners`,
      );
    } while (passed() < minutes);
    const { status } = await life.call("GET", `/v1/projects/${projectId}/sessions/${id}`);
    if (status !== "running") throw new Error(`the session is ${String(status)}, so the figures say nothing`);
  } finally {
    over.abort();
    await talking;
    await context.close();
  }
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) throw new Error("nothing was measured");
  const shown = ({ heapMiB, nodes, listeners }: Held): Held => ({ heapMiB, nodes, listeners });
  return {
    minutes: last.minutes,
    messages,
    first: shown(first),
    last: shown(last),
    slope: perHour(lineThrough(samples.filter((sample) => sample.minutes >= minutes * WARM_UP_SHARE))),
    samples: samples.map(({ heapMiB }) => Math.round(heapMiB * 100) / 100),
  };
};

/**
 * Sessions with a light twin of the daemon (programs/sandboxes/daemon-farm.ts) in place of a sandbox: first they stream, then they
 * rest.
 */
import { DaemonFarm } from "../../support/servers/daemon-farm.ts";
import { Installation } from "../../support/service/process-service.ts";
import { begin } from "../sessions/begin.ts";
import { cpuOf, eachOf, restOf, settingsFor, type Each, type Rest, type Windows } from "./idle.ts";
import { openConversations } from "./readers.ts";
import { stream, type Rounds, type Talk } from "./streaming.ts";

export interface TwinsOrder extends Windows {
  readonly talk: Talk & { readonly rounds: number };
  /** How many sessions stream at once, smallest first. */
  readonly counts: readonly number[];
  /** How many read one session. */
  readonly readers: number;
  /** How many rest, and how many of them are read. */
  readonly sessions: number;
  readonly idleReaders: number;
}

export interface Streamed {
  readonly rounds: Rounds;
  /** CPU time for each token and reader, ms, in all rounds. */
  readonly cpu: { readonly service: number; readonly postgres: number };
}

export interface Twins {
  readonly streams: ReadonlyMap<string, Streamed>;
  readonly idle: {
    readonly empty: Rest;
    readonly first: Rest;
    readonly all: Rest;
    readonly read: Rest;
    /** One session of those between `first` and `all`, and one reader. */
    readonly session: Each;
    readonly reader: Each;
  } | null;
}

/** @param told gets each figure as it is known. */
export const twins = async (order: TwinsOrder, told: (name: string, of: object) => void): Promise<Twins> => {
  const { talk, counts, sessions } = order;
  const installation = await Installation.open();
  const farm = await DaemonFarm.start(installation.directory);
  const most = Math.max(sessions, ...counts);
  const life = await installation.start({ ...settingsFor(most), ...farm.settings }, "measured");
  try {
    const projectId = await life.project(installation.sample);
    const empty = sessions > 0 ? await restOf(life, order) : null;
    if (empty !== null) told("no session at rest", empty);
    const ids: string[] = [];
    const streams = new Map<string, Streamed>();
    const streamed = async (name: string, talkers: readonly string[], readers: readonly string[]) => {
      const before = cpuOf(life.pid);
      const rounds = await stream({ farm, life, projectId }, { talkers, readers }, talk);
      const after = cpuOf(life.pid);
      const tokens = readers.length * talk.tokens * (talk.rounds + 1);
      const each = (ms: number): number => Math.round((ms / tokens) * 1000) / 1000;
      const cpu = {
        service: each(after.service - before.service),
        postgres: each(after.postgres - before.postgres),
      };
      streams.set(name, { rounds, cpu });
      told(name, { ...rounds, cpu });
    };
    for (const count of counts) {
      ids.push(...(await begin(life, projectId, count - ids.length)));
      await streamed(String(count), ids, ids);
    }
    const [one = ""] = ids;
    if (order.readers > 0)
      await streamed(
        `${order.readers} readers of 1`,
        [one],
        Array.from({ length: order.readers }, () => one),
      );
    if (empty === null) return { streams, idle: null };
    const first = await restOf(life, order);
    told(`${ids.length} at rest`, first);
    const former = ids.length;
    ids.push(...(await begin(life, projectId, sessions - former)));
    const all = await restOf(life, order);
    told(`${ids.length} at rest`, all);
    const open = await openConversations(life, projectId, ids.slice(-order.idleReaders));
    const read = await restOf(life, order);
    told(`with ${open.length} readers of as many`, read);
    for (const { close } of open) close();
    const session = eachOf(first, all, sessions - former);
    const reader = eachOf(all, read, open.length);
    return { streams, idle: { empty, first, all, read, session, reader } };
  } finally {
    await life.end("SIGTERM");
    await farm.end();
    await installation.close();
  }
};

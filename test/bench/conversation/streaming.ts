/** Tokens of simulated daemons, on their way to readers, beside the same tokens from a bare server of events. */
import type { DaemonFarm } from "../../support/servers/daemon-farm.ts";
import type { Life } from "../../support/service/process-service.ts";
import { latenciesOf, type Latencies } from "./figures.ts";
import { allSeen, openConversations, openReader, plainText, type Reader } from "./readers.ts";

export interface Talk {
  readonly tokens: number;
  readonly everyMs: number;
}

/** `talkers` speak; `readers` are the sessions that are read: one reader for each entry. */
export interface Crowd {
  readonly talkers: readonly string[];
  readonly readers: readonly string[];
}

/** One round with the readers that are open. */
const round = async (readers: readonly Reader[], talk: Talk, speak: () => Promise<unknown>) => {
  await speak();
  return latenciesOf(await allSeen(readers, talk.tokens), readers.length * talk.tokens);
};

export interface Rounds {
  readonly ours: readonly Latencies[];
  readonly bare: readonly Latencies[];
}

/** The first round warms everything up and is not counted. */
export const stream = async (
  { farm, life, projectId }: { readonly farm: DaemonFarm; readonly life: Life; readonly projectId: string },
  { talkers, readers: read }: Crowd,
  { rounds, ...talk }: Talk & { readonly rounds: number },
): Promise<Rounds> => {
  const conversations = await openConversations(life, projectId, read);
  const bare: Reader[] = [];
  for (const _ of read) bare.push(await openReader({ socketPath: farm.bare, path: "/" }, plainText()));
  const result = { ours: [] as Latencies[], bare: [] as Latencies[] };
  try {
    for (let number = 0; number <= rounds; number += 1) {
      const ours = await round(conversations, talk, () =>
        farm.order({ kind: "talk", sessions: talkers, ...talk }),
      );
      const alone = await round(bare, talk, () => farm.order({ kind: "bare", ...talk }));
      if (number === 0) continue;
      result.ours.push(ours);
      result.bare.push(alone);
    }
    return result;
  } finally {
    for (const { close } of [...conversations, ...bare]) close();
  }
};

/** The hosts that sandboxes ask for and may not reach, in the service's log: an operator sees there what an agent lacks or tries. */
import * as Effect from "effect/Effect";

/** How many hosts of a sandbox are told. A program may ask for any number. */
const HOSTS_MAX = 50;

/** A sandbox, with what the log names of it. */
interface Asking {
  readonly sandbox: string;
  readonly session: string | null;
}

/** @returns what the egress proxy of a sandbox tells: each host once, in the log of who opened this */
export type TellRefused = (of: Asking) => (host: string, reason: string) => void;

export const tellRefused: Effect.Effect<TellRefused> = Effect.map(
  Effect.context<never>(),
  (context) => (of) => {
    const reports = new Set<string>();
    return (host, reason) => {
      if (reports.has(host) || reports.size >= HOSTS_MAX) return;
      reports.add(host);
      const line = Effect.logInfo(`a sandbox asked for a host that it may not reach: ${host}`);
      void Effect.runForkWith(context)(Effect.annotateLogs(line, { ...of, reason }));
    };
  },
);

/** Makes the load of reads, in a process of its own. */
import autocannon from "autocannon";
import { obey } from "../programs.ts";

export interface Order {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
}

export interface Requests {
  readonly answered: number;
  readonly perSecond: number;
  /** Answers that were no 200, and requests without one. */
  readonly failed: number;
}

obey(async ({ port, path, headers, connections, seconds }: Order): Promise<Requests> => {
  const url = `http://127.0.0.1:${port}${path}`;
  const result = await autocannon({ url, headers: { ...headers }, connections, duration: seconds });
  return {
    answered: result["2xx"],
    perSecond: result["2xx"] / result.duration,
    failed: result.non2xx + result.errors + result.timeouts,
  };
});

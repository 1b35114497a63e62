/** A network of names and addresses that does not leave this machine. */
import { connect, Socket } from "node:net";
import type { Network } from "../../src/ground/net/dial.ts";

/** How an address answers: at a port of this machine, with a refusal, or not at all. */
export type Behaviour = number | "refuses" | "silent";

const refusing = (): Socket =>
  new Socket().destroy(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));

export class NetworkDouble implements Network {
  readonly resolved: string[] = [];
  /** `address:port`, in order. */
  readonly dialled: string[] = [];
  readonly #answers: (readonly string[])[];
  readonly #behaviour: (address: string) => Behaviour;

  /** @param answers of the resolver, one after the other. The last one stays. None: no name exists. */
  constructor(
    answers: readonly (readonly string[])[],
    behaviour: (address: string) => Behaviour = () => "refuses",
  ) {
    this.#answers = [...answers];
    this.#behaviour = behaviour;
  }

  readonly resolve = async (host: string): Promise<readonly string[]> => {
    this.resolved.push(host);
    const answer = this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0];
    if (answer === undefined) throw Object.assign(new Error("ENOTFOUND"), { code: "ENOTFOUND" });
    return answer;
  };

  readonly connect = (address: string, port: number): Socket => {
    this.dialled.push(`${address}:${port}`);
    const behaviour = this.#behaviour(address);
    if (behaviour === "refuses") return refusing();
    if (behaviour === "silent") return new Socket();
    return connect({ port: behaviour, host: "127.0.0.1", allowHalfOpen: true });
  };
}

/**
 * The address behind a host that someone else has named: resolved once, checked, and then dialled as a number (threats.md G03, O01). The egress proxy and the sender of outbound webhooks use it.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { isPrivateAddress } from "../domain/repository.ts";

/** The addresses of a name. Tests resolve without a network. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** `private`: no public address, or a private one among them. `late`: the time limit passed. */
export type AddressFault = "private" | "unresolved" | "late";

export class AddressRefusal extends Error {
  readonly fault: AddressFault;
  constructor(fault: AddressFault) {
    super(fault);
    this.fault = fault;
  }
}

const resolveAll: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** Settles with `operation`, or refuses if it takes longer. A later result is ignored. */
const within = async <A>(operation: Promise<A>, milliseconds: number): Promise<A> => {
  const timeout = AbortSignal.timeout(milliseconds);
  const { promise, reject } = Promise.withResolvers<never>();
  timeout.addEventListener("abort", () => reject(new AddressRefusal("late")), { once: true });
  return Promise.race([operation, promise]);
};

export interface Resolving {
  readonly resolve?: Resolve | undefined;
  /** Time limit, in milliseconds. */
  readonly withinMs: number;
}

/**
 * All addresses of a host, without a check.
 *
 * @param host a name or an address, without brackets.
 * @throws AddressRefusal `unresolved` or `late`.
 */
export const addressesOf = async (
  host: string,
  { resolve = resolveAll, withinMs }: Resolving,
): Promise<readonly string[]> => {
  if (isIP(host) !== 0) return [host];
  return within(resolve(host), withinMs).catch((error: unknown) => {
    throw error instanceof AddressRefusal ? error : new AddressRefusal("unresolved");
  });
};

/**
 * An address to dial. The name must not be resolved again afterwards.
 *
 * @throws AddressRefusal
 */
export const publicAddress = async (host: string, resolving: Resolving): Promise<string> => {
  const addresses = await addressesOf(host, resolving);
  const [address] = addresses;
  // A private address among public ones is a rebinding attempt or a split network. Neither may be used.
  if (address === undefined || addresses.some(isPrivateAddress)) throw new AddressRefusal("private");
  return address;
};

import { type Network, type Resolve, resolveAll } from "../ground/net/dial.ts";

/** How long an answer of the resolver is used. A load balancer changes its addresses within minutes. */
const FRESH_MS = 30_000;

/**
 * The addresses behind the service's own names (egress-policy.ts E5). While the resolver fails, the last ones hold. A name that was never
 * resolved has none.
 */
export class ServiceAddresses {
  readonly #resolve: Resolve;
  readonly #known = new Map<
    string,
    { readonly at: number; readonly addresses: Promise<readonly string[]> }
  >();
  readonly #freshMs: number;

  constructor({ resolve = resolveAll }: Network = {}, freshMs = FRESH_MS) {
    this.#resolve = resolve;
    this.#freshMs = freshMs;
  }

  /** @param hosts names, of which wildcards are left out */
  async resolve(hosts: readonly string[]): Promise<readonly string[]> {
    const names = hosts.filter((host) => !host.startsWith("*"));
    return (await Promise.all(names.map((name) => this.#addresses(name)))).flat();
  }

  #addresses(name: string): Promise<readonly string[]> {
    const cached = this.#known.get(name);
    const now = performance.now();
    if (cached !== undefined && now - cached.at < this.#freshMs) return cached.addresses;
    const addresses = this.#resolve(name).catch(() => cached?.addresses ?? []);
    this.#known.set(name, { at: now, addresses });
    return addresses;
  }
}

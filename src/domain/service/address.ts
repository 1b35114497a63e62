/** Host names under which other programs reach a listener. */

/** A listener that is bound to every address of the machine is reached over the loopback address. */
const LOOPBACK_OF: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/**
 * The address under which a client on this machine reaches a listener.
 * @param bound the host that the listener binds: a name, an IPv4 address, or an IPv6 address without brackets
 * @returns the host in its URL form: an IPv6 address in brackets
 */
export const dialAddress = (bound: string): string => {
  const host = LOOPBACK_OF[bound] ?? bound;
  return host.includes(":") ? `[${host}]` : host;
};

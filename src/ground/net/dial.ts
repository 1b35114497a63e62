/**
 * Connects to a host that someone else may have named.
 *
 *  N1 A name is resolved once for each connection. Each of its addresses is checked, and only these are dialled. So a name
 *     that changes its address after the check (DNS rebinding) gains nothing.
 *  N2 If one address of a name may not be dialled, none is: it is a rebinding attempt, or a network with names of its own.
 *     For the latter, the operator lists the host, and all its addresses count.
 *  N3 The next address is dialled when one refuses, or has not answered within a second. Attempts under way go on, and
 *     the first connection wins.
 *
 * Node's own `autoSelectFamily` gives an attempt up when its time has passed. After a delay of the event loop, it gives
 * up a connection that stands, and fails if the other addresses do not answer.
 */
import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { type Allowances, comparableHost, dialRefusal, withoutBrackets } from "./address.ts";
import { type DialAttempt, errorCode, NetFault } from "./fault.ts";

/** The addresses of a name. */
export type Resolve = (host: string) => Promise<readonly string[]>;
/** Begins a connection to a numeric address. */
export type Connect = (address: string, port: number) => Socket;

/** Where names and addresses lead: by default, as on this machine. Tests have a network of their own. */
export interface Network {
  readonly resolve?: Resolve | undefined;
  readonly connect?: Connect | undefined;
}

export interface DialOptions extends Network {
  readonly allowances: Allowances;
  /** To resolve the name, and again to connect, in milliseconds. */
  readonly connectMs: number;
}

export interface Destination {
  /** A name or an address, with or without brackets. */
  readonly host: string;
  readonly port: number;
}

/** After this time without an answer, the next address is dialled as well. In milliseconds. */
const NEXT_MS = 1000;
/** How many addresses of a name are dialled. */
const ADDRESSES_MAX = 8;

/** As this machine resolves names. */
export const resolveAll: Resolve = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);
const connectTcp: Connect = (host, port) => connect({ host, port, noDelay: true, keepAlive: true });

const resolveHost = async (host: string, { resolve = resolveAll, connectMs }: DialOptions) => {
  const { promise: late, reject } = Promise.withResolvers<never>();
  // oxlint-disable-next-line no-restricted-globals -- below Effect, as the resolver itself
  const timer = setTimeout(() => reject(new NetFault(host, { _tag: "Late", ms: connectMs })), connectMs);
  try {
    return await Promise.race([resolve(host), late]);
  } catch (error) {
    throw error instanceof NetFault ? error : new NetFault(host, { _tag: "NoSuchName" });
  } finally {
    clearTimeout(timer);
  }
};

/** The families alternate, so that one that leads nowhere does not use up the time. The resolver says which is first. */
const alternate = (addresses: readonly string[]): readonly string[] => {
  const [first = ""] = addresses;
  const sameFamily = addresses.filter((address) => isIP(address) === isIP(first));
  const others = addresses.filter((address) => isIP(address) !== isIP(first));
  return sameFamily
    .flatMap((address, index) => [address, ...others.slice(index, index + 1)])
    .concat(others.slice(sameFamily.length))
    .slice(0, ADDRESSES_MAX);
};

/** The addresses of a host in the order in which they are dialled (N1, N2). @throws NetFault */
const checkedAddresses = async (text: string, options: DialOptions): Promise<readonly string[]> => {
  const host = withoutBrackets(text);
  // `0x7f.1` is an address too. A name keeps the dot at its end, which the resolver heeds.
  const literal = comparableHost(host);
  const addresses = isIP(literal) === 0 ? await resolveHost(host, options) : [literal];
  if (addresses.length === 0) throw new NetFault(host, { _tag: "NoSuchName" });
  const { allowances } = options;
  for (const address of addresses) {
    const kind = dialRefusal(address, host, allowances);
    if (kind !== null)
      throw new NetFault(host, { _tag: "ForbiddenAddress", address, kind, setting: allowances.setting });
  }
  return alternate([...new Set(addresses)]);
};

/** Dials nothing. A name that does not resolve now may do so later. @throws NetFault if the host may not be dialled (N2) */
export const checkHost = async (host: string, options: DialOptions): Promise<void> => {
  try {
    await checkedAddresses(host, options);
  } catch (error) {
    if (!(error instanceof NetFault) || error.reason._tag === "ForbiddenAddress") throw error;
  }
};

const CONNECT_FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refuses connections",
  ECONNRESET: "closes connections",
  ENETUNREACH: "has no route",
  EHOSTUNREACH: "has no route",
  EADDRNOTAVAIL: "has no route",
  ETIMEDOUT: "does not answer",
};

interface Connected {
  readonly socket: Socket;
  readonly address: string;
}

/** N3. @throws NetFault that names each address */
const race = async (
  { host, port }: Destination,
  addresses: readonly string[],
  { connect: begin = connectTcp, connectMs }: DialOptions,
): Promise<Connected> => {
  const { promise, resolve, reject } = Promise.withResolvers<Connected>();
  const waiting = [...addresses];
  const open = new Map<Socket, string>();
  const failures: DialAttempt[] = [];
  let next: NodeJS.Timeout | undefined;
  const fail = (): void =>
    reject(new NetFault(withoutBrackets(host), { _tag: "NotConnected", attempts: failures }));
  const dialNext = (): void => {
    clearTimeout(next);
    const address = waiting.shift();
    if (address === undefined) return;
    const socket = begin(address, port);
    open.set(socket, address);
    socket.once("connect", () => {
      open.delete(socket);
      resolve({ socket, address });
    });
    socket.on("error", (error) => {
      if (!open.delete(socket)) return;
      const code = errorCode(error);
      failures.push({ address, port, why: CONNECT_FAULTS[code] ?? `fails (${code})` });
      if (waiting.length > 0) dialNext();
      else if (open.size === 0) fail();
    });
    // oxlint-disable-next-line no-restricted-globals -- below Effect, as the sockets themselves
    next = setTimeout(dialNext, NEXT_MS);
  };
  // oxlint-disable-next-line no-restricted-globals -- as above
  const limit = setTimeout(() => {
    for (const address of open.values()) failures.push({ address, port, why: "does not answer" });
    fail();
  }, connectMs);
  dialNext();
  try {
    return await promise;
  } finally {
    clearTimeout(limit);
    clearTimeout(next);
    for (const socket of open.keys()) socket.destroy();
    open.clear();
  }
};

/** Connects to a host. @throws NetFault */
export const dial = async (to: Destination, options: DialOptions): Promise<Socket> => {
  const addresses = await checkedAddresses(to.host, options);
  return (await race(to, addresses, options)).socket;
};

/**
 * The address of a host for a program that dials itself, and one address only. Of several, the first that answers. The
 * program must not resolve the name again.
 *
 * @throws NetFault
 */
export const chooseAddress = async (to: Destination, options: DialOptions): Promise<string> => {
  const [first = "", ...others] = await checkedAddresses(to.host, options);
  if (others.length === 0) return first;
  const { socket, address } = await race(to, [first, ...others], options);
  socket.destroy();
  return address;
};

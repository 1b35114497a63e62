/**
 * A connection between the service and a sandbox elsewhere: TLS 1.3 with a pre-shared key instead of certificates.
 *
 *  K1 Each side proves that it has the key, before any byte of the connection. The key itself is never sent.
 *  K2 Each connection has a Diffie-Hellman exchange: who learns a key later cannot read what was sent before.
 *  K3 The identity that names a key is public. It says which key to check, and nothing else.
 */
import type { Duplex } from "node:stream";
import { type ConnectionOptions, type TlsOptions, type TLSSocket, connect } from "node:tls";

/** A key and its public name. */
export interface ChannelKey {
  readonly identity: string;
  /** 32 random bytes. */
  readonly key: Uint8Array;
}

/** Time limit for a handshake, in milliseconds. */
const HANDSHAKE_MS = 10_000;

/** Without certificates, only suites with a pre-shared key can be agreed on. */
const SUITE = { ciphers: "PSK", minVersion: "TLSv1.3", maxVersion: "TLSv1.3" } as const;

/** Where a channel leads. */
export interface ChannelPlace {
  readonly host: string;
  readonly port: number;
}

/**
 * Opens a channel. It returns at once, and takes bytes until the other side has proved itself. A wrong key is the
 * socket's error.
 */
export const dialChannel = (place: ChannelPlace, { identity, key }: ChannelKey): TLSSocket => {
  const options: ConnectionOptions & { readonly allowHalfOpen: true } = {
    ...SUITE,
    host: place.host,
    port: place.port,
    allowHalfOpen: true,
    pskCallback: () => ({ psk: key, identity }),
    // The key is the other side's identity: there is no certificate with a name.
    checkServerIdentity: () => undefined,
  };
  return connect(options);
};

/** The options of a server that finds the key of each identity. Null if the handshake is refused. */
export const channelServer = (
  keyOf: (socket: TLSSocket, identity: string) => Uint8Array | null,
): TlsOptions & { readonly allowHalfOpen: true } => ({
  ...SUITE,
  allowHalfOpen: true,
  handshakeTimeout: HANDSHAKE_MS,
  pskCallback: (socket, identity) => {
    const key = keyOf(socket, identity);
    return key === null ? null : Buffer.from(key);
  },
});

/** Joins two streams: what one sends, the other gets. */
export const joinStreams = (a: Duplex, b: Duplex): void => {
  a.pipe(b).pipe(a);
  follow(a, b);
  follow(b, a);
};

/** Closes `to` after `from`: at once if `from` broke off, after the remaining data if it ended normally. */
const follow = (from: Duplex, to: Duplex): void => {
  from.on("error", () => to.destroy());
  from.on("close", () => {
    if (!from.readableEnded) to.destroy();
    // Discard anything that `to` still sends.
    else to.end().resume();
  });
};

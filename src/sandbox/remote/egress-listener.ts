/**
 * The way from sandboxes elsewhere to the egress proxy: one port for all of them, and behind it a proxy for each.
 *
 *  R1 A connection belongs to the sandbox whose key it has proved (channel.ts), whatever it then asks for.
 *  R2 A sandbox that is not admitted, or not any more, gets no connection, and those that it has end.
 *  R3 Policy and limits are the proxy's own (../egress.ts), the same as for a sandbox on this machine.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { once } from "node:events";
import { type AddressInfo, type Socket, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Server, type TLSSocket, createServer } from "node:tls";
import { type Egress, type EgressOptions, openEgress } from "../egress.ts";
import { type ChannelKey, type ChannelPlace, channelServer, joinStreams } from "./channel.ts";

/** How many connections the port takes at once, of all sandboxes and of callers without a key. */
const CONNECTIONS_MAX = 16_384;

interface Admitted {
  readonly key: Uint8Array;
  readonly socket: string;
  readonly egress: Egress;
}

export class EgressListener {
  readonly #server: Server;
  readonly #directory: string;
  readonly #admitted = new Map<string, Admitted>();
  /** The sandbox that a connection belongs to. */
  readonly #callers = new WeakMap<Socket, string>();

  private constructor(directory: string) {
    this.#directory = directory;
    this.#server = createServer(
      channelServer((socket, identity) => {
        this.#callers.set(socket, identity);
        return this.#admitted.get(identity)?.key ?? null;
      }),
    );
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.on("secureConnection", (socket: TLSSocket) => this.#carry(socket));
    // A caller without a key, or one that left. Its connection is closed.
    this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
  }

  /** @throws Error if the address cannot be used */
  static async open(place: ChannelPlace): Promise<EgressListener> {
    // Only this process's user may enter it.
    const listener = new EgressListener(await mkdtemp(join(tmpdir(), "platform-egress-")));
    listener.#server.listen(place);
    await once(listener.#server, "listening").catch(async (error: unknown) => {
      await rm(listener.#directory, { recursive: true, force: true });
      throw error;
    });
    return listener;
  }

  /** The port on which it listens. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /**
   * Lets a sandbox connect. A second admission replaces the first.
   * @param caller the sandbox's id as the identity, with its key
   */
  async admit({ identity, key }: ChannelKey, options: EgressOptions): Promise<Egress> {
    this.#admitted.get(identity)?.egress.close();
    const socket = join(this.#directory, identity);
    const egress = await openEgress(socket, options);
    const caller: Admitted = {
      key,
      socket,
      egress: {
        follow: egress.follow,
        close: () => {
          egress.close();
          // The proxy's end of a connection is closed, and with it the caller's.
          if (this.#admitted.get(identity) === caller) this.#admitted.delete(identity);
        },
      },
    };
    this.#admitted.set(identity, caller);
    return caller.egress;
  }

  /** Ends every connection. */
  async close(): Promise<void> {
    for (const { egress } of this.#admitted.values()) egress.close();
    this.#server.close();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #carry(caller: TLSSocket): void {
    caller.on("error", () => caller.destroy());
    const admission = this.#admitted.get(this.#callers.get(caller) ?? "");
    // It was admitted when the handshake began.
    if (admission === undefined) return void caller.destroy();
    joinStreams(caller, connect({ path: admission.socket, allowHalfOpen: true }));
  }
}

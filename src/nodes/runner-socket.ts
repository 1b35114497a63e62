/**
 * The socket on which a node's runner listens for other nodes' messages. Writing must fail once the connection is gone.
 * The library's own writer waits for the connection to open again, which never happens on a server. An answer that
 * another node no longer waits for would then block its request, and the service's shutdown, for ever.
 */
import type { Socket as Connection } from "node:net";
import * as NodeSocket from "@effect/platform-node/NodeSocket";
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Socket, SocketServer } from "effect/socket";

export interface RunnerSocketOptions {
  /** PLATFORM_NODE_HOST */
  readonly nodeHost: string;
  /** PLATFORM_NODE_PORT; 0: any free port. */
  readonly nodePort: number;
}

const closeError = () =>
  new Socket.SocketError({
    reason: new Socket.SocketWriteError({ cause: new Error("the connection is closed") }),
  });

/** The same socket, but its writes fail once its reader has ended or `connection` is closed. */
const failingOnceGone = (socket: Socket.Socket, connection: Connection): Socket.Socket => {
  const closing = Deferred.makeUnsafe<never, Socket.SocketError>();
  const close = Deferred.fail(closing, closeError());
  connection.once("close", () => Effect.runSync(close));
  const orGone = <E>(write: Effect.Effect<void, E>) => Effect.raceFirst(Deferred.await(closing), write);
  return Socket.make({
    // This finalizer is added after the reader's own, so it runs first, and no write comes between the two.
    reader: Effect.tap(socket.reader, () => Effect.addFinalizer(() => close)),
    writer: Effect.map(socket.writer, ({ write, writeAll }) => ({
      write: (chunk) => orGone(write(chunk)),
      writeAll: (chunks) => orGone(writeAll(chunks)),
    })),
  });
};

const listen = ({ nodeHost: host, nodePort: port }: RunnerSocketOptions) =>
  Effect.mapError(
    NodeSocketServer.make({ host, port }),
    ({ cause }) =>
      new Error(
        `cannot listen for the other nodes on ${host}:${port} (PLATFORM_NODE_HOST, PLATFORM_NODE_PORT): ${String(cause)}`,
        { cause },
      ),
  );

/** Listens for the other nodes. If that fails, it refuses the start with a sentence. */
export const runnerSocketLayer = (options: RunnerSocketOptions) =>
  Layer.effect(
    SocketServer.SocketServer,
    Effect.map(listen(options), ({ address, run }) =>
      SocketServer.SocketServer.of({
        address,
        run: (handler) =>
          run(
            (socket) =>
              Effect.flatMap(NodeSocket.NetSocket, (connection) =>
                handler(failingOnceGone(socket, connection)),
              ) as ReturnType<typeof handler>,
          ),
      }),
    ),
  );

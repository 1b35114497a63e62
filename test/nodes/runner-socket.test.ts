import { once } from "node:events";
import { connect, type Socket as Connection } from "node:net";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Result from "effect/Result";
import * as Scope from "effect/Scope";
import { SocketServer, type Socket } from "effect/socket";
import { describe, expect, it } from "vitest";
import { runnerSocketLayer } from "../../src/nodes/runner-socket.ts";

const dial = (port: number) =>
  Effect.promise(async (): Promise<Connection> => {
    const connection = connect(port, "127.0.0.1");
    await once(connection, "connect");
    return connection;
  });

/** A connection, and the server's side of it once it is read from: its writer, and how its reading ends. */
const joined = Effect.gen(function* () {
  const { address, run } = yield* SocketServer.SocketServer;
  const writing = yield* Deferred.make<Socket.Writer>();
  const ended = yield* Deferred.make<void>();
  const handle = (socket: Socket.Socket) =>
    Effect.scoped(
      Effect.gen(function* () {
        // As the cluster's server has them: the writer first, and let go of last.
        const writer = yield* socket.writer;
        const { pull } = yield* socket.reader;
        yield* Deferred.succeed(writing, writer);
        yield* Effect.forever(pull);
      }),
    ).pipe(Effect.ensuring(Deferred.succeed(ended, undefined)));
  yield* Effect.forkScoped(run(handle));
  if (address._tag === "UnixPathAddress") throw new Error("it listens on a port");
  const connection = yield* dial(address.port);
  return { connection, writer: yield* Deferred.await(writing), ended: Deferred.await(ended) };
});

const told = <A>(test: Effect.Effect<A, unknown, SocketServer.SocketServer | Scope.Scope>): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(test).pipe(Effect.provide(runnerSocketLayer({ nodeHost: "127.0.0.1", nodePort: 0 }))),
  );

describe("a message that a runner writes to another node", () => {
  it("arrives", () =>
    told(
      Effect.gen(function* () {
        const { connection, writer } = yield* joined;
        yield* writer.write("one ");
        yield* writer.writeAll(["two ", "three"]);
        connection.setEncoding("utf8");
        let read = "";
        while (!read.endsWith("three"))
          read += String((yield* Effect.promise(() => once(connection, "data")))[0]);
        expect(read).toBe("one two three");
        connection.destroy();
      }),
    ));

  it.each(["write", "writeAll"] as const)("fails once the other node has closed the connection (%s)", (how) =>
    told(
      Effect.gen(function* () {
        const { connection, writer, ended } = yield* joined;
        connection.destroy();
        yield* ended;
        // An answer is written where nothing may interrupt it: it has to end by itself.
        const late = how === "write" ? writer.write("late") : writer.writeAll(["late"]);
        expect(Result.isFailure(yield* Effect.uninterruptible(Effect.result(late)))).toBe(true);
      }),
    ),
  );

  it("fails when the other node closes the connection without reading it", () =>
    told(
      Effect.gen(function* () {
        const { connection, writer, ended } = yield* joined;
        connection.pause();
        const more = Effect.forever(writer.write("x".repeat(1024 * 1024)));
        const stuck = yield* Effect.forkScoped(Effect.uninterruptible(Effect.result(more)));
        connection.destroy();
        yield* ended;
        expect(Result.isFailure(yield* Fiber.join(stuck))).toBe(true);
      }),
    ));
});

/** Sessions that the server ends in the same breath as it answers: their end comes before anybody could ask for more. */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import * as Client from "../../../src/store/postgres/connection/client.ts";

/** A message of PostgreSQL's protocol: its letter, its length, what it says. */
const message = (letter: string, content: string | Buffer): Buffer => {
  const body = Buffer.from(content);
  const head = Buffer.alloc(5);
  head.write(letter, "latin1");
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};

const GREETING = message("R", Buffer.alloc(4));
const READY = message("Z", "I");
/** A statement that was parsed and bound has no rows. */
const DONE = Buffer.concat([
  message("1", ""),
  message("2", ""),
  message("n", ""),
  message("C", "SELECT 0\0"),
]);
const ENDED = message("E", "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0");

/** A server that sends these, each as one write: the first when a client connects, the others as answers. It hangs up after an end. */
const serverThat = (says: readonly Buffer[]) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((socket) => {
        const left = [...says];
        socket.on("error", () => undefined);
        socket.on("data", () => {
          const said = left.shift() ?? Buffer.concat([DONE, READY]);
          if (said.includes(ENDED)) socket.end(said);
          else if (socket.writable) socket.write(said);
        });
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
    (server) => Effect.promise(async () => void (await once(server.close(), "close"))),
  );

const over = (says: readonly Buffer[]) =>
  Effect.gen(function* () {
    const { port } = (yield* serverThat(says)).address() as AddressInfo;
    const url = `postgres://user@127.0.0.1:${port}/nowhere`;
    return Context.get(yield* Layer.build(Client.layer({ url, maxConnections: 1 })), SqlClient.SqlClient);
  });

const outcomeOf = <E extends { readonly reason: { readonly _tag: string } }>(
  statement: Effect.Effect<unknown, E>,
) =>
  Effect.match(statement, {
    onSuccess: () => "done",
    onFailure: ({ reason }) => reason._tag,
  });

describe("a session that the server ends together with an answer", () => {
  it.live("fails the statement that it was opened for, and nothing else", () =>
    Effect.gen(function* () {
      const sql = yield* over([Buffer.concat([GREETING, READY, ENDED])]);
      expect(yield* outcomeOf(sql`SELECT 1`)).toBe("ConnectionError");
    }).pipe(Effect.scoped),
  );

  it.live("costs a waiting caller nothing if the previous statement had its answer", () =>
    Effect.gen(function* () {
      const answer = Buffer.concat([DONE, READY]);
      const sql = yield* over([Buffer.concat([GREETING, READY]), answer, Buffer.concat([answer, ENDED])]);
      yield* sql.unsafe("SELECT 1");
      const both = [sql.unsafe("SELECT 2"), sql.unsafe("SELECT 3")].map(outcomeOf);
      expect(yield* Effect.all(both, { concurrency: 2 })).toEqual(["done", "done"]);
      expect(yield* outcomeOf(sql.unsafe("SELECT 4"))).toBe("done");
    }).pipe(Effect.scoped),
  );
});

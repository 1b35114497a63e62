/** A call to another node that stands still (nodes/call.ts). */
import { it } from "@effect/vitest";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { expect } from "vitest";
import { nodeCaller } from "../../src/nodes/call.ts";

it.live("ends when the node became silent, long before its time limit, and closes its connection", () =>
  Effect.gen(function* () {
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => createServer().listen(0, "127.0.0.1")),
      (open) => Effect.sync(() => open.close()),
    );
    yield* Effect.promise(() => once(server, "listening"));
    let isSilent = false;
    const call = nodeCaller({
      map: { self: "one", isSilent: () => isSilent },
      keys: { credential: Buffer.alloc(32), seal: Buffer.alloc(32) },
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const request = once(server, "request");
    const fiber = yield* Effect.forkChild(
      Effect.flip(call({ is: "there", nodeId: "two", url }, { operation: "git.merge", given: [] }, 600_000)),
    );
    const [{ socket }] = (yield* Effect.promise(() => request)) as [{ socket: NodeJS.EventEmitter }];
    const closed = once(socket, "close");
    isSilent = true;
    expect((yield* Fiber.join(fiber)).message).toBe("The node cannot be reached: it became silent.");
    yield* Effect.promise(() => closed);
  }),
);

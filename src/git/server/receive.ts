/** One push, as `receive-pack` receives it: its hooks ask here, and its first bytes say which kind of push it is. */
import * as Effect from "effect/Effect";
import * as FiberSet from "effect/FiberSet";
import type { Duplex } from "node:stream";
import { listen } from "./channel.ts";
import { type PushHeard, pushListener } from "./pushed.ts";
import { refuseHook, type pushJudge } from "./ref-policy.ts";

/** One line of a hook: two commits and a ref name of at most one packet (64 KiB). */
const maxHookLineBytes = 128 * 1024;

/** The answer when the connection of a push ended before its verdict. */
const LEFT = refuseHook("The connection ended before the service accepted the push.");

interface Talk {
  readonly judge: ReturnType<typeof pushJudge>;
  readonly pushed: PushHeard | undefined;
}

/** Connects a push's hooks with its judge and with the listener for written refs, while the scope is open. */
export const converse = Effect.fnUntraced(function* (channel: Duplex, { judge, pushed }: Talk) {
  const run = yield* FiberSet.makeRuntime<never, void, never>();
  const listener = pushListener(pushed);
  let isOver = false;
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isOver = true;
    }),
  );
  const tell = (reply: string): void => void channel.write(reply);
  listen(channel, maxHookLineBytes, (line) => {
    if (listener.hear(line)) return;
    const reply = judge(line);
    if (typeof reply === "string") tell(reply);
    else if (reply === null) return;
    else if (isOver) tell(LEFT);
    // A hook without an answer would block git until it is killed.
    else run(Effect.onInterrupt(Effect.map(reply, tell), () => Effect.sync(() => tell(LEFT))));
  });
  yield* Effect.forkScoped(listener.answer(channel));
});

/** A packet's length is four hexadecimal digits, and includes those four bytes. */
const packetLength = (bytes: Buffer): number => Number.parseInt(bytes.toString("latin1", 0, 4), 16);

/**
 * Reads from a push's commands, as they pass, whether the client wants all of its refs or none. The capability follows
 * the first command, which follows the lines of a shallow clone.
 */
export const atomicity = (): {
  readonly observe: (chunk: Uint8Array) => void;
  readonly isAtomic: () => boolean;
} => {
  let rest: Buffer | null = Buffer.alloc(0);
  let atomic = false;
  const read = (): void => {
    while (rest !== null && rest.length >= 4) {
      const length = packetLength(rest);
      if (!(length >= 4)) rest = null; // a flush, or no packet: the commands are over
      else if (rest.length < length) return;
      else {
        const line = rest.toString("latin1", 4, length);
        const capabilities = line.indexOf("\0");
        atomic =
          capabilities !== -1 &&
          line
            .slice(capabilities + 1)
            .trim()
            .split(" ")
            .includes("atomic");
        rest = capabilities === -1 ? rest.subarray(length) : null;
      }
    }
  };
  return {
    isAtomic: () => atomic,
    observe: (chunk) => {
      if (rest === null) return;
      rest = Buffer.concat([rest, chunk]);
      read();
    },
  };
};

/**
 * Bounds the bytes of webhook bodies that are in flight: 256 MiB in all, 64 MiB a trigger, 32 MiB an address
 * (api.md 1 "Bodies"). Beyond, a sender is told to come back before a byte of its body is read (threats.md W17).
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Unavailable } from "./api/errors.ts";

const MIB = 1024 * 1024;
const TOTAL_BYTES = 256 * MIB;
const TRIGGER_BYTES = 64 * MIB;
const ADDRESS_BYTES = 32 * MIB;

export interface Sender {
  readonly trigger: string;
  readonly address: string;
}

export class BodyBudget extends Context.Service<
  BodyBudget,
  {
    /**
     * Runs `work` while `bytes` are held for it; fails with 503 where they are not to be had. A body of unknown length
     * begins with none and takes more as it arrives, with what `work` is given.
     */
    readonly within: <A, E, R>(
      sender: Sender,
      bytes: number,
      work: (take: (more: number) => Effect.Effect<void, Unavailable>) => Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, E | Unavailable, R>;
  }
>()("platform/http/BodyBudget") {}

const accountsOf = ({ trigger, address }: Sender) =>
  [
    ["all", TOTAL_BYTES],
    [`trigger ${trigger}`, TRIGGER_BYTES],
    [`address ${address}`, ADDRESS_BYTES],
  ] as const;

export const bodyBudgetLayer: Layer.Layer<BodyBudget> = Layer.sync(BodyBudget, () => {
  const held = new Map<string, number>();
  const take = (sender: Sender, bytes: number): boolean => {
    const accounts = accountsOf(sender);
    if (accounts.some(([name, limit]) => (held.get(name) ?? 0) + bytes > limit)) return false;
    for (const [name] of accounts) held.set(name, (held.get(name) ?? 0) + bytes);
    return true;
  };
  const giveBack = (sender: Sender, bytes: number): void => {
    for (const [name] of accountsOf(sender)) {
      const left = (held.get(name) ?? 0) - bytes;
      if (left > 0) held.set(name, left);
      else held.delete(name);
    }
  };
  return BodyBudget.of({
    within: (sender, bytes, work) => {
      let taken = 0;
      const more = (count: number) =>
        Effect.suspend(() => {
          if (!take(sender, count)) return Effect.fail(busy());
          taken += count;
          return Effect.void;
        });
      return Effect.ensuring(
        Effect.andThen(
          more(bytes),
          Effect.suspend(() => work(more)),
        ),
        Effect.sync(() => giveBack(sender, taken)),
      );
    },
  });
});

const busy = () =>
  new Unavailable({ error: "Too many webhook bodies are on their way; send it again later.", code: "busy" });

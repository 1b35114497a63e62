/** The services of the store's port as calls over the bridge: of the same shape as the twin's. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { Order } from "./orders.ts";

type Call = (order: Order) => Effect.Effect<unknown, unknown>;

/** Signals of commits stay in the thread (bridge.ts). */
const SIGNALS = new Set(["changed"]);

const proxyOf = (
  shape: object,
  of: { readonly service: string; readonly life: string | null },
  call: Call,
) => {
  const part = (value: unknown, path: readonly string[]): unknown => {
    const order = (given: readonly unknown[] | null): Order => ({ do: "call", ...of, path, given });
    const isSignal = SIGNALS.has(path.at(-1) ?? "");
    if (typeof value === "function")
      return (...given: readonly unknown[]) => (isSignal ? Effect.never : call(order(given)));
    if (Effect.isEffect(value)) return isSignal ? Effect.never : call(order(null));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, part(inner, [...path, name])]),
    );
  };
  return part(shape, []) as object;
};

/** @param twins services of the right shape, for each of `tags`. */
export const storeOver = <Services>(
  twins: Context.Context<Services>,
  tags: readonly { readonly key: string }[],
  { life, call }: { readonly life: string | null; readonly call: Call },
): Context.Context<Services> => {
  let services = twins;
  for (const tag of tags) {
    const shape = twins.mapUnsafe.get(tag.key) as object;
    const proxy = proxyOf(shape, { service: tag.key, life }, call);
    services = Context.add(
      services,
      tag as Context.Service<never, object>,
      proxy,
    ) as Context.Context<Services>;
  }
  return services;
};

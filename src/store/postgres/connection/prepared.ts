/** How a statement is sent, which its caller may choose. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";

/** Whether this effect's statements are prepared: their parsed text, and soon their plan, stay with the connection. */
export const Prepared = Context.Reference<boolean>("platform/store/postgres/Prepared", {
  defaultValue: () => true,
});

/**
 * Plans the statements of an effect each time with their values, such as those of a list with filters: their best plan
 * depends on the values.
 */
export const plannedAnew = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Prepared, false);

/** Whether this effect's statements run on a shared connection. In a transaction they run on the transaction's. */
export const Shared = Context.Reference<boolean>("platform/store/postgres/Shared", {
  defaultValue: () => false,
});

/**
 * Runs the statements of an effect on a connection that others use at the same time. For short reads: the next statement
 * waits for the previous one. An interrupt does not reach the server, which ends the statement or its time limit does.
 */
export const onSharedConnection = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Shared, true);

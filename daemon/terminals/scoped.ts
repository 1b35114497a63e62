/** The terminals of a daemon, for as long as a scope is open. */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { After } from "../conversation/feed.ts";
import type { Controlled } from "../http/control.ts";
import type { Log } from "../logs/log.ts";
import type { Report } from "../report.ts";
import { Terminals } from "./terminals.ts";

interface Parts {
  readonly controlled: Deferred.Deferred<Controlled>;
  readonly report: Report;
  readonly log: Log;
  readonly after: After;
}

/** The commands of people. All of them end when the scope closes. */
export const openTerminals = ({
  controlled,
  report,
  log,
  after,
}: Parts): Effect.Effect<Terminals, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new Terminals({
          launch: (command) =>
            Effect.runPromise(Effect.map(Deferred.await(controlled), ({ launch }) => launch(command))),
          after,
          // oxlint-disable-next-line no-restricted-properties -- for what sockets call, outside any fiber
          typed: () => (report.typedAt = new Date(Date.now()).toISOString()),
          log,
        }),
    ),
    (terminals) => terminals.endAll,
  );

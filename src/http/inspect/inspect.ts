/**
 * Live actors for people (`npm run inspect`): every step of the host, as a page and as the WebSocket of the
 * `@statelyai/inspect` format (page.ts).
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Inspector, type Inspect } from "../../actors/inspector.ts";
import { Transitions } from "../../store/ports/transitions.ts";
import { Feed } from "./feed.ts";
import { openInspectPage } from "./page.ts";

/** How much of the history a new reader gets: rows, and how old they may be, ms. */
const PAST_ROWS = 500;
const PAST_MS = 60 * 60 * 1000;

/** Gives each step to the feed, in order. */
export const inspectInto =
  (feed: Feed): Inspect =>
  (step) =>
    Effect.suspend(() => {
      feed.keep(step);
      return feed.isWatched
        ? Effect.map(Clock.currentTimeMillis, (now) => feed.show(step, now))
        : Effect.void;
    });

/** Shows the service's actors to people at `http://127.0.0.1:{port}/`. `port` 0 takes a free one. */
export const inspectLayer = ({ port }: { readonly port: number }): Layer.Layer<never, never, Transitions> =>
  Layer.effect(
    Inspector,
    Effect.gen(function* () {
      const { recent } = yield* Transitions;
      const past = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        recent({ since: now - PAST_MS, limit: PAST_ROWS }),
      ).pipe(
        Effect.catch((error) =>
          Effect.as(Effect.logWarning("the history of actors cannot be read for the inspector", error), []),
        ),
      );
      const feed = new Feed();
      const page = yield* openInspectPage({ port, feed, past });
      yield* Effect.logInfo(
        `actors can be inspected at ${page.url}, and by Stately's inspector at ${page.socketUrl}`,
      );
      return inspectInto(feed);
    }),
  );

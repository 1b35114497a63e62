/**
 * A user who stops a session, wants to restart it, and stops it for good. Its node stands still after the first request, and the
 * restart gets no answer. Another node takes the actor over and stops the session, and then the first node goes on.
 */
import * as Effect from "effect/Effect";
import { isLive } from "../../../src/domain/session/session.ts";
import { stopSession } from "../../../src/http/steps/sessions/stopping.ts";
import * as SessionEndpoints from "../../../src/http/handlers/sessions.ts";
import { accountOf, type Ask } from "./asking.ts";
import type { Node } from "../world/nodes.ts";
import type { World } from "../world.ts";

/** The user waits before the last request, so that it does not reach the frozen node as well. */
const UNTIL_TAKEN_OVER = "6 seconds";

/** Freezes the node at once, or when a session of it was stopped. */
export const freezeAfterStop = (world: World, ask: Ask, node: Node, ms: number): void => {
  const freeze = () => world.freeze(node, ms);
  const rows = [...world.tables.sessions.values()].map(({ record }) => record);
  const own = rows.filter(({ id, deletedAt }) => deletedAt === null && world.places.isOn(node, id));
  const row = own.find(({ status }) => !isLive(status)) ?? own[0];
  if (row === undefined) return freeze();
  const path = { pid: row.projectId, sid: row.id };
  const about = { account: accountOf(row), id: row.id, elsewhere: node };
  const stop = stopSession(path, {});
  const unanswered = () => ask("stop", about, Effect.delay(stop, UNTIL_TAKEN_OVER));
  const done = () => {
    freeze();
    ask("restart", { ...about, unanswered }, SessionEndpoints.restart(path, {}));
  };
  ask("stop", { ...about, done, unanswered: freeze }, stop);
};

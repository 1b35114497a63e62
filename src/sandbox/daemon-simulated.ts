/**
 * The twin of the daemon's control surface. Every daemon is healthy at once, has accepted its prompt, and never ends a
 * turn.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Stream from "effect/Stream";
import { Readable } from "node:stream";
import { frameEnd } from "../domain/save/frames.ts";
import {
  DaemonClient,
  NoConversation,
  type DaemonHealth,
  type SavingClient,
  type WorkspaceClient,
} from "./daemon.ts";

const HEALTHY: DaemonHealth = {
  status: "ready",
  runtime: { state: "ready" },
  repo: { ready: true, branch: null, commit: null },
  bootstrap: { state: "done" },
  turn: { active: null, active_since: null, last_activity_at: null },
  boot: [],
  error: null,
};

/** Nothing has changed, and there is no file. */
export const emptyWorkspace: WorkspaceClient = {
  changes: (_link, _context, { base, pushed }) =>
    Effect.succeed({
      base_commit: base,
      pushed_commit: pushed,
      head_commit: pushed,
      unpushed_commits: 0,
      uncommitted_total: 0,
      unpushed_total: 0,
      files_changed_total: 0,
      files_changed: [],
    }),
  diff: () => Effect.succeed(""),
  files: () => Effect.succeed({ kind: "directory", entries: [], truncated: false }),
};

/** Nothing has changed. A restoration brings nothing. */
export const emptySaving: SavingClient = {
  listing: (_link, _context, { request: { pushed } }) =>
    Effect.succeed({
      base: pushed,
      head: { ref: null, commit: pushed },
      heads: [],
      items: [],
      commits: [],
      left: [],
    }),
  read: (_link, _context, { items }) =>
    Effect.succeed(
      Readable.from(
        items.map(() => frameEnd("missing")),
        { objectMode: false },
      ),
    ),
  restore: (_link, _context, { body }) =>
    Effect.sync(() => {
      body.destroy();
      return { wip: null, commits: 0, refs: [], files: 0, renamed: [], skipped: [], error: null };
    }),
  retire: () => Effect.void,
};

export const simulatedDaemon = Layer.succeed(DaemonClient, {
  prepare: () => Effect.void,
  claim: () => Effect.void,
  health: () => Effect.succeed(HEALTHY),
  abort: () => Effect.succeed(false),
  goOn: () => Effect.void,
  saving: emptySaving,
  saveByPush: () => Effect.succeed({ wip: null, skipped: [], error: null }),
  turn: () => Effect.never,
  logs: () => Stream.never,
  conversation: () => Stream.never,
  hand: () => Effect.fail(new NoConversation()),
  attach: () => Effect.fail(new NoConversation()),
  interrupt: () => Effect.fail(new NoConversation()),
  answer: () => Effect.fail(new NoConversation()),
  models: () => Effect.fail(new NoConversation()),
  output: () => Effect.succeed(null),
  ports: () => Effect.succeed([]),
  workspace: emptyWorkspace,
  withdraw: () => Effect.void,
  env: (_link, _context, { revision, env }) =>
    Effect.succeed({ changed: Object.keys(env), revision, restarted: true, turn_interrupted: false }),
});

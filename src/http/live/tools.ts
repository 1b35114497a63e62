/**
 * Tells agents that their tools have changed: `notifications/tools/list_changed` of the Model Context Protocol, for clients of the
 * revision 2025-11-25, which keep a stream open for it. All readers of a project follow one tail (tail.ts).
 *
 *  M1 The tail compares what `tools/list` answers. A change that an agent cannot see sends nothing.
 *  M2 A reader that opens its stream lists the tools afterwards or has just done so. Nothing from before is sent.
 */
import { createHash } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { SESSION_KINDS, type SessionKind } from "../../domain/connector/connector.ts";
import { Directory } from "../../services/directory.ts";
import { directTools } from "../../services/connectors/executor.ts";
import { Connectors } from "../../store/ports/connectors/connectors.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { encodeFrame, lookOn, makeTails, reading, Ring, subjectTail, type Framed } from "./tail.ts";

/** Changes that come together are looked at together. */
const GATHER = "50 millis";
const CHANGED = encodeFrame(
  `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })}\n\n`,
);
/** The first bytes of a stream, so that its reader knows that it is open. */
const OPENING = encodeFrame(": open\n\n");

interface ToolsEntry extends Framed {
  /** The sessions whose tools changed. Null for a comment, which all get. */
  readonly kind: SessionKind | null;
}

/** What an agent of each kind of session sees, as digests. */
const toolDigests = Effect.fnUntraced(function* (projectId: string) {
  const digests = new Map<SessionKind, string>();
  for (const startedBy of SESSION_KINDS) {
    const tools = yield* directTools({ projectId, startedBy });
    digests.set(startedBy, createHash("sha256").update(JSON.stringify(tools)).digest("hex"));
  }
  return digests;
});

/** The tails of this node's projects whose agents listen. */
export const toolTails = Effect.gen(function* () {
  const connectors = yield* Connectors;
  const projects = yield* Projects;
  const directory = yield* Directory;
  const follow = Effect.fnUntraced(function* (projectId: string) {
    const ring = new Ring<ToolsEntry>();
    let former = yield* toolDigests(projectId);
    const look = Effect.gen(function* () {
      // A merged manifest is in the directory by then.
      yield* directory.caughtUp;
      const now = yield* toolDigests(projectId);
      const kinds = SESSION_KINDS.filter((kind) => now.get(kind) !== former.get(kind));
      former = now;
      ring.push(kinds.map((kind) => ({ frame: CHANGED, kind })));
    });
    const change = Effect.andThen(
      Effect.raceFirst(connectors.changed(projectId), projects.changed),
      Effect.sleep(GATHER),
    );
    const services = yield* Effect.context<Connectors | Directory>();
    const wake = yield* lookOn({
      ring,
      changed: change,
      look: Effect.provideContext(look, services),
      comment: (frame): ToolsEntry => ({ frame, kind: null }),
    });
    // The tools may have changed before it listened.
    wake();
    return ring;
  });
  return yield* makeTails(follow);
});
export type ToolTails = Effect.Success<typeof toolTails>;

/** The stream of one agent, in the caller's scope. */
export const toolStream = Effect.fnUntraced(function* (
  tails: ToolTails,
  projectId: string,
  startedBy: SessionKind,
) {
  const ring = yield* subjectTail(tails, projectId);
  const follower = yield* ring.attach;
  const frames = reading({
    ring,
    follower,
    from: null,
    isAll: true,
    // Entries were dropped: the tools may have changed.
    read: () => Effect.succeed({ frames: [CHANGED], place: null, isAll: true }),
    pass: (entries) => ({
      frames: entries.filter(({ kind }) => kind === null || kind === startedBy).map(({ frame }) => frame),
      place: null,
    }),
  });
  return Stream.concat(Stream.succeed(OPENING), frames);
});

/** What a step of a build means for the columns of its record: shared by both adapters, so that they cannot differ. */
import {
  environmentBuild,
  type EnvironmentBuildCommand,
  type EnvironmentBuildEvent,
  type EnvironmentBuildSnapshot,
  isLiveBuildState,
} from "../machines/environment-build.ts";
import { BUILD_LOG_BYTES, type EnvironmentBuild } from "./ports/projects/environment-builds.ts";
import type { Change } from "./ports/journal.ts";
import type { NewEvent } from "./ports/events.ts";

export type EnvironmentBuildChange = Change<
  EnvironmentBuildSnapshot,
  EnvironmentBuildEvent,
  EnvironmentBuildCommand
>;

/** A new build's first snapshot and commands. */
export const NEW_BUILD = environmentBuild.start({});

/** The instants that a step sets. Absent ones stay as they are. */
export const buildInstants = ({
  event,
  before,
  after,
  now,
}: Pick<EnvironmentBuildChange, "event" | "before" | "after" | "now">): {
  readonly begunAt?: number;
  readonly endedAt?: number;
} => ({
  ...(event.type === "build.begun" && { begunAt: now }),
  ...(isLiveBuildState(before.state) && !isLiveBuildState(after.state) && { endedAt: now }),
});

/** The event of a build that has just reached its status. `previous`: null for a new one. */
export const buildEvent = (
  { id, projectId, status }: Pick<EnvironmentBuild, "id" | "projectId" | "status">,
  { previous, at }: { readonly previous: EnvironmentBuild["status"] | null; readonly at: number },
): NewEvent => ({
  projectId,
  sessionId: null,
  at,
  type: "environment.build",
  data: { build_id: id, status, previous },
});

const CUT = `\n[The log is longer than ${BUILD_LOG_BYTES / 1024 ** 2} MiB. The rest is not stored.]\n`;

/**
 * The piece that is stored for a text, given the size of the log before. Null if the log is full. The size counts the whole
 * text, so that a full log stays full.
 */
export const logPiece = (
  text: string,
  bytesBefore: number,
): { readonly text: string | null; readonly bytes: number } => {
  const bytes = bytesBefore + Buffer.byteLength(text);
  if (bytes <= BUILD_LOG_BYTES) return { text, bytes };
  return { text: bytesBefore > BUILD_LOG_BYTES ? null : CUT, bytes };
};

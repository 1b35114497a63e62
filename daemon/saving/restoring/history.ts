/* oxlint-disable no-await-in-loop -- contents have an order */
/** Brings the runtime's own record of the conversation back, before the runtime starts (src/domain/runtimes/history.ts). */
import { HISTORY_BYTES_MAX, HISTORY_FILES_MAX, isHistoryPath } from "../../../src/domain/runtimes/history.ts";
import type { RestorePlan } from "../../../src/domain/save/listing.ts";
import type { BroughtHistory, HistoryPlace } from "../command.ts";
import type { FrameSource } from "../frame-source.ts";
import { Writer } from "./write.ts";

type PlannedHistory = NonNullable<RestorePlan["history"]>;

/** Whether it is this runtime's, and nothing but it. */
const isOwn = ({ runtime, id, items }: PlannedHistory, { runtime: own, files }: HistoryPlace): boolean =>
  runtime === own &&
  items.length <= HISTORY_FILES_MAX &&
  items.reduce((sum, { size }) => sum + size, 0) <= HISTORY_BYTES_MAX &&
  items.every(
    ({ kind, path, mode }) =>
      kind === "history" && (mode === "100644" || mode === "100755") && isHistoryPath(path, files, id),
  );

/** Writes all files of a history or none. The frames of its contents are read in any case. @returns null if it could not be written */
export const restoreHistory = async (
  history: PlannedHistory,
  place: HistoryPlace,
  frames: FrameSource,
): Promise<BroughtHistory | null> => {
  const writer = new Writer(place.home);
  const paths: string[] = [];
  let isWhole = isOwn(history, place);
  for (const item of history.items) {
    if (!isWhole) await frames.read(() => undefined);
    else
      try {
        await writer.take(item.path, item, frames);
        paths.push(item.path);
      } catch {
        isWhole = false;
      }
  }
  if (isWhole) return { id: history.id, at: history.at };
  for (const path of paths) writer.remove(path);
  return null;
};

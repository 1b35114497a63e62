/** A session's live log: the service's stream of it, and the newest lines for the page to show. */
import { keepStream, type Stream } from "../../live/stream.ts";

/** The page stays fast with this many lines. The API has the rest. */
const SHOWN_LINES = 3000;

export interface LogLine {
  readonly sandbox_id: string;
  readonly at: string | null;
  readonly source: string;
  readonly line: string;
}

export interface Log {
  /** The newest, oldest first. Null where lines are missing. */
  readonly lines: readonly (LogLine | null)[];
  /** How many lines of the stream came before them. */
  readonly dropped: number;
  /** Whether the service has answered. */
  readonly isHeard: boolean;
}

/**
 * A log that is followed while somebody wants it.
 *
 * @param path of the session in the API
 */
export const followLog = (path: string, changed: () => void) => {
  let lines: (LogLine | null)[] = [];
  let dropped = 0;
  let isHeard = false;
  let stream: Stream | null = null;
  const stop = (): void => {
    stream?.end();
    stream = null;
  };
  const add = (line: LogLine | null): void => {
    lines.push(line);
    const more = lines.length - SHOWN_LINES;
    if (more > 0) {
      lines.splice(0, more);
      dropped += more;
    }
    changed();
  };
  const heard = (): void => {
    isHeard = true;
    changed();
  };
  const open = (): EventSource => {
    const source = new EventSource(`${path}/logs`);
    let isFirst = true;
    source.addEventListener("open", (event) => {
      // The service's first frame has the same name as the browser's own event.
      if (event instanceof MessageEvent) return;
      // A new stream starts at the beginning of the log. One that the browser reopened continues.
      if (isFirst) [lines, dropped] = [[], 0];
      isFirst = false;
      heard();
    });
    source.addEventListener("line", ({ data }) => add(JSON.parse(data)));
    source.addEventListener("reset", () => add(null));
    source.addEventListener("error", heard);
    return source;
  };
  return {
    now: (): Log => ({ lines, dropped, isHeard }),
    /** Reads on while it is wanted. The lines stay. */
    want: (isWanted: boolean): void => {
      if (!isWanted) stop();
      else stream ??= keepStream(open);
    },
    end: stop,
  };
};

/** The tab of the log. */
import { memo } from "react";
import { logClock } from "../../elements/format.ts";
import type { Log, LogLine } from "./log.ts";

const Line = memo(
  ({ line, isNewSandbox }: { readonly line: LogLine | null; readonly isNewSandbox: boolean }) => {
    if (line === null) return <span className="quiet">{"… some lines are missing …\n"}</span>;
    const said = line.source === "daemon" ? line.line : `${line.source}: ${line.line}`;
    return (
      <>
        {isNewSandbox && <span className="quiet">{"── new sandbox ──\n"}</span>}
        <span className="quiet">{line.at === null ? "-" : logClock(line.at)}</span>
        {` ${said}\n`}
      </>
    );
  },
);

/** Each boot is a sandbox of its own. */
const isNewSandbox = (lines: Log["lines"], index: number): boolean => {
  const [before, line] = [lines[index - 1], lines[index]];
  return Boolean(before && line && before.sandbox_id !== line.sandbox_id);
};

export const LogView = ({ log: { lines, dropped, isHeard } }: { readonly log: Log }) => {
  if (!isHeard) return <p className="loading">Loading…</p>;
  if (lines.length === 0) return <p className="quiet">No logs yet.</p>;
  return (
    <pre className="logs">
      {lines.map((line, index) => (
        <Line key={dropped + index} line={line} isNewSandbox={isNewSandbox(lines, index)} />
      ))}
    </pre>
  );
};

/** How a session's sandbox boots: its steps, from the sandbox's record and from the daemon's log. */
import { useEffect, useState } from "react";
import { duration, elapsed, now } from "../elements/format.ts";
import type { Log } from "./tabs/log.ts";
import type { Sandbox, Session } from "./session.ts";

interface Span {
  readonly label: string;
  /** In ms since the epoch. */
  readonly from: number;
  readonly to: number;
  /** The boot ended before the step did. */
  readonly isOpen?: true;
}

/** A step as the boot's records have it: null, if it did not begin or end. `open` names one that had not ended when the boot did. */
type Step = readonly [label: string, from: number | null, to: number | null, open?: string];

interface Boot {
  readonly session: Session;
  readonly sandbox: Sandbox | null;
  readonly log: Log;
}

/** The width of the longest boot, in columns of a table. */
const COLUMNS = 60;
/** A longer time before the sandbox was asked for belongs to an earlier boot of the session. */
const FIRST_MS = 60_000;
const STEP = /^boot step=([a-z_]{1,40}) at_ms=\d+$/;
const TICK_MS = 1000;

const instant = (at: string | null | undefined): number | null => (at ? Date.parse(at) : null);

/** When the daemon reached each step. */
const stepsIn = ({ lines }: Log, sandboxId: string): ReadonlyMap<string, number> => {
  const steps = new Map<string, number>();
  for (const line of lines) {
    if (line?.source !== "daemon" || line.sandbox_id !== sandboxId || line.at === null) continue;
    const [, step] = STEP.exec(line.line) ?? [];
    if (step !== undefined && !steps.has(step)) steps.set(step, Date.parse(line.at));
  }
  return steps;
};

/** When the newest boot ended without an agent. Null: it has not. */
const endOf = ({ session, sandbox }: Boot): number | null => {
  if (sandbox === null || sandbox.active_at !== null) return null;
  return instant(sandbox.ended_at) ?? (session.status === "failed" ? instant(session.failure?.at) : null);
};

/** A step that the boot's end cut short lasted until then. */
const spanOf =
  (end: number | null) =>
  ([label, from, to, open]: Step): readonly Span[] => {
    if (from === null) return [];
    if (to !== null) return to < from ? [] : [{ label, from, to }];
    return end === null || open === undefined || end < from
      ? []
      : [{ label: open, from, to: end, isOpen: true }];
  };

/** The steps of the newest boot, as far as they are known, in the order in which they begin. */
const bootSpans = (boot: Boot): readonly Span[] => {
  const { session, sandbox, log } = boot;
  if (sandbox === null) return [];
  const steps = stepsIn(log, sandbox.id);
  const asked = instant(sandbox.created_at);
  const accepted = instant(session.created_at);
  const isFirst = accepted !== null && asked !== null && asked - accepted < FIRST_MS;
  const started = instant(sandbox.boot_started_at);
  const active = instant(sandbox.active_at);
  const at = (step: string): number | null => steps.get(step) ?? null;
  // A setup command and a prompt are not part of every boot, so a missing end of theirs says nothing.
  const all: Step[] = [
    ["Branch created", isFirst ? accepted : null, asked],
    ["Waited until the machine had room", asked, started, "Machine, no room after"],
    [
      sandbox.waited ? "Took a sandbox that was ready" : "Sandbox created",
      started,
      at("listening"),
      "Sandbox, not ready after",
    ],
    ["Got access to the repository", at("listening"), at("credential"), "Repository, no access after"],
    ["Repository cloned", at("credential"), at("cloned"), "Repository, not cloned after"],
    ["Agent runtime started", at("runtime_started"), at("runtime_ready"), "Agent runtime, not ready after"],
    ["Reported ready", at("ready"), active, "Session, not running after"],
    ["Setup command", at("cloned"), at("setup_ended")],
    ["Prompt accepted", at("setup_ended") ?? at("ready"), at("prompt_accepted")],
  ];
  // Without the daemon's lines, the sandbox's record has the sum.
  if (at("listening") === null) all.push(["Sandbox booted", started ?? asked, active]);
  return all.flatMap(spanOf(endOf(boot))).toSorted((a, b) => a.from - b.from || a.to - b.to);
};

/** Minutes with their seconds: a boot's deadline is a few of them. */
const lasted = (ms: number): string => (ms < 60_000 ? duration(ms) : elapsed(ms));

const SpanRow = ({
  span: { label, from, to, isOpen },
  begin,
  all,
}: {
  readonly span: Span;
  readonly begin: number;
  readonly all: number;
}) => {
  const before = Math.min(COLUMNS - 1, Math.floor(((from - begin) / all) * COLUMNS));
  const width = Math.max(1, Math.min(COLUMNS - before, Math.round(((to - from) / all) * COLUMNS)));
  const after = COLUMNS - before - width;
  return (
    <tr>
      <th scope="row">{label}</th>
      <td className="duration">{lasted(to - from)}</td>
      {before > 0 && <td colSpan={before} />}
      <td colSpan={width} className={isOpen === true ? "bar open" : "bar"} />
      {after > 0 && <td colSpan={after} />}
    </tr>
  );
};

/** The steps of the newest boot as a waterfall. */
export const BootSteps = (boot: Boot) => {
  const spans = bootSpans(boot);
  const [first] = spans;
  if (first === undefined) return null;
  const end = Math.max(...spans.map(({ to }) => to));
  return (
    <div className="boot">
      <h3>
        Boot <span className="quiet">{lasted(end - first.from)}</span>
      </h3>
      <table className="waterfall">
        <colgroup>
          <col className="label" />
          <col className="duration" />
          <col span={COLUMNS} />
        </colgroup>
        <tbody>
          {spans.map((span) => (
            <SpanRow key={span.label} span={span} begin={first.from} all={Math.max(1, end - first.from)} />
          ))}
        </tbody>
      </table>
    </div>
  );
};

/** What happens now, by the last step that the daemon reached. */
const NEXT: readonly (readonly [reached: string, words: string])[] = [
  ["ready", "Giving the agent its prompt"],
  ["cloned", "Starting the agent"],
  ["listening", "Cloning the repository"],
];

/** The step that is under way, and since when, in ms since the epoch. */
const underWay = ({ session, sandbox, log }: Boot): readonly [words: string, since: number] => {
  const changed = Date.parse(session.updated_at);
  if (session.status === "queued") return ["Waiting for a free session", changed];
  if (session.status === "branching") return ["Creating the branch", changed];
  if (sandbox === null || sandbox.ended_at !== null) return ["Waiting until the machine has room", changed];
  const begun = instant(sandbox.boot_started_at);
  if (begun === null) return ["Waiting until the machine has room", Date.parse(sandbox.created_at)];
  const steps = stepsIn(log, sandbox.id);
  for (const [reached, words] of NEXT) {
    const since = steps.get(reached);
    if (since !== undefined) return [words, since];
  }
  return ["Creating the sandbox", begun];
};

/** A session that starts: what it has done, what it does, and for how long. */
export const BootWait = (boot: Boot) => {
  const [, tick] = useState(0);
  useEffect(() => {
    // oxlint-disable-next-line no-restricted-globals -- the browser's timer
    const ticking = setInterval(() => tick((count) => count + 1), TICK_MS);
    return () => clearInterval(ticking);
  }, []);
  const isNew = boot.sandbox?.ended_at === null;
  const spans = isNew ? bootSpans(boot) : [];
  const [words, since] = underWay(boot);
  return (
    // The clock is no news, and not read aloud.
    <div className="boot-wait" aria-live="off">
      <ol>
        {spans.map(({ label, from, to }) => (
          <li key={label} className="done">
            {label} <span className="quiet">{duration(to - from)}</span>
          </li>
        ))}
        <li>
          {words}… <span className="quiet">{elapsed(now() - since)}</span>
        </li>
      </ol>
    </div>
  );
};

/** The box that says what a merge will do before a person merges: whether it succeeds, what it lacks, who may, and in which form. */
import type { ReactNode } from "react";
import { tellAgent } from "../diff/asking.tsx";
import { planFiles } from "../diff/files.ts";
import { counted } from "../elements/format.ts";
import { notice } from "../frame/notices.ts";
import { projectLink } from "../elements/parts.ts";
import { isLive } from "../projects/project.ts";
import { lackedRole } from "../frame/roles.ts";
import { FrameAct, RoleAct } from "../ui/act.tsx";
import { CopyBlock, CopyLine, Prose } from "../ui/parts.tsx";
import { type Change, type ChangeData, sourceFor } from "./request.ts";
import {
  conflictAsk,
  conflictCommands,
  lackedApprovals,
  verdictWords,
  waitedFor,
  warningPlace,
} from "./words.ts";

/** As many paths as a page shows. The API has them all. */
const CONFLICTS_SHOWN = 50;

/** How many files' lines the reader has not seen, as a sentence. */
const hiddenWords = (data: ChangeData): string => {
  const { hidden } = planFiles(data.diff, sourceFor(data));
  return hidden === 0 ? "" : `${counted(hidden, "file is", "files are")} not shown.`;
};

const Point = ({
  tone,
  children,
}: {
  readonly tone: "good" | "bad" | "warn" | "quiet";
  readonly children: ReactNode;
}) => (
  <li className="merge-point" data-tone={tone}>
    {children}
  </li>
);

const Paths = ({ paths }: { readonly paths: readonly string[] }) => (
  <ul className="dots">
    {paths.slice(0, CONFLICTS_SHOWN).map((path) => (
      <li key={path}>
        <code>{path}</code>
      </li>
    ))}
    {paths.length > CONFLICTS_SHOWN && <li>{`and ${paths.length - CONFLICTS_SHOWN} more`}</li>}
  </ul>
);

const AskAgent = ({ change, session }: Pick<ChangeData, "change" | "session">) => {
  if (session === null) return null;
  const { id, project_id: project, status } = session;
  const asking = conflictAsk(change);
  const ask = async (): Promise<void> => {
    await tellAgent(session, asking);
    notice("The agent was asked.", ["Show the session", projectLink(project, `/sessions/${id}`)]);
  };
  return (
    <>
      <p>
        Ask the agent in <a href={projectLink(project, `/sessions/${id}`)}>its session</a>:
      </p>
      <p>
        <CopyLine text={asking} />{" "}
        <RoleAct
          entry="ask-agent"
          label={isLive(status) ? "Ask the agent" : "Restart and ask"}
          about="to resolve the conflicts"
          className=""
          does={ask}
        />
      </p>
      <p>Or do it in a clone of the repository:</p>
    </>
  );
};

const Conflicts = ({ change, session }: Pick<ChangeData, "change" | "session">) => {
  const { base_ref: base, conflicts: paths } = change;
  if (paths.length === 0)
    return (
      <Point tone="bad">
        <strong>This change request cannot be merged.</strong> The branch and <code>{base}</code> have no
        common history.
      </Point>
    );
  return (
    <Point tone="bad">
      <p>
        <strong>This change request cannot be merged.</strong> The branch and <code>{base}</code> both changed{" "}
        {paths.length === 1 ? "this file" : "these files"}:
      </p>
      <Paths paths={paths} />
      {session === null && (
        <p>
          Merge <code>{base}</code> into the branch, resolve the conflicts and push:
        </p>
      )}
      <AskAgent change={change} session={session} />
      <CopyBlock text={conflictCommands(change)} what="the commands" />
    </Point>
  );
};

/** What a merge would break. It stays possible: a later commit may correct it. */
const Mistakes = ({ change: { warnings, base_ref: base } }: { readonly change: Change }) =>
  warnings.length > 0 && (
    <Point tone="warn">
      <p>
        <strong>
          A merge brings mistakes into <code>{base}</code>.
        </strong>
      </p>
      <ul className="dots">
        {warnings.map((warning) => (
          <li key={JSON.stringify(warning)}>
            <code>{warningPlace(warning)}</code>
            {": "}
            <Prose text={warning.message} />
          </li>
        ))}
      </ul>
    </Point>
  );

const Approvals = ({ change }: { readonly change: Change }) => {
  const lacked = lackedApprovals(change);
  const said = verdictWords(change);
  const waits = waitedFor(change);
  const wishes = change.verdicts.some(({ kind }) => kind === "changes_requested");
  const approved = change.verdicts.some(({ counts }) => counts);
  return (
    <>
      {said !== null && <Point tone={wishes ? "warn" : approved ? "good" : "quiet"}>{said}</Point>}
      {lacked !== null && <Point tone="bad">{lacked}</Point>}
      {waits !== null && <Point tone="quiet">{waits}</Point>}
      {lacked === null && said === null && waits === null && (
        <Point tone="quiet">No one has approved it. This project does not demand it.</Point>
      )}
    </>
  );
};

const ROLES = { viewer: "a viewer", member: "a member", owner: "an owner" };

/** Who may merge, for a reader who may not. */
const Forbidden = () => {
  const needed = lackedRole("merge");
  return (
    needed !== null && (
      <Point tone="quiet">{`Only ${ROLES[needed]} of the project can merge. Ask one of them.`}</Point>
    )
  );
};

const Ways = ({ data, hidden }: { readonly data: ChangeData; readonly hidden: string }) => {
  const { change, project } = data;
  const warned = change.warnings.map((one) => `${warningPlace(one)}: ${one.message}`).join("\n");
  const input = {
    project: project.id,
    number: String(change.number),
    base: change.base_ref,
    hidden,
    warned,
  };
  if (lackedRole("merge") !== null) return null;
  const commits = change.commits_total === 1 ? "commit" : counted(change.commits_total, "commit");
  return (
    <dl className="merge-ways">
      <div>
        <dt>
          <FrameAct name="merge" input={input} className="primary">
            Merge
          </FrameAct>
        </dt>
        <dd>
          {`Brings the ${commits} of the branch into `}
          <code>{change.base_ref}</code>.
        </dd>
      </div>
      <div>
        <dt>
          <FrameAct name="merge" input={{ ...input, squash: "true" }}>
            Squash and merge
          </FrameAct>
        </dt>
        <dd>
          {"Brings all changes as one new commit into "}
          <code>{change.base_ref}</code>. Its message is the title and the description above.
        </dd>
      </div>
    </dl>
  );
};

/** Of an open request. */
export const MergeBox = ({ data }: { readonly data: ChangeData }) => {
  const { change, session, project } = data;
  if (change.status !== "open") return null;
  const hidden = hiddenWords(data);
  const canMerge = change.mergeable && lackedApprovals(change) === null;
  return (
    <section className="merge-box" aria-labelledby="merge">
      <h2 id="merge" tabIndex={-1}>
        Merge
      </h2>
      <ul>
        {change.mergeable ? (
          <Point tone="good">
            {"It merges cleanly into "}
            <code>{change.base_ref}</code>.
          </Point>
        ) : (
          <Conflicts change={change} session={session} />
        )}
        <Mistakes change={change} />
        <Approvals change={change} />
        {hidden !== "" && <Point tone="quiet">{hidden}</Point>}
        <Forbidden />
      </ul>
      {canMerge && <Ways data={data} hidden={hidden} />}
      <p className="actions">
        <FrameAct name="close-change-request" input={{ project: project.id, number: String(change.number) }}>
          Close
        </FrameAct>
      </p>
    </section>
  );
};

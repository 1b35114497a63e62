/** The tab of the changes: those of the workspace while the session runs, otherwise the pushed ones. */
import { useAsking, WaitingAsks } from "../../diff/asking.tsx";
import { Diff } from "../../diff/diff.tsx";
import { draftNotes, useDrafts } from "../../diff/drafts.tsx";
import { pathsIn, type Source, sourceOf } from "../../diff/files.ts";
import { counted } from "../../elements/format.ts";
import { lackedRole } from "../../frame/roles.ts";
import { Commits, Prose } from "../../ui/parts.tsx";
import { begunFrom } from "../../../src/domain/session/begun.ts";
import { BegunFrom } from "../begun-from.tsx";
import type { Session } from "../session.ts";
import { filesIn, isBehind, type PushedChanges, type Work, type WorkspaceChanges } from "../work.ts";

/** More files than these are a list that is opened one by one. */
const OPEN_FILES = 5;

const READING = "Reading what was pushed…";
const NOTHING_NEW = "Nothing is new: all pushed commits are merged.";

/** Whether the branch is as it began. */
const isUntouched = ({ head_commit: head, base_commit: base }: PushedChanges): boolean =>
  head === null || head === base;

const nothingNew = (changes: PushedChanges): string =>
  isUntouched(changes) ? "The agent has not pushed a commit yet." : NOTHING_NEW;

/** The unpushed work in words. */
const unpushedWords = (live: WorkspaceChanges, pushed: PushedChanges | null): string => {
  const { files_changed_total: all, unpushed_total: unpushed } = live;
  const { uncommitted_total: uncommitted, unpushed_commits: commits } = live;
  if (all === 0 && unpushed === 0)
    return pushed === null || isUntouched(pushed) ? "The agent has not changed a file yet." : NOTHING_NEW;
  if (unpushed === 0 && commits === 0) return "All of it is pushed.";
  const parts = [
    ...(commits > 0 ? [counted(commits, "commit")] : []),
    ...(uncommitted > 0 ? [`uncommitted changes in ${counted(uncommitted, "file")}`] : []),
  ];
  return `Not pushed yet: ${parts.join(" and ")}.`;
};

const STATES = { uncommitted: "not committed", committed: "not pushed", pushed: "" };

/** Of the workspace's diff, otherwise of the branch's. @param path of the session in the API */
const sourceFor = (path: string, live: WorkspaceChanges | null, pushed: PushedChanges): Source =>
  live === null
    ? sourceOf(`${path}/diff`, pushed)
    : {
        url: `${path}/workspace/diff`,
        head: null,
        listed: live.files_changed,
        total: live.files_changed_total,
        rest: "The tab “Files” shows whole files.",
        marks: new Map(live.files_changed.map(({ path: file, state }) => [file, STATES[state]])),
      };

const PushedCommits = ({
  changes,
  live,
}: {
  readonly changes: PushedChanges;
  readonly live: WorkspaceChanges | null;
}) => (
  <details className="group">
    <summary>
      {counted(changes.commits_total, (live?.unpushed_commits ?? 0) > 0 ? "pushed commit" : "commit")}
      {changes.commits.length < changes.commits_total &&
        ` (the newest ${changes.commits.length} of ${changes.commits_total})`}
    </summary>
    <Commits commits={changes.commits} />
  </details>
);

const HOW =
  "Choose a line, or drag over the numbers of several, and write what the agent should do. It gets all comments as one message.";

/** With comments for the agent. */
const ChangedFiles = ({ work, session, url }: Shown) => {
  const { changes, live, diff } = work;
  const files = filesIn(work);
  const author = lackedRole("ask-agent") === null ? session : null;
  const drafts = useDrafts(`asking ${session.id}`);
  const asking = useAsking(author, drafts);
  const { way } = asking;
  if (changes === null || (live === null && changes.commits_total === 0)) return null;
  const source = sourceFor(url, live, changes);
  return (
    <>
      {files > 0 && author !== null && asking.waiting.length === 0 && <p className="quiet">{HOW}</p>}
      {author !== null && <WaitingAsks asking={asking} session={author} paths={pathsIn(diff, source)} />}
      {(live === null || files > 0) && (
        <Diff
          diff={diff}
          source={source}
          isOpen={files <= OPEN_FILES}
          hasColumns={false}
          reviewing={{
            notes: [...asking.notes, ...draftNotes(drafts, () => (way === null ? [] : [way]))],
            begin: way === null ? null : drafts.begin,
            wholeFile: "Comment on this file",
          }}
        />
      )}
    </>
  );
};

interface Shown {
  readonly work: Work;
  readonly session: Session;
  /** Of the session in the API. */
  readonly url: string;
}

export const Changes = (shown: Shown) => {
  const { changes, live, problem } = shown.work;
  if (changes === null && problem === null) return <p className="loading">Loading…</p>;
  const files = filesIn(shown.work);
  return (
    <section id="work">
      <h2 className={files === 0 ? "unseen" : undefined}>
        {files === 0 ? "Changes" : `Changes in ${counted(files, "file")}`}
      </h2>
      {problem !== null && (
        <p className="refusal">
          <Prose text={problem} />
        </p>
      )}
      {begunFrom(shown.session) !== null && (
        <p className="quiet">
          It began with the work of <BegunFrom session={shown.session} />.
        </p>
      )}
      {live !== null && (
        <p className="quiet">
          {isBehind(shown.work, shown.session) ? READING : unpushedWords(live, changes)}
        </p>
      )}
      {live === null && changes?.commits_total === 0 && <p className="quiet">{nothingNew(changes)}</p>}
      <ChangedFiles {...shown} />
      {changes !== null && changes.commits_total > 0 && <PushedCommits changes={changes} live={live} />}
    </section>
  );
};

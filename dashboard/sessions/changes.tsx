/** The tab of the changes: those of the workspace while the session runs, otherwise the pushed ones. */
import { changesIn, commitRows, diffView, listed } from "../diff-view.js";
import { type Source, sourceOf } from "../diff-files.js";
import { counted } from "../format.js";
import { reviewView } from "../review.js";
import { lackedRole } from "../roles.js";
import { isLive } from "../project.js";
import { Drawn } from "../ui/drawn.tsx";
import { Prose } from "../ui/parts.tsx";
import type { Session } from "./session.ts";
import { filesIn, type PushedChanges, type Work, type WorkspaceChanges } from "./work.ts";

/** More files than these are a list that is opened one by one. */
const OPEN_FILES = 5;

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

const Commits = ({
  changes,
  live,
}: {
  readonly changes: PushedChanges;
  readonly live: WorkspaceChanges | null;
}) => (
  <details className="group">
    <summary>
      {listed(
        counted(changes.commits_total, (live?.unpushed_commits ?? 0) > 0 ? "pushed commit" : "commit"),
        changes.commits.length,
        changes.commits_total,
      )}
    </summary>
    <Drawn view={commitRows(changes.commits)} />
  </details>
);

/** @param url of the session in the API */
const Diff = ({ work, session, url }: Shown) => {
  const { changes, live, diff } = work;
  const files = filesIn(work);
  if (changes === null || (live === null && changes.commits_total === 0)) return null;
  const canReview = lackedRole("ask-agent") === null;
  const { id, status, project_id: project } = session;
  return (
    <Drawn
      view={[
        files > 0 && canReview && reviewView({ project, session: id, isLive: isLive(status) }),
        (live === null || files > 0) &&
          diffView(diff, {
            source: sourceFor(url, live, changes),
            open: files <= OPEN_FILES,
            columns: false,
            review: canReview ? id : null,
          }),
      ]}
    />
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
      <h2 className={files === 0 ? "unseen" : undefined}>{files === 0 ? "Changes" : changesIn(files)}</h2>
      {problem !== null && (
        <p className="refusal">
          <Prose text={problem} />
        </p>
      )}
      {live !== null && <p className="quiet">{unpushedWords(live, changes)}</p>}
      {live === null && changes?.commits_total === 0 && <p className="quiet">{nothingNew(changes)}</p>}
      <Diff {...shown} />
      {changes !== null && changes.commits_total > 0 && <Commits changes={changes} live={live} />}
    </section>
  );
};

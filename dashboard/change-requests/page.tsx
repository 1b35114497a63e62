/** The change requests of a project, and the page of one: the place of review. */
import { request } from "../api/client.ts";
import { useAsking, WaitingAsks } from "../diff/asking.tsx";
import { Diff } from "../diff/diff.tsx";
import { draftNotes, useDrafts, type Way } from "../diff/drafts.tsx";
import type { Place } from "../diff/place.ts";
import { pathsIn } from "../diff/files.ts";
import { counted } from "../elements/format.ts";
import { notice } from "../frame/notices.ts";
import { projectLink } from "../elements/parts.ts";
import { headOf } from "../projects/head.tsx";
import { lackedRole } from "../frame/roles.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Commits, CopyLine, Facts, Outside, Time, Trail } from "../ui/parts.tsx";
import { Texts } from "./edit.tsx";
import { Branch, ChangeList } from "./list.tsx";
import { MergeBox } from "./merge.tsx";
import { addRemark, type ChangeData, type Project, readChange, sourceFor, type Summary } from "./request.ts";
import { ReviewerRow } from "./reviewers.tsx";
import { Talk } from "./talk.tsx";
import { type Thread, threadNotes, threadsOf } from "./threads.tsx";
import { verdictWords } from "./words.ts";

/** Who did it. Someone who is no member any more has no name here. */
const By = ({ data: { members }, id }: { readonly data: ChangeData; readonly id: string | null }) => {
  const member = members.find(({ user }) => user.id === id);
  return member !== undefined && <>{` by ${member.user.name}`}</>;
};

/** The service's own repositories have no page of a commit. */
const MergeCommit = ({
  project: { repository },
  commit,
}: Pick<ChangeData, "project"> & { readonly commit: string }) => {
  const short = <code>{commit.slice(0, 10)}</code>;
  if (repository.kind !== "github") return short;
  return (
    <Outside to={`https://github.com/${repository.owner}/${repository.name}/commit/${commit}`}>
      {short}
    </Outside>
  );
};

const Merged = ({ data }: { readonly data: ChangeData }) => {
  const { merged_at: at, merged_commit: commit, merged_by: by } = data.change;
  return (
    <span>
      <Time at={at} />
      {" as "}
      <MergeCommit project={data.project} commit={commit ?? ""} />
      <By data={data} id={by} />
    </span>
  );
};

/** What the box below all changes says, and the way to it. */
const ToMerge = ({ change: { mergeable, base_ref: base } }: Pick<ChangeData, "change">) => (
  <button
    type="button"
    className="plain"
    onClick={() => {
      const box = document.getElementById("merge");
      box?.scrollIntoView({ block: "start" });
      box?.focus({ preventScroll: true });
    }}
  >
    {mergeable ? `It merges cleanly into ${base}` : "It cannot be merged"}
  </button>
);

const ChangeFacts = ({ data }: { readonly data: ChangeData }) => {
  const { project, change, session } = data;
  const { number, status, pull_request: pull, session_id: sid } = change;
  return (
    <Facts
      rows={[
        ["Merge", status === "open" && <ToMerge key="merge" change={change} />],
        ["From", <Branch key="from" name={change.head_ref} />],
        ["Into", <code key="into">{change.base_ref}</code>],
        [
          "Opened",
          <span key="opened">
            <Time at={change.created_at} />
            <By data={data} id={change.created_by} />
          </span>,
        ],
        ["Closed", status === "closed" && <Time key="closed" at={change.updated_at} />],
        ["Merged", change.merged_at !== null && <Merged key="merged" data={data} />],
        ["Get it", status === "merged" && <CopyLine key="get" text={`git pull origin ${change.base_ref}`} />],
        ["Reviews", status !== "open" && verdictWords(change)],
        ["Pull request", pull !== null && <Outside key="pull" to={pull.url}>{`#${pull.number}`}</Outside>],
        [
          "Session",
          sid !== null &&
            (session === null ? (
              "The session was deleted."
            ) : (
              <a key="session" href={projectLink(project.id, `/sessions/${sid}`)}>
                Show the session
              </a>
            )),
        ],
        [
          "State",
          <a key="state" href={projectLink(project.id, `/change-requests/${number}/state`)}>
            {`Why is it ${status}?`}
          </a>,
        ],
      ]}
    />
  );
};

const toWire = ({ file, lines }: Place) =>
  lines === null ? null : { file, side: lines.side, first_line: lines.first, last_line: lines.last };

const HOW =
  "To comment, choose a line, or drag over the numbers of several. With the keyboard, the arrow keys lead to a line, Shift chooses more, and Enter begins.";

interface ReviewParts {
  /** Of the files that are shown. */
  readonly paths: ReadonlySet<string>;
  readonly data: ChangeData;
  readonly threads: readonly Thread[];
  readonly reader: string | undefined;
}

/** The files, with what people and the reader say of their lines. */
const Files = ({ data, threads, reader, paths }: ReviewParts) => {
  const { change, session, diff } = data;
  // The agent's own changes can be commented on while they are not merged.
  const author = lackedRole("ask-agent") === null ? session : null;
  const drafts = useDrafts(`review ${change.id}`);
  const asking = useAsking(author, drafts);
  const isOpen = change.status === "open";
  const canSay = lackedRole("review-request") === null;
  const say: Way = {
    label: "Comment",
    send: async ({ place, text }) => {
      const own = toWire(place);
      await addRemark(change, {
        body: text,
        commit: change.head_commit,
        ...(own !== null && { place: own }),
      });
      notice("The comment was added.");
    },
  };
  const waysAt = ({ lines }: Place): readonly Way[] => [
    ...(canSay && lines !== null ? [say] : []),
    ...(isOpen && asking.way !== null ? [asking.way] : []),
  ];
  return (
    <section aria-labelledby="files">
      <h2 id="files">{`Changes in ${counted(change.files_changed_total, "file")}`}</h2>
      {author !== null && <WaitingAsks asking={asking} session={author} paths={paths} />}
      {canSay && isOpen && <p className="quiet">{HOW}</p>}
      <Diff
        diff={diff}
        source={sourceFor(data)}
        hasKeys
        reviewing={{
          notes: [
            ...threadNotes(threads, { change, reader }),
            ...asking.notes,
            ...draftNotes(drafts, waysAt),
          ],
          begin: canSay ? drafts.begin : null,
          wholeFile: isOpen && asking.way !== null ? "Ask the agent about this file" : null,
        }}
      />
    </section>
  );
};

interface Shown {
  readonly data: ChangeData;
  readonly me: { readonly user: { readonly id: string } } | null;
}

const ChangePage = ({ data, me }: Shown) => {
  const { change } = data;
  const reader = me?.user.id;
  const threads = threadsOf(data.remarks);
  const paths = pathsIn(data.diff, sourceFor(data));
  return (
    <>
      <Texts change={change} />
      <ChangeFacts data={data} />
      <ReviewerRow data={data} />
      <Files data={data} threads={threads} reader={reader} paths={paths} />
      <section aria-labelledby="commits">
        <h2 id="commits">
          {change.commits.length < change.commits_total
            ? `Commits (the newest ${change.commits.length} of ${change.commits_total})`
            : "Commits"}
        </h2>
        <Commits commits={change.commits} />
      </section>
      <Talk data={data} threads={threads} files={paths} reader={reader} />
      <MergeBox data={data} />
    </>
  );
};

interface ListData {
  readonly project: Project;
  readonly changes: readonly Summary[];
  readonly hasMore: boolean;
}

export const pages = {
  changeRequests: framedPage<ListData>({
    load: async ([pid = ""]) => {
      const params = { pid };
      const [project, { change_requests: changes, next_cursor: next }] = await Promise.all([
        request("GET /v1/projects/:pid", { params }),
        request("GET /v1/projects/:pid/change-requests", { params, query: { limit: 200 } }),
      ]);
      return { project, changes, hasMore: next !== null };
    },
    title: ({ project }) => `Change requests of ${project.name}`,
    head: headOf("/change-requests"),
    Body: ({ data: { project, changes, hasMore } }) => (
      <ChangeList id={project.id} changes={changes} hasMore={hasMore} />
    ),
  }),

  changeRequest: framedPage<ChangeData>({
    load: readChange,
    title: ({ change }) => `#${change.number} ${change.title}`,
    head: ({ project, change }) => (
      <Trail
        steps={[
          ["Projects", "#/projects"],
          [project.name, projectLink(project.id)],
          ["Change requests", projectLink(project.id, "/change-requests")],
          [`#${change.number}`, null],
        ]}
      />
    ),
    // Each request has drafts of its own.
    Body: ({ data, me }) => <ChangePage key={data.change.id} data={data} me={me} />,
  }),
};

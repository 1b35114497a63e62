/** The panel of saved work: what is saved and what is not, earlier saves, and what a sandbox brought back. */
import { Fragment, useEffect, useRef } from "react";
import { hasContents, runsWithoutSave } from "../../src/domain/save/shown.ts";
import { request } from "../api/client.ts";
import { Diff } from "../diff/diff.tsx";
import { sourceOf } from "../diff/files.ts";
import { counted, grouped, pathCount, pathsOf } from "../elements/format.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { isLive } from "../projects/project.ts";
import type { Session } from "../sessions/session.ts";
import { Act, RoleAct } from "../ui/act.tsx";
import { CopyLine, Detail, Prose, Row, Time } from "../ui/parts.tsx";
import { contents, listedPaths, savedSentence } from "./report.ts";
import type { SavedFiles, Saves } from "./saves.ts";

type Saved = NonNullable<Session["saved"]>;
type Earlier = NonNullable<Saved["earlier"]>[number];
type Restored = NonNullable<Session["restored"]>;

interface Shown {
  readonly session: Session;
  readonly saves: Saves;
}

interface Paths {
  readonly title: string;
  readonly paths: Saved["pending"];
  /** At first. */
  readonly isOpen?: boolean;
}

/** The first paths with their reasons. */
const PathList = ({ title, paths, isOpen = true }: Paths) => {
  if (paths.length === 0) return null;
  const { lines, rest } = listedPaths(paths);
  return (
    <details className="paths" open={isOpen}>
      <summary>{`${title}: ${pathsOf(pathCount(paths))}`}</summary>
      <ul>
        {lines.map(({ path, more, reason }) => (
          <li key={path}>
            <code>{path}</code>
            {`${more > 0 ? ` and ${grouped(more)} more` : ""}: `}
            <Prose text={reason} />
          </li>
        ))}
        {rest > 0 && <li className="quiet">{`and ${pathsOf(rest)} more`}</li>}
      </ul>
    </details>
  );
};

const removeSave = async ({ project_id: pid, id: sid }: Session, id: string): Promise<void> => {
  const sure = await ask({
    title: "Delete this save?",
    text: "Work that only this save has cannot be restored. The newest save and the session's branch stay.",
    confirm: "Delete",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/projects/:pid/sessions/:sid/saves/:id", { params: { pid, sid, id } });
  notice("The save was deleted.");
};

const EarlierRow = ({ session, saves, of: save }: Shown & { readonly of: Earlier }) => (
  <Row
    states={null}
    actions={
      <>
        <Act label="Show" className="" does={async () => saves.choose(session, save.id)} />
        <RoleAct entry="delete-save" label="Delete" className="" does={() => removeSave(session, save.id)} />
      </>
    }
  >
    <span>
      {"Save of "}
      <Time at={save.at} />
    </span>
    <Detail>{`${contents(save) || "staged changes"}${save.node ? ` on node ${save.node}` : ""}`}</Detail>
  </Row>
);

const EarlierSaves = ({ earlier, ...shown }: Shown & { readonly earlier: readonly Earlier[] }) =>
  earlier.length > 0 && (
    <>
      <h3>Earlier saves</h3>
      <p>No sandbox has brought these back whole. The next restart tries again.</p>
      <ul className="rows">
        {earlier.map((save) => (
          <EarlierRow key={save.id} {...shown} of={save} />
        ))}
      </ul>
    </>
  );

/** What becomes of changes after the save. */
const LaterChanges = ({ session }: Pick<Shown, "session">) => {
  const { status } = session;
  if (!isLive(status) && status !== "failed") return null;
  return (
    <p className="quiet">
      {status === "failed"
        ? "Later changes, if any, are lost."
        : runsWithoutSave(session)
          ? "This sandbox runs without it. It stays saved."
          : "Later changes are only in the sandbox until the next save."}
    </p>
  );
};

const SavedParts = ({ session, saves, saved }: Shown & { readonly saved: Saved }) => {
  const { before, at, after } = savedSentence(saved);
  return (
    <>
      <p>
        <Prose text={before} />
        {at !== null && (
          <>
            {" ("}
            <Time at={at} />)
          </>
        )}
        <Prose text={after} />
      </p>
      <LaterChanges session={session} />
      <PathList title="Not saved" paths={saved.pending} />
      {saved.pending.length > 0 && (
        <p className="quiet">Older versions of these paths stay if an earlier save has them.</p>
      )}
      <EarlierSaves session={session} saves={saves} earlier={saved.earlier ?? []} />
      <PathList title="No save takes these" paths={saved.skipped} isOpen={false} />
      {hasContents(saved) && (
        <p>
          {"Fetch it with git:"}
          <CopyLine text={`git fetch origin refs/wip/${session.id}`} />
        </p>
      )}
      {hasContents(saved) && isLive(session.status) && (
        <p className="actions">
          <Act label="Show the saved files" does={async () => saves.choose(session, "")} />
        </p>
      )}
    </>
  );
};

const RestoredParts = ({
  restored: { commits, files, refs, renamed, skipped, error, notes = [] },
}: {
  readonly restored: Restored;
}) => (
  <>
    <h3>Brought back into this sandbox</h3>
    <p>
      {`${counted(files, "changed file")}${commits === 0 ? "" : ` and ${counted(commits, "commit")} on the session's branch`}.`}
      {refs.length > 0 && " Branches: "}
      {refs.map((ref, at) => (
        <Fragment key={ref}>
          {at > 0 && ", "}
          <code>{ref}</code>
        </Fragment>
      ))}
      {refs.length > 0 && "."}
    </p>
    {renamed.length > 0 && (
      <ul className="paths">
        {renamed.map(({ path, as }) => (
          <li key={path}>
            <code>{path}</code>
            {" came back as "}
            <code>{as}</code>
          </li>
        ))}
      </ul>
    )}
    {[...(error === null ? [] : [error]), ...notes].map((text) => (
      <p key={text} className="refusal">
        <Prose text={text} />
      </p>
    ))}
    <PathList title="Not brought back" paths={skipped} />
  </>
);

const Files = ({
  saved,
  files: { save, isWished, changes, diff, url, problem },
}: {
  readonly saved: Saved | null;
  readonly files: SavedFiles;
}) => {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isWished) place.current?.scrollIntoView();
  }, [isWished, save]);
  const earlier = saved?.earlier?.find(({ id }) => id === save);
  return (
    <div ref={place} id="saved-files">
      <h3>
        {earlier === undefined ? (
          "The newest save"
        ) : (
          <>
            {"The save of "}
            <Time at={earlier.at} />
          </>
        )}
        {changes !== null && `: changes in ${counted(changes.files_changed_total, "file")}`}
      </h3>
      {problem !== null && (
        <p className="refusal">
          <Prose text={problem} />
        </p>
      )}
      {changes !== null && (
        <Diff diff={diff} source={sourceOf(url, changes)} isOpen={false} hasColumns={false} />
      )}
    </div>
  );
};

/** The saved work of a session, the missing paths, and the work that its sandbox brought back. */
export const SavedPanel = ({ session, saves }: Shown) => {
  const { saved, restored, status } = session;
  const files = saves.files();
  if (saved === null && restored === null && status !== "running") return null;
  return (
    <section id="saved" className="saved">
      <h2>Saved work</h2>
      {saved === null ? (
        status === "running" && <p>Nothing is saved yet. The first save is at the end of the agent's turn.</p>
      ) : (
        <SavedParts session={session} saves={saves} saved={saved} />
      )}
      {restored !== null && <RestoredParts restored={restored} />}
      {files !== null && <Files key={files.url} saved={saved} files={files} />}
    </section>
  );
};

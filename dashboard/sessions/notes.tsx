/** Above a session's conversation: what is wrong, what waits for a person, what is not saved. */
import type { ReactNode } from "react";
import { isOfEnded } from "../../src/domain/save/shown.ts";
import { ADVICE, type FailureCode } from "../../src/domain/session/failure.ts";
import { AwaitedNote } from "../environments/parts.tsx";
import { sentence } from "../elements/format.ts";
import { SuspendedNote } from "../account/own-credentials.tsx";
import { projectLink } from "../elements/parts.ts";
import { isLive } from "../projects/project.ts";
import { canRestore, RESTORE_BOX } from "../saved/work.ts";
import { isUnsafe, unsavedWords } from "../saved/words.ts";
import { SaveWait } from "../saved/wait.tsx";
import { Callout, Prose } from "../ui/parts.tsx";
import { SessionAct } from "./acts.tsx";
import type { Following } from "./following.ts";
import type { Session, SessionData } from "./session.ts";

interface Heard {
  readonly session: Session;
  /** The state of the conversation. */
  readonly reading: Following["reading"];
}

/** What happened, in people's words. The message has the details. */
const FAILURES: Readonly<Record<FailureCode, string>> = {
  branch_failed: "The session's branch could not be made.",
  environment_failed: "The environment could not be built.",
  sandbox_create_failed: "The sandbox could not be made.",
  no_capacity: "There was no room for the sandbox.",
  boot_timeout: "The sandbox was not ready in time.",
  clone_failed: "The repository could not be cloned.",
  runtime_failed: "The agent's program could not run.",
  sandbox_lost: "The sandbox ended unexpectedly.",
  memory_exceeded: "The sandbox used more memory than it may.",
  disk_exceeded: "The sandbox used more disk space than it may.",
  internal_error: "The service itself failed.",
};

/** What failed, why, and what to do about it. The head of the page has no second button for it. */
const Failure = ({ session }: { readonly session: Session }) => {
  const { failure, status, project_id: project } = session;
  if (failure === null) return null;
  // An older page may meet a newer service's code.
  const code = failure.code as FailureCode;
  return (
    <Callout tone="bad">
      <strong>{FAILURES[code] ?? "The session failed."}</strong>
      <p className="text">
        <Prose text={failure.message} />
      </p>
      {ADVICE[code] !== undefined && (
        <p>
          <Prose text={ADVICE[code]} />
        </p>
      )}
      <p className="actions">
        {status === "failed" && (
          <SessionAct session={session} entry="restart-session" label="Restart" className="primary" />
        )}
        {code === "environment_failed" && (
          <a className="button" href={projectLink(project, "/environment")}>
            Show the environment
          </a>
        )}
      </p>
    </Callout>
  );
};

const savedHeadline = ({ status, unsaved }: Session, saved: NonNullable<Session["saved"]>): string => {
  if (saved.state === "complete") return "The agent left unpushed work. It is saved.";
  const lead = unsavedWords(saved);
  if (unsaved !== null) return `${lead} The resting session waits for that and keeps its sandbox.`;
  const what =
    saved.pending.length > 0
      ? "Their newest version"
      : `What came after the ${saved.state === "failed" ? "one before" : "last save"}`;
  return `${lead} ${what} is ${isLive(status) ? "only in the sandbox" : "lost"}.`;
};

/** What is not saved, and what a restart brings back. */
const SavedNote = ({ session }: { readonly session: Session }) => {
  const { saved, project_id: project, id } = session;
  const isWhole = !isUnsafe(session);
  if (saved === null || (isWhole && !canRestore(session))) return null;
  // The failure says what is lost.
  if (session.failure !== null && isOfEnded(saved.error) && !canRestore(session)) return null;
  return (
    <Callout tone={isWhole ? undefined : "warn"}>
      <p>
        <strong>{savedHeadline(session, saved)}</strong>
      </p>
      {/* The heading says as much of an end without a save. */}
      {!isWhole && saved.error !== null && !isOfEnded(saved.error) && (
        <p className="text">
          <Prose text={sentence(saved.error)} />
        </p>
      )}
      <SaveWait session={session} />
      <p>
        {canRestore(session) && (
          <label className="choice">
            <input type="checkbox" id={RESTORE_BOX} defaultChecked /> Bring back unpushed work with a restart
          </label>
        )}{" "}
        <a href={projectLink(project, `/sessions/${id}?tab=details`)}>
          {isWhole ? "Show the files" : "Show what is missing"}
        </a>
      </p>
    </Callout>
  );
};

/** It is the conversation's first message, which is not shown if that cannot be read. */
const Prompt = ({ session, reading }: Heard) =>
  session.initial_prompt !== null &&
  !reading.heard &&
  reading.problem !== null && (
    <section>
      <h2>Prompt</h2>
      <pre className="text" tabIndex={0}>
        {session.initial_prompt}
      </pre>
    </section>
  );

interface Notes {
  readonly data: SessionData;
  readonly following: Following | null;
  /** The reader's id. */
  readonly reader: string | undefined;
}

export const Notes = ({ data: { session, own, awaited }, following, reader }: Notes): ReactNode => (
  <>
    <Failure session={session} />
    <SuspendedNote session={session} own={own} reader={reader} />
    <AwaitedNote awaited={awaited} />
    <SavedNote session={session} />
    {following !== null && <Prompt session={session} reading={following.reading} />}
  </>
);

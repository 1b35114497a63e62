/** Above a session's conversation: what is wrong, what waits for a person, what is not saved. */
import { type ReactNode, useState } from "react";
import { awaitedView } from "../environment-build.js";
import { sentence } from "../format.js";
import { suspendedView } from "../own-credentials.js";
import { projectLink } from "../parts.js";
import { isLive } from "../project.js";
import { canRestore, RESTORE_BOX, waitView } from "../saved-work.js";
import { isUnsafe, unsavedWords } from "../saved-words.js";
import { Drawn } from "../ui/drawn.tsx";
import { Callout, Prose } from "../ui/parts.tsx";
import type { Following } from "./following.ts";
import type { Session, SessionData } from "./session.ts";

/** The remedy of a failed turn, by its code. Other codes say it themselves. */
const TURN_ADVICE: Readonly<Record<string, readonly [text: string, rest: "" | "/secrets" | "/new"]>> = {
  no_model: ["Add the key of a model's provider, then send a message. ", "/secrets"],
  model_unauthorized: ["Replace the provider's key, then send a message. ", "/secrets"],
  model_quota: ["Check the key's quota at its provider, or use another key. ", "/secrets"],
  unknown_model: ["Choose another model for the next message.", ""],
  model_unavailable: ["Send a message to try again.", ""],
  context_exceeded: ["Start a new session from this one's branch. ", "/new"],
};

const TurnAdvice = ({ project, code }: { readonly project: string; readonly code: string }) => {
  const [text, rest] = TURN_ADVICE[code] ?? ["", ""];
  return (
    text !== "" && (
      <p>
        {text}
        {rest !== "" && (
          <a href={projectLink(project, rest)}>{rest === "/new" ? "New session" : "Show the secrets"}</a>
        )}
      </p>
    )
  );
};

/** Why the last turn failed, until the next one begins. The page reads a moment later how that one ended. */
const LastTurn = ({
  session,
  reading,
}: {
  readonly session: Session;
  readonly reading: Following["reading"];
}) => {
  const { status, last_turn: last, project_id: project } = session;
  const [followed, setFollowed] = useState("");
  if (!last?.error) return null;
  const turn = reading.heard ? reading.conversation.turn : session.turn;
  const isFollowed = isLive(status) && turn.state !== "idle";
  if (isFollowed && followed !== last.at) setFollowed(last.at);
  if (isFollowed || followed === last.at) return null;
  return (
    <Callout tone={last.state === "failed" ? "bad" : "warn"}>
      <strong>{`Last turn ${last.state}: ${last.error.code}`}</strong>
      <p className="text">
        <Prose text={last.error.message} />
      </p>
      <TurnAdvice project={project} code={last.error.code} />
    </Callout>
  );
};

const Failure = ({ session: { failure, project_id: project } }: { readonly session: Session }) =>
  failure !== null && (
    <Callout tone="bad">
      <strong>{failure.code}</strong>
      <p className="text">
        <Prose text={failure.message} />
      </p>
      {failure.code === "environment_failed" && (
        <p>
          <a href={projectLink(project, "/environment")}>Show the environment</a>
        </p>
      )}
    </Callout>
  );

const savedHeadline = ({ status, unsaved }: Session, saved: NonNullable<Session["saved"]>): string => {
  if (saved.state === "complete") return "The agent left unpushed work. It is saved.";
  const lead = unsavedWords(saved);
  if (unsaved !== null) return `${lead} The idle session waits for that and keeps its sandbox.`;
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
  return (
    <Callout tone={isWhole ? undefined : "warn"}>
      <p>
        <strong>{savedHeadline(session, saved)}</strong>
      </p>
      {!isWhole && saved.error !== null && (
        <p className="text">
          <Prose text={sentence(saved.error)} />
        </p>
      )}
      <Drawn view={waitView(session)} />
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

interface Notes {
  readonly data: SessionData;
  readonly following: Following | null;
  /** The reader's id. */
  readonly reader: string | undefined;
}

export const Notes = ({ data: { session, own, awaited }, following, reader }: Notes): ReactNode => (
  <>
    <Failure session={session} />
    <Drawn view={[suspendedView(session, own, reader), awaitedView(awaited)]} />
    {following !== null && <LastTurn session={session} reading={following.reading} />}
    <SavedNote session={session} />
  </>
);

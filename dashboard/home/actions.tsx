/** What a person can do with a session without opening it. */
import type { ReactNode } from "react";
import { hasEnded, isLive, sessionName } from "../projects/project.ts";
import { lackedRole } from "../frame/roles.ts";
import { SessionAct } from "../sessions/acts.tsx";
import { ActionsMenu } from "../ui/actions-menu.tsx";
import { isAtRest } from "../ui/activity.tsx";
import type { Session } from "./sessions.ts";

interface Action {
  readonly session: Session;
  readonly entry: string;
  readonly label: string;
  readonly className?: string;
  /** How much of the work a stop must save. */
  readonly save?: "try";
}

export const ActionButton = ({ save, ...action }: Action) => (
  <SessionAct {...action} isList {...(save !== undefined && { input: { save } })} />
);

export const SessionMenu = ({ session }: { readonly session: Session }): ReactNode => {
  const name = sessionName(session);
  // It would have nothing in it.
  if (lackedRole("rename-session") !== null) return null;
  return (
    <ActionsMenu about={name}>
      {isLive(session.status) && <ActionButton session={session} entry="stop-session" label="Stop" />}
      {hasEnded(session.status) && <ActionButton session={session} entry="restart-session" label="Restart" />}
      {isAtRest(session) && (
        <ActionButton
          session={session}
          entry={session.archived ? "unarchive-session" : "archive-session"}
          label={session.archived ? "Bring back" : "Archive"}
        />
      )}
      <ActionButton session={session} entry="rename-session" label="Rename" />
      <ActionButton session={session} entry="delete-session" label="Delete" className="danger" />
    </ActionsMenu>
  );
};

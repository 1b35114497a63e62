/** Buttons for what a person does with a session, on its own page and in lists. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectLink } from "../elements/parts.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { sessionName } from "../projects/project.ts";
import { FrameAct, RoleAct } from "../ui/act.tsx";

type Session = Pick<
  Answer<"GET /v1/projects/:pid/sessions">["sessions"][number],
  "project_id" | "id" | "name" | "trigger_slug" | "initial_prompt"
>;

const paramsOf = ({ project_id: pid, id: sid }: Session) => ({ pid, sid });

const rename = async (session: Session): Promise<void> => {
  const name = await ask({
    title: "Rename the session",
    text: "The name is shown in lists. The branch keeps its own.",
    field: { label: "Name", value: sessionName(session), lines: 1, required: true },
    confirm: "Rename",
  });
  if (name !== null)
    await request("PATCH /v1/projects/:pid/sessions/:sid", { params: paramsOf(session), payload: { name } });
};

const archive = async (session: Session, archived: boolean): Promise<void> => {
  await request("PATCH /v1/projects/:pid/sessions/:sid", {
    params: paramsOf(session),
    payload: { archived },
  });
  notice(
    archived
      ? `${sessionName(session)} was archived. Its next turn brings it back.`
      : `${sessionName(session)} is among the current sessions again.`,
  );
};

const remove = async (session: Session, isList: boolean): Promise<void> => {
  const sure = await ask({
    title: `Delete “${sessionName(session)}”?`,
    text: "The session stops without a save. Its conversation, its log and its saved work are removed. What it pushed stays on its branch.",
    confirm: "Delete",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/projects/:pid/sessions/:sid", { params: paramsOf(session) });
  if (isList) notice(`${sessionName(session)} was deleted.`);
  else location.hash = projectLink(session.project_id);
};

/** By their entry in roles.ts. Others are the frame's (`frame/actions.ts`). */
const ACTS: Readonly<Record<string, (session: Session, isList: boolean) => Promise<void>>> = {
  "rename-session": rename,
  "archive-session": (session) => archive(session, true),
  "unarchive-session": (session) => archive(session, false),
  "delete-session": remove,
};

interface Parts {
  readonly session: Session;
  readonly entry: string;
  readonly label: string;
  readonly className?: string | undefined;
  /** Whether the page goes on without the session. */
  readonly isList?: boolean;
  /** What an entry of the frame acts on, besides the session. */
  readonly input?: Readonly<Record<string, string>>;
}

export const SessionAct = ({ session, entry, label, className, isList = false, input = {} }: Parts) => {
  const does = ACTS[entry];
  return does === undefined ? (
    <FrameAct
      name={entry}
      input={{ project: session.project_id, session: session.id, title: sessionName(session), ...input }}
      className={className}
    >
      {label}
    </FrameAct>
  ) : (
    <RoleAct entry={entry} label={label} className={className ?? ""} does={() => does(session, isList)} />
  );
};

/** Another person steered a session: its person's own credentials are suspended in it, and she can give them back. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectLink } from "../elements/parts.ts";
import { ask } from "../frame/dialog.ts";
import { RoleAct } from "../ui/act.tsx";
import { Callout, Time } from "../ui/parts.tsx";

type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;

const giveBack = async ({ project_id: pid, id: sid }: Session): Promise<void> => {
  const sure = await ask({
    title: "Give your own credentials back to this session?",
    text: "The agent uses them again. What the other person said, her open terminals and the programs that she started in the sandbox stay. Stop and restart the session first, if you are not sure. A subscription comes back with its next start.",
    confirm: "Give my credentials back",
  });
  if (sure === null) return;
  await request("POST /v1/projects/:pid/sessions/:sid/own-credentials/give-back", { params: { pid, sid } });
};

interface Shown {
  readonly session: Session;
  readonly own: Answer<"GET /v1/projects/:pid/sessions/:sid/own-credentials">;
  /** The id of the signed-in person. */
  readonly reader: string | undefined;
}

export const SuspendedNote = ({ session, own: { connectors, suspended }, reader }: Shown) =>
  suspended !== null &&
  (connectors.length > 0 || session.created_by === reader) && (
    <Callout tone="warn">
      <p>
        {`${suspended.by.name} ${suspended.words} (`}
        <Time at={suspended.at} />
        {connectors.length > 0
          ? `). The own credentials of the person who started this session no longer work in it: ${connectors.join(", ")}.`
          : "). Your own providers of models and subscriptions no longer work in this session."}
      </p>
      {suspended.session_id !== session.id ? (
        <p>
          <a href={projectLink(session.project_id, `/sessions/${suspended.session_id}`)}>Show that session</a>
        </p>
      ) : (
        session.created_by === reader && (
          <RoleAct
            entry="give-credentials"
            label="Give them back"
            className=""
            does={() => giveBack(session)}
          />
        )
      )}
    </Callout>
  );

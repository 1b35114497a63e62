/** What a person can do with a turn that has ended. */
import { request } from "../../api/client.ts";
import { perform } from "../../frame/app.js";
import { ask } from "../../frame/dialog.js";
import { projectLink } from "../../elements/parts.js";
import type { Session } from "../../wire.d.ts";

/** Asks for the first prompt, starts the session and goes there. */
const startFrom = async (session: Session): Promise<void> => {
  const prompt = await ask({
    title: "New session from here",
    text: "It begins with the saved work of this session, on a branch of its own. The agent does not know this conversation.",
    confirm: "Start session",
    field: { label: "What should the agent do?", value: "", lines: 6, required: true },
  });
  if (prompt === null) return;
  const { project_id: pid, agent_name, agent_model } = session;
  const made = await request("POST /v1/projects/:pid/sessions", {
    params: { pid },
    query: {},
    payload: {
      from: { session_id: session.id },
      initial_prompt: prompt,
      agent_name,
      ...(agent_model !== null && { agent_model }),
    },
  });
  if ("id" in made) location.hash = projectLink(pid, `/sessions/${made.id}`);
};

/** @param fault why no session can begin from here. Null: one can */
export const TurnMenu = ({
  fault,
  session,
}: {
  readonly fault: string | null;
  readonly session: () => Session;
}) => (
  <details className="menu turn-menu">
    <summary aria-label="Actions for this turn" title="Actions">
      ⋯
    </summary>
    <div className="menu-items">
      <button
        type="button"
        aria-disabled={fault !== null}
        onClick={() => {
          if (fault === null) void perform(() => startFrom(session()));
        }}
      >
        New session from here
      </button>
      {fault !== null && <p className="quiet">{fault}</p>}
    </div>
  </details>
);

/** What a person can do with a turn that has ended. */
import { useState } from "react";
import { request } from "../../api/client.ts";
import { perform } from "../../frame/app.ts";
import { ask } from "../../frame/dialog.ts";
import { projectLink } from "../../elements/parts.ts";
import type { Session } from "../../wire.d.ts";
import { type Beginning, beginningAt, type ChosenTurn } from "./branching.ts";

/** Asks for the first prompt, starts the session and goes there. */
const startFrom = async (session: Session, { from }: Extract<Beginning, { from: object }>): Promise<void> => {
  const prompt = await ask({
    title: "New session from here",
    text: "It begins with the saved work of this turn, on a branch of its own. Its agent knows this conversation up to here.",
    confirm: "Start session",
    field: { label: "What should the agent do?", value: "", lines: 6, required: true },
  });
  if (prompt === null) return;
  const { project_id: pid, agent_name, agent_model } = session;
  const made = await request("POST /v1/projects/:pid/sessions", {
    params: { pid },
    query: {},
    payload: {
      from,
      initial_prompt: prompt,
      agent_name,
      ...(agent_model !== null && { agent_model }),
    },
  });
  if ("id" in made) location.hash = projectLink(pid, `/sessions/${made.id}`);
};

/** Asks which turns have saves. */
const beginning = async (session: Session, turn: ChosenTurn): Promise<Beginning> => {
  const { project_id: pid, id: sid } = session;
  try {
    const { turns } = await request("GET /v1/projects/:pid/sessions/:sid/saves", { params: { pid, sid } });
    return beginningAt(session, turn, turns);
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
};

export const TurnMenu = ({
  turn,
  session,
}: {
  readonly turn: ChosenTurn;
  readonly session: () => Session;
}) => {
  // Null: it is not known yet.
  const [here, setHere] = useState<Beginning | null>(null);
  return (
    <details
      className="menu turn-menu"
      onToggle={({ currentTarget: { open } }) => {
        if (open) void beginning(session(), turn).then(setHere);
      }}
    >
      <summary aria-label="Actions for this turn" title="Actions">
        ⋯
      </summary>
      <div className="menu-items">
        <button
          type="button"
          aria-disabled={here === null || "fault" in here}
          onClick={() => {
            if (here !== null && "from" in here) void perform(() => startFrom(session(), here));
          }}
        >
          New session from here
        </button>
        {here === null && <p className="quiet">Looking for the save of this turn…</p>}
        {here !== null && "fault" in here && <p className="quiet">{here.fault}</p>}
      </div>
    </details>
  );
};

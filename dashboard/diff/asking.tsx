/** Comments for the agent: at their lines until they are sent, and the list with the button that sends them. */
import { useReducer } from "react";
import { post } from "../api/api.ts";
import { makeId } from "../composer/outbox.ts";
import { counted } from "../elements/format.ts";
import { notice } from "../frame/notices.ts";
import { projectLink } from "../elements/parts.ts";
import { isLive, projectPath } from "../projects/project.ts";
import { Act } from "../ui/act.tsx";
import { Callout } from "../ui/parts.tsx";
import { noteWritten } from "../live/written.ts";
import { addAsk, type Ask, askMessage, asksOf, removeAsk, removeAsks } from "./asks.ts";
import type { PlacedNote } from "./diff.tsx";
import type { Way } from "./drafts.tsx";
import { placeWords } from "./place.ts";

/** The session whose agent made the changes. */
interface Asked {
  readonly id: string;
  readonly project_id: string;
  readonly status: string;
}

/** A message to the agent, who hears it also after a restart. */
export const tellAgent = async ({ id, project_id: project }: Asked, text: string): Promise<void> => {
  const path = `${projectPath(project)}/sessions/${id}`;
  await post(`${path}/messages`, { id: makeId(), text, restore_saved: true });
  noteWritten(path);
};

const AskNote = ({ ask }: { readonly ask: Ask }) => (
  <div className="thread ask">
    <p className="quiet">For the agent, not sent yet</p>
    <p className="text" dir="auto">
      {ask.text}
    </p>
  </div>
);

/** What a reader may ask the agent. @param session null: it may be asked nothing */
export const useAsking = (session: Asked | null) => {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const asks = session === null ? [] : asksOf(session.id);
  const way: Way | null = session && {
    label: "Add for the agent",
    send: async (ask) => {
      addAsk(session.id, ask);
      redraw();
    },
  };
  return {
    asks,
    way,
    notes: asks.map((ask, at): PlacedNote => ({
      key: `ask ${at} ${ask.text}`,
      place: ask.place,
      content: <AskNote ask={ask} />,
    })),
    remove: (at: number): void => {
      if (session !== null) removeAsk(session.id, at);
      redraw();
    },
    sent: redraw,
  };
};

type Asking = ReturnType<typeof useAsking>;

interface Waiting {
  readonly asking: Asking;
  readonly session: Asked;
}

/** The comments that the agent does not have yet. */
export const WaitingAsks = ({ asking: { asks, remove, sent }, session }: Waiting) => {
  if (asks.length === 0) return null;
  const { id, project_id: project, status } = session;
  const sends = `Send ${counted(asks.length, "comment")}`;
  const send = async (): Promise<void> => {
    // They are kept until the service has them.
    await tellAgent(session, askMessage(asksOf(id)));
    removeAsks(id);
    notice("The agent has your comments.", ["Show the session", projectLink(project, `/sessions/${id}`)]);
    sent();
  };
  return (
    <Callout>
      <strong>Comments for the agent</strong>
      <ul className="dots">
        {asks.map((ask, at) => (
          // Two comments may be the same.
          <li key={`${at} ${ask.text}`}>
            <code>{placeWords(ask.place)}</code>
            {": "}
            {ask.text}{" "}
            <Act
              label="Remove"
              about={`the comment on ${placeWords(ask.place)}`}
              does={async () => remove(at)}
            />
          </li>
        ))}
      </ul>
      <p className="actions">
        <Act
          label={isLive(status) ? sends : `Restart and ${sends.toLowerCase()}`}
          about="to the agent"
          className="primary"
          does={send}
        />
      </p>
    </Callout>
  );
};

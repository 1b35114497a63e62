/** Comments for the agent: at their lines, and the button that sends them. */
import { useReducer } from "react";
import { post } from "../api/api.ts";
import { makeId } from "../live/outbox.ts";
import { counted } from "../elements/format.ts";
import { notice } from "../frame/notices.ts";
import { projectLink } from "../elements/parts.ts";
import { isLive, projectPath } from "../projects/project.ts";
import { Act } from "../ui/act.tsx";
import { Callout, Tag } from "../ui/parts.tsx";
import { noteWritten } from "../live/written.ts";
import { addAsk, type Ask, askMessage, asksOf, markSent, removeAsk, unsentOf } from "./asks.ts";
import type { PlacedNote } from "./diff.tsx";
import type { Drafts, Way } from "./drafts.tsx";
import { type Place, placeWords } from "./place.ts";

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

interface NoteParts {
  readonly ask: Ask;
  /** Its lines have another text by now. */
  readonly hasChanged?: boolean;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
}

const AskNote = ({
  ask: { place, text, isSent = false },
  hasChanged = false,
  onEdit,
  onRemove,
}: NoteParts) => (
  <div className="thread ask">
    <p className="quiet">
      {isSent ? "Sent to the agent" : "For the agent, not sent yet"}
      {isSent && hasChanged && (
        <>
          {" "}
          <Tag tone="good">these lines have changed since</Tag>
        </>
      )}
    </p>
    <p className="text" dir="auto">
      {text}
    </p>
    <p className="actions">
      {!isSent && <Act label="Edit" about={aboutOf(place)} does={async () => onEdit()} />}
      <Act label={isSent ? "Hide" : "Remove"} about={aboutOf(place)} does={async () => onRemove()} />
    </p>
  </div>
);

const aboutOf = (place: Place): string => `the comment on ${placeWords(place)}`;

/** What a reader may ask the agent. @param session null: it may be asked nothing @param drafts in which a comment is changed */
export const useAsking = (session: Asked | null, drafts: Drafts) => {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const asks = session === null ? [] : asksOf(session.id);
  const way: Way | null = session && {
    label: "Add for the agent",
    send: async (ask) => {
      addAsk(session.id, ask);
      redraw();
    },
  };
  const remove = (at: number): void => {
    if (session !== null) removeAsk(session.id, at);
    redraw();
  };
  return {
    way,
    notes: asks.map((ask, at): PlacedNote => {
      const note: NoteParts = {
        ask,
        onEdit: () => {
          remove(at);
          drafts.begin(ask.place, ask.quote, ask.text);
        },
        onRemove: () => remove(at),
      };
      return {
        key: `ask ${at} ${ask.text}`,
        place: ask.place,
        quote: ask.quote,
        content: <AskNote {...note} />,
        changed: <AskNote {...note} hasChanged />,
      };
    }),
    waiting: asks.filter(({ isSent }) => !isSent),
    sent: redraw,
  };
};

type Asking = ReturnType<typeof useAsking>;

interface Waiting {
  readonly asking: Asking;
  readonly session: Asked;
  /** The paths of the files that are shown, where the comments stand. */
  readonly paths: ReadonlySet<string>;
}

/** How many comments the agent does not have yet. Those whose file is not shown any more stand here. */
export const WaitingAsks = ({ asking: { waiting, sent }, session, paths }: Waiting) => {
  if (waiting.length === 0) return null;
  const { id, project_id: project, status } = session;
  const sends = `Send ${counted(waiting.length, "comment")}`;
  const homeless = waiting.filter(({ place }) => !paths.has(place.file));
  const send = async (): Promise<void> => {
    // They are kept until the service has them.
    await tellAgent(session, askMessage(unsentOf(id)));
    markSent(id);
    notice("The agent has your comments.", ["Show the session", projectLink(project, `/sessions/${id}`)]);
    sent();
  };
  return (
    <Callout>
      <p>
        <strong>{`${counted(waiting.length, "comment")} for the agent, not sent yet`}</strong>
      </p>
      {homeless.length > 0 && (
        <ul className="dots">
          {homeless.map(({ place, text }, at) => (
            // Two comments may be the same.
            <li key={`${at} ${text}`}>
              <code>{placeWords(place)}</code>
              {`: ${text}`}
            </li>
          ))}
        </ul>
      )}
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

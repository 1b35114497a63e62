/** What a session waits for, opened in its row: a question, a permission, an approval, or work that is not saved. */
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { listenToAnswers } from "../answers.js";
import { getJson } from "../api.js";
import { perform } from "../app.js";
import { readAsked } from "../asked.js";
import { applySnapshot, emptyConversation, openRequests } from "../conversation-model.js";
import { type Child, h, morph } from "../dom.js";
import { requestView } from "../requests.js";
import { waitView } from "../saved-work.js";
import { makeSteering } from "../steering.js";
import { Prose } from "../ui/parts.tsx";
import { ActionButton } from "./actions.tsx";
import { type Session, sessionPath } from "./sessions.ts";

type Place = Pick<Session, "project_id" | "id">;

/** Reads the cards of other pages, and draws them into an element. An answer counts here as it does there. */
type Cards = (session: Place, element: HTMLElement) => Promise<void>;

/** Requests of the conversation. An answered one stays until the row leaves its group. */
const showRequests: Cards = async (session, element) => {
  const path = sessionPath(session);
  const conversation = emptyConversation();
  applySnapshot(conversation, await getJson(`${path}/conversation?limit=1`));
  const shown = openRequests(conversation).map(({ id }) => id);
  const drafts = new Map<string, Record<string, string[]>>();
  const card = (id: string): Child => {
    const item = conversation.items.get(id);
    if (item === undefined) return null;
    const context = { asked: steering.askedOf(id), draft: drafts.get(id) ?? {} };
    return h("div", { class: "item", "data-kind": "request", "data-key": id }, ...requestView(item, context));
  };
  const draw = (): void => morph(element, shown.map(card));
  const changed = (): void => {
    draw();
    // The answer decides in which group the session is.
    if (openRequests(conversation).length < shown.length) void perform(() => {});
  };
  const steering = makeSteering(path, conversation, { changed, told: () => {} });
  listenToAnswers(element, { conversation, drafts, steering });
  draw();
};

/** Calls that wait for an approval. */
const showCalls: Cards = async ({ project_id: project, id }, element) => {
  const view = await readAsked(project, id);
  morph(element, [view()]);
};

const CardsOf = ({ show, project_id, id }: Place & { readonly show: Cards }) => {
  const place = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    show({ project_id, id }, element).catch((error: unknown) => {
      setProblem(error instanceof Error ? error.message : String(error));
    });
  }, [show, project_id, id]);
  return (
    <>
      <div ref={place} data-own="cards" />
      {problem !== null && (
        <p className="refusal" role="alert">
          <Prose text={problem} />
        </p>
      )}
    </>
  );
};

/** What the frame's older parts describe. */
const Drawn = ({ view }: { readonly view: Child }) => {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (place.current !== null) morph(place.current, [view]);
  });
  return <div ref={place} data-own="drawn" />;
};

const Unsaved = ({ session }: { readonly session: Session }) => (
  <>
    <Drawn view={waitView(session)} />
    <p className="actions">
      <ActionButton session={session} entry="stop-session" label="Save and stop" className="primary" />
      <ActionButton session={session} entry="stop-session" label="Stop without it" save="try" />
    </p>
  </>
);

export const Wait = ({ session }: { readonly session: Session }) => {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current } = place;
    return () => {
      // An answer that takes the row away leaves the focus at the page's beginning, not outside of it.
      if (current?.contains(document.activeElement) === true)
        document.getElementById("main")?.focus({ preventScroll: true });
    };
  }, []);
  const { waits_for: wait, project_id, id } = session;
  return (
    <div ref={place}>
      {wait?.kind === "work_unsaved" ? (
        <Unsaved session={session} />
      ) : (
        <CardsOf
          // The next question is another card.
          key={wait?.id}
          show={wait?.kind === "approval" ? showCalls : showRequests}
          project_id={project_id}
          id={id}
        />
      )}
    </div>
  );
};

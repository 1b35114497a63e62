/** What a session waits for, opened in its row: a question, a permission, an approval, or work that is not saved. */
import { useEffect, useMemo, useReducer, useRef, useState } from "react";
import { getJson } from "../api/api.ts";
import { perform } from "../frame/app.ts";
import { ApprovalCard, useApprovals } from "../conversation/items/approval.tsx";
import { useFocusKept } from "../conversation/focus.ts";
import type { Draft } from "../conversation/items/reply.ts";
import { RequestCard } from "../conversation/items/request.tsx";
import { Steering } from "../conversation/foot/steering.ts";
import {
  applySnapshot,
  type Conversation,
  emptyConversation,
  openRequests,
} from "../conversation/reading/model.ts";
import { SaveWait } from "../saved/wait.tsx";
import { Prose } from "../ui/parts.tsx";
import { sessionLink } from "../elements/parts.ts";
import { hasEnded } from "../projects/project.ts";
import { ActionButton } from "./actions.tsx";
import { type Session, sessionPath } from "./sessions.ts";

type Place = Pick<Session, "project_id" | "id">;

const toMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));

interface Known {
  readonly conversation: Conversation;
  readonly steering: Steering;
  readonly drafts: Map<string, Draft>;
  /** The requests that were open when the card was opened. */
  ids: readonly string[];
}

/** The open requests of a session, as its own page has them. Null: they are not read yet. */
const useRequests = (session: Place) => {
  const [problem, setProblem] = useState<string | null>(null);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const path = sessionPath(session);
  const known = useMemo(() => {
    const conversation = emptyConversation();
    const changed = (): void => {
      redraw();
      // The answer decides in which group the session is.
      const left = openRequests(conversation).filter(({ id }) => steering.askedOf(id).settled === null);
      if (left.length < made.ids.length) void perform(() => {});
    };
    const steering = new Steering(path, conversation, { changed, told: () => {} });
    const made: Known = { conversation, steering, drafts: new Map(), ids: [] };
    return made;
  }, [path]);
  useEffect(() => {
    const read = async (): Promise<void> => {
      applySnapshot(known.conversation, await getJson(`${path}/conversation?limit=1`));
      known.ids = openRequests(known.conversation).map(({ id }) => id);
      redraw();
    };
    read().catch((error: unknown) => setProblem(toMessage(error)));
  }, [known, path]);
  return { ...known, problem };
};

/** An answered request stays until the row leaves its group. */
const Requests = ({ session }: { readonly session: Place }) => {
  const { conversation, steering, drafts, ids, problem } = useRequests(session);
  return (
    <>
      {ids.map((id) => {
        const item = conversation.items.get(id);
        return (
          item !== undefined && (
            <div key={id} className="item">
              <RequestCard item={item} asked={steering.askedOf(id)} steering={steering} drafts={drafts} />
            </div>
          )
        );
      })}
      {problem !== null && (
        <p className="refusal" role="alert">
          <Prose text={problem} />
        </p>
      )}
    </>
  );
};

/** Calls that wait for an approval. */
const Calls = ({ session }: { readonly session: Session }) => {
  const { project_id: project, id } = session;
  const approvals = useApprovals({ project, session: id }, session);
  return approvals.map((approval) => (
    <ApprovalCard key={approval.id} project={project} approval={approval} />
  ));
};

const Unsaved = ({ session }: { readonly session: Session }) => {
  const place = useRef<HTMLDivElement>(null);
  useFocusKept(place);
  return (
    <div ref={place}>
      <SaveWait session={session} />
      <p className="actions">
        <ActionButton session={session} entry="stop-session" label="Save and stop" className="primary" />
        <ActionButton session={session} entry="stop-session" label="Stop without it" save="try" />
      </p>
    </div>
  );
};

/** Its request is closed. */
const InSleep = ({ session }: { readonly session: Session }) => (
  <>
    <p className="text">
      The session went to sleep before an answer came. Answer with a message: it starts the session again.
    </p>
    <p className="actions">
      <a className="button primary" href={sessionLink(session)}>
        Open the session
      </a>
    </p>
  </>
);

export const Wait = ({ session }: { readonly session: Session }) => {
  const { waits_for: wait } = session;
  if (wait?.kind === "work_unsaved") return <Unsaved session={session} />;
  if (hasEnded(session.status) && wait?.kind !== "approval") return <InSleep session={session} />;
  // The next question is another card.
  return wait?.kind === "approval" ? (
    <Calls session={session} />
  ) : (
    <Requests key={wait?.id} session={session} />
  );
};

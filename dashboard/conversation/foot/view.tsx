/** Below a conversation: a bar for requests out of view, the queue, what the agent does, the composer, and the cost. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useReducer } from "react";
import { countedQuery } from "../../api/counted.ts";
import { queries } from "../../api/queries.ts";
import { Composer, Trouble } from "../../composer/composer.tsx";
import { type Conversation, requestTitle, turnUsage } from "../reading/model.ts";
import { elapsed, now, usageText } from "../../elements/format.ts";
import { lackedRole, readOnlyWords } from "../../frame/roles.ts";
import type { Item, Session } from "../../wire.d.ts";
import { contextState } from "./context.ts";
import type { Context } from "../log.ts";
import { ContextMeter } from "./meter.tsx";
import { Queue } from "./queue.tsx";
import { turnState } from "./turn-state.ts";

const TICK_MS = 1000;

interface Shown {
  readonly conversation: Conversation;
  readonly session: Session;
}

const TurnLine = ({ conversation, session }: Shown) => {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    // oxlint-disable-next-line no-restricted-globals -- the browser's timer
    const ticking = setInterval(tick, TICK_MS);
    return () => clearInterval(ticking);
  }, []);
  const { word, state, workedMs, silentMs } = turnState(conversation, session, now());
  return (
    <p className="turn-state">
      <span className="turn-word" data-turn={state} role="status">
        {word}
      </span>
      {/* Outside of the status, so that it is not announced every second. */}
      {workedMs !== null && <span>{`for ${elapsed(workedMs)}`}</span>}
      {silentMs !== null && (
        <span className="silence">{`The model has been silent for ${elapsed(silentMs)}`}</span>
      )}
    </p>
  );
};

/** A turn that has ended has its cost at its end. Where the runtime knows no price, the session's cost is the one that the service counted. */
const Costs = ({ conversation, session }: Shown) => {
  const { usage } = conversation;
  const isPriced = usage.cost_usd > 0;
  const { data: counted = [] } = useQuery(
    { ...countedQuery({ ...session, usage }), enabled: !isPriced },
    queries,
  );
  const cost = isPriced ? usage.cost_usd : counted.reduce((sum, { cost_usd: one }) => sum + one, 0);
  const present = conversation.turn.state === "idle" ? null : turnUsage(conversation);
  return (
    <p className="costs quiet">
      {present !== null && <span>{`This turn: ${usageText(present)}`}</span>}
      <span>{`Session: ${usageText({ ...usage, cost_usd: cost })}`}</span>
    </p>
  );
};

/** Requests that are not in view, oldest first. The bar is announced, so its element stays. */
const AskBar = ({
  requests: [first, ...others],
  onShow,
}: {
  readonly requests: readonly Item[];
  readonly onShow: (id: string) => void;
}) => (
  <div className="ask-bar" role="status">
    {first !== undefined && first.request !== null && (
      <>
        <span className="ask-bar-text">{requestTitle(first.request)}</span>
        {others.length > 0 && <span className="quiet">{`and ${others.length} more`}</span>}
        <button type="button" onClick={() => onShow(first.id)}>
          Show
        </button>
      </>
    )}
  </div>
);

interface FootParts {
  readonly context: Context;
  /** Requests that the reader does not see. */
  readonly hidden: readonly Item[];
  readonly onShow: (id: string) => void;
}

export const FootView = ({ context: { path, reading, foot }, hidden, onShow }: FootParts) => {
  const { conversation, heard } = reading;
  const fullness = contextState(conversation);
  return (
    <div className="foot">
      <AskBar requests={hidden} onShow={onShow} />
      <Queue foot={foot} isHeld={conversation.held} />
      {heard && <TurnLine conversation={conversation} session={foot.around.session} />}
      <Trouble writing={foot.writing} />
      {lackedRole("send-message") === null ? (
        <Composer
          path={path}
          writing={foot.writing}
          moment={foot.moment()}
          onStop={() => void foot.steering.stop()}
          lastOwn={foot.lastOwn}
          meter={fullness !== null && <ContextMeter state={fullness} />}
        />
      ) : (
        <p className="quiet">{readOnlyWords("send-message")}</p>
      )}
      {heard && <Costs conversation={conversation} session={foot.around.session} />}
    </div>
  );
};

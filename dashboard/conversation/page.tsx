/** A session's conversation: a window of its entries, what waits for the reader, and the composer below. */
import { memo, type ReactNode, useEffect, useLayoutEffect, useRef, useSyncExternalStore } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { callsThatWait, isOpen, type Item, textOf } from "./reading/model.ts";
import { counted, duration, grouped, usageText } from "../elements/format.ts";
import { agentWords, isLive } from "../projects/project.ts";
import { lackedRole } from "../frame/roles.ts";
import { useAddressQuery } from "../ui/address.ts";
import { Fault } from "../ui/fault.tsx";
import { ApprovalCard, useApprovals } from "./items/approval.tsx";
import { FailedTurn, useFailure } from "./items/failure.tsx";
import type { Reading } from "./reading/stream.ts";
import { useFocusKept } from "./focus.ts";
import { type Around, Foot as ConversationFoot } from "./foot/foot.ts";
import { FootView } from "./foot/view.tsx";
import { type Edge, Log, type View } from "./log.ts";
import { Message, Plan, Remarks, Thought } from "./items/message.tsx";
import { Clock } from "./parts.tsx";
import { NextMessages } from "./foot/queue.tsx";
import { RequestCard } from "./items/request.tsx";
import type { Asked } from "./foot/steering.ts";
import { Explored, Tool } from "./items/tool.tsx";
import { CopyButton } from "./text/copy.tsx";
import { TurnMenu } from "./foot/turn-menu.tsx";
import { type Entry, isSameEntry, type TurnFoot, type TurnHead } from "./turns.ts";

const Head = ({ head: { agent, model, at }, name }: { readonly head: TurnHead; readonly name: string }) => (
  <p className="said-by turn-head">
    <strong>{agentWords(agent ?? name)}</strong>
    {model !== null && <span className="quiet"> {model}</span>} <Clock at={at} />
  </p>
);

const Foot = ({
  foot: { durationMs, usage, changes },
  answer,
  menu,
}: {
  readonly foot: TurnFoot;
  /** What the agent said at the end. "": nothing. */
  readonly answer: string;
  readonly menu: ReactNode;
}) => (
  <div className="turn-foot quiet">
    {[
      durationMs !== null && duration(durationMs),
      usage !== null && usageText(usage),
      changes !== null && `${counted(changes.files, "file")} changed`,
    ]
      .filter(Boolean)
      .join(" · ")}
    {changes !== null && changes.lines !== null && (
      <span className="counts">
        {" "}
        <span className="added">{`+${grouped(changes.lines.added)}`}</span>{" "}
        <span className="removed">{`−${grouped(changes.lines.removed)}`}</span>
      </span>
    )}
    {answer !== "" && <CopyButton text={answer} what="the answer" />}
    {menu}
  </div>
);

interface OfEntry {
  readonly entry: Entry;
  readonly log: Log;
  /** The agent's. */
  readonly name: string;
  readonly asked: Asked;
  /** The code of an error that is said elsewhere. */
  readonly said: string | null;
  /** Whether the workspace is as this turn left it. Undefined: the reader may start no session. */
  readonly isNewest: boolean | undefined;
  /** Whether the reader looked for it. */
  readonly isMarked: boolean;
  /** Whether its tool call waits for a permission. */
  readonly waits: boolean;
}

const Content = ({
  item,
  log,
  asked,
  waits,
}: { readonly item: Item } & Pick<OfEntry, "log" | "asked" | "waits">): ReactNode => {
  const { opened, drafts, context } = log;
  switch (item.kind) {
    case "message":
      return <Message item={item} path={context.path} />;
    case "thought":
      return <Thought item={item} opened={opened} />;
    case "tool":
      return item.tool !== null && <Tool item={item} tool={item.tool} opened={opened} waits={waits} />;
    case "plan":
      return <Plan item={item} />;
    case "request":
      return (
        <RequestCard
          item={item}
          asked={asked}
          steering={context.foot.steering}
          drafts={drafts}
          opened={opened}
        />
      );
    case "note":
      return <p className="note">{textOf(item)}</p>;
    default:
      return item.kind satisfies never;
  }
};

const EntryView = memo(
  ({ entry: { items, head, foot }, log, name, asked, said, isNewest, isMarked, waits }: OfEntry) => {
    const element = useRef<HTMLLIElement>(null);
    useFocusKept(element);
    const [item, ...others] = items;
    if (item === undefined) return null;
    const isRun = others.length > 0;
    return (
      <li
        ref={element}
        className="item"
        data-item={isRun ? undefined : item.id}
        data-kind={isRun ? "run" : item.kind}
        data-role={item.role ?? ""}
        data-status={item.status}
        data-marked={isMarked ? "" : undefined}
        data-nested={item.parent_id === null ? undefined : ""}
        // A finished item is announced whole, and not each of its words.
        aria-busy={items.some(isOpen)}
      >
        {head !== null && <Head head={head} name={name} />}
        {isRun ? (
          <Explored items={items} opened={log.opened} />
        ) : (
          <>
            <Content item={item} log={log} asked={asked} waits={waits} />
            <Remarks item={item} said={said} />
          </>
        )}
        {foot !== null && (
          <Foot
            foot={foot}
            answer={item.kind === "message" && !isRun ? textOf(item) : ""}
            menu={
              isNewest !== undefined && (
                <TurnMenu turn={{ id: foot.id, isNewest }} session={() => log.context.foot.around.session} />
              )
            }
          />
        )}
      </li>
    );
  },
  (a, b) =>
    a.name === b.name &&
    a.asked === b.asked &&
    a.said === b.said &&
    a.isNewest === b.isNewest &&
    a.isMarked === b.isMarked &&
    a.waits === b.waits &&
    a.log === b.log &&
    isSameEntry(a.entry, b.entry),
);

const EdgeView = ({ edge, onOlder }: { readonly edge: Edge; readonly onOlder: () => void }) => (
  <div className="edge">
    {edge === "loading" && <p className="quiet">Loading…</p>}
    {edge === "older" && (
      <button type="button" onClick={onOlder}>
        Show older items
      </button>
    )}
    {edge === "beginning" && <p className="quiet">The conversation begins here.</p>}
    {edge === "nothing" && <p className="quiet">Nothing was said yet.</p>}
  </div>
);

interface OfEnds {
  readonly log: Log;
  /** The last turn, if it failed. */
  readonly failure: ReturnType<typeof useFailure>;
}

/** The remedy for a model that does not exist. */
const chooseModel = ({ writing }: ConversationFoot): void => {
  // The choice can have the focus once it is shown.
  flushSync(() => writing.openChoices(true));
  writing.area.current?.form?.querySelector<HTMLElement>(".model-button")?.focus();
};

/** The model that the agent named last. */
const modelSaid = ({ order }: Reading["conversation"]): string | null =>
  order.findLast(({ model }) => model !== undefined && model !== null)?.model ?? null;

/** What waits for the reader at the end: calls of the agent, and a turn that failed. */
const Ends = ({ log, failure }: OfEnds) => {
  const { reading, foot } = log.context;
  const { session } = foot.around;
  const approvals = useApprovals({ project: session.project_id, session: session.id }, session);
  useLayoutEffect(log.grown, [log, approvals, failure]);
  return (
    <div className="ends">
      {isLive(session.status) &&
        approvals.map((approval) => (
          <ApprovalCard key={approval.id} project={session.project_id} approval={approval} />
        ))}
      {failure !== null && reading.heard && (
        <FailedTurn
          last={failure}
          session={session}
          model={modelSaid(reading.conversation)}
          does={{ again: foot.sendAgain, model: () => chooseModel(foot) }}
        />
      )}
    </div>
  );
};

/** Escape ends the agent's turn, unless it closes something. */
const useEscape = ({ context: { reading, foot } }: Log): void => {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
      if (document.querySelector("dialog[open], details.menu[open], [popover]:popover-open") !== null) return;
      const focused = document.activeElement;
      // A terminal, and a menu, have the key for themselves.
      if (focused?.closest(".terminal, [role=menu], select") !== null && focused !== null) return;
      if (reading.conversation.turn.state !== "idle") void foot.steering.stop();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [reading, foot]);
};

const Jump = ({ below, onPress }: { readonly below: number; readonly onPress: () => void }) => (
  <button type="button" onClick={onPress}>
    {below > 0 ? `Newest (${grouped(below)} more)` : "Newest"}
  </button>
);

/** Whether the workspace is as an entry's turn left it: the last one, until the agent works again. */
const newestOf = ({ context: { reading } }: Log, { entries, below }: View) => {
  if (lackedRole("start-session") !== null) return () => undefined;
  const rests = below === 0 && reading.conversation.turn.state === "idle";
  const last = rests ? entries.findLastIndex((entry) => entry.foot !== null) : -1;
  return (at: number): boolean => at === last;
};

/** What the reader looks for: a search leads to a message. */
const useSought = ({ showItem }: Log): void => {
  const sought = useAddressQuery().get("item");
  useEffect(() => {
    if (sought !== null) showItem(sought);
  }, [showItem, sought]);
};

const Conversation = ({ log }: { readonly log: Log }) => {
  const view = useSyncExternalStore(log.subscribe, log.view);
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => (element.current === null ? undefined : log.attach(element.current)), [log]);
  useLayoutEffect(log.drawn, [log, view]);
  useEscape(log);
  const { entries, edge, follows, below, problem, hidden, marked } = view;
  useSought(log);
  const { path, reading, foot } = log.context;
  const failure = useFailure(foot.around, reading.conversation);
  const isNewestAt = newestOf(log, view);
  const waiting = callsThatWait(reading.conversation);
  return (
    <>
      <div className="turn">
        {problem !== null && <p className="refusal">{`The conversation could not be read. ${problem}`}</p>}
      </div>
      <div className="talk-frame">
        <div
          ref={element}
          className="talk"
          role="log"
          tabIndex={0}
          aria-label="Conversation"
          // Only what is added at the end is news.
          aria-live={follows ? "polite" : "off"}
          onKeyDown={({ key, target, currentTarget }) => {
            if (key === "End" && target === currentTarget) log.toEnd();
          }}
        >
          <EdgeView edge={edge} onOlder={log.earlier} />
          <ol className="items">
            {entries.map((entry, at) => (
              <EntryView
                key={entry.id}
                entry={entry}
                log={log}
                name={foot.around.session.agent_name}
                asked={foot.steering.askedOf(entry.id)}
                isNewest={isNewestAt(at)}
                isMarked={entry.items.some(({ id }) => id === marked)}
                waits={entry.items.some(({ id }) => waiting.has(id))}
                said={at === entries.length - 1 ? (failure?.error?.code ?? null) : null}
              />
            ))}
          </ol>
          <Ends log={log} failure={failure} />
          <NextMessages foot={foot} path={path} hidden={below > 0} />
        </div>
        <p className="jump">
          {!follows && (
            <Jump
              below={below}
              onPress={() => {
                log.toEnd();
                element.current?.focus({ preventScroll: true });
              }}
            />
          )}
        </p>
      </div>
      <FootView context={log.context} hidden={hidden} onShow={log.showRequest} />
    </>
  );
};

/** A conversation that is shown. */
export interface Shown {
  /** Shows what has changed in it. */
  readonly draw: () => void;
  /** Shows it with what the page knows beside it. */
  readonly show: (around: Around) => void;
  /** Whether the reader is at its end. */
  readonly follows: () => boolean;
  readonly end: () => void;
}

interface Mounted {
  /** Of the session in the API. */
  readonly path: string;
  readonly reading: Reading;
  readonly around: Around;
  /** Called when the reader did something, of which she sees the effect immediately. */
  readonly changed: () => void;
}

/**
 * Shows a conversation.
 *
 * @param element its place, of class `conversation`
 */
export const mount = (element: HTMLElement, { path, reading, around, changed }: Mounted): Shown => {
  const foot = new ConversationFoot(path, reading, { around, changed, sent: () => log.toEnd() });
  const log = new Log({ path, reading, foot });
  const root = createRoot(element);
  root.render(
    <Fault>
      <Conversation log={log} />
    </Fault>,
  );
  return {
    draw: () => {
      foot.settle();
      log.draw();
    },
    show: (next) => {
      foot.around = next;
      log.draw();
    },
    follows: () => log.view().follows,
    end: () => {
      root.unmount();
      foot.end();
    },
  };
};

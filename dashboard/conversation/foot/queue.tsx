/** Messages that the agent does not have yet: the next one at the conversation's end, and the queue above the composer. */
import { type ReactNode, useRef } from "react";
import type { Sent } from "../../live/outbox.ts";
import { textOf } from "../reading/model.ts";
import { counted } from "../../elements/format.ts";
import { hasEnded } from "../../projects/project.ts";
import type { Item } from "../../wire.d.ts";
import { useFocusKept } from "../focus.ts";
import type { Foot } from "./foot.ts";
import { Markdown } from "../text/markdown.tsx";
import { Files, filesIn, type ShownFile } from "../items/message.tsx";
import { Clock } from "../parts.tsx";

const sentFiles = ({ message: { attachments = [] } }: Sent): readonly ShownFile[] =>
  attachments.map(({ id, name, media_type }) => ({ name, media_type, attachment_id: id }));

/** If it disappears, the reader goes on in the composer. */
const QueueButton = ({
  foot,
  className,
  isBusy,
  onPress,
  children,
}: {
  readonly foot: Foot;
  readonly className?: string;
  readonly isBusy?: boolean;
  readonly onPress: () => void;
  readonly children: string;
}) => {
  const element = useRef<HTMLButtonElement>(null);
  useFocusKept(element, foot.writing.area);
  return (
    <button
      ref={element}
      type="button"
      className={className}
      aria-disabled={isBusy === true ? true : undefined}
      onClick={onPress}
    >
      {children}
    </button>
  );
};

const Cancel = ({ foot, id }: { readonly foot: Foot; readonly id: string }) => {
  const isBusy = foot.steering.busy.has(id);
  return (
    <QueueButton foot={foot} className="plain" isBusy={isBusy} onPress={() => void foot.steering.cancel(id)}>
      {isBusy ? "Cancelling…" : "Cancel"}
    </QueueButton>
  );
};

/** A message that only this page has. What waits for the service can be cancelled, and its text taken back. */
const SentState = ({ foot, sent }: { readonly foot: Foot; readonly sent: Sent }) => {
  const { id, problem } = sent;
  const { absence } = foot.outbox;
  if (problem === null && absence === null) return "Sending…";
  return (
    <>
      {problem === null ? (
        <span role="status" title={absence ?? undefined}>
          {"Waits for the service. "}
        </span>
      ) : (
        <span className="refusal" role="alert">{`Not sent. ${problem} `}</span>
      )}
      {problem !== null && (
        <>
          <QueueButton foot={foot} className="plain" onPress={() => foot.outbox.again(id)}>
            Try again
          </QueueButton>{" "}
        </>
      )}
      <QueueButton foot={foot} className="plain" onPress={() => foot.takeBack(id)}>
        Edit
      </QueueButton>{" "}
      <QueueButton foot={foot} className="plain" onPress={() => foot.outbox.takeBack(id)}>
        Cancel
      </QueueButton>
    </>
  );
};

interface MessageRow {
  readonly author: string;
  readonly at: string;
  readonly text: string;
  readonly files: readonly ShownFile[];
  /** Of the session in the API. */
  readonly path: string;
  readonly children: ReactNode;
}

const MessageRow = ({ author, at, text, files, path, children }: MessageRow) => (
  <li className="own-message">
    <p className="said-by">
      <strong>{author}</strong> <Clock at={at} />
    </p>
    <Markdown text={text} />
    <Files files={files} path={path} />
    <p className="message-state">{children}</p>
  </li>
);

const authorOf = ({ author }: Item): string => author?.name ?? "Unknown author";

/** The messages at the end of the conversation. */
export const NextMessages = ({
  foot,
  path,
  hidden,
}: {
  readonly foot: Foot;
  readonly path: string;
  readonly hidden: boolean;
}) => {
  const { next, sent, isNext } = foot.waiting();
  const { session, me } = foot.around;
  // The first message may have begun the turn already.
  const rests = foot.moment().turn === "idle";
  return (
    <ol className="next-messages" aria-label="Messages on their way" hidden={hidden}>
      {next.map((item) => (
        <MessageRow
          key={item.id}
          author={authorOf(item)}
          at={item.created_at}
          text={textOf(item)}
          files={filesIn(item)}
          path={path}
        >
          {item.status === "queued" && rests ? (
            <>
              {session.status === "running" ? "Sending… " : "Waits for the sandbox "}
              <Cancel foot={foot} id={item.id} />
            </>
          ) : (
            "Sending…"
          )}
        </MessageRow>
      ))}
      {(isNext ? sent : []).map((one) => (
        <MessageRow
          key={one.id}
          author={me}
          at={one.at}
          text={one.message.text}
          files={sentFiles(one)}
          path={path}
        >
          <SentState foot={foot} sent={one} />
        </MessageRow>
      ))}
    </ol>
  );
};

const QueuedRow = ({
  author,
  text,
  files,
  children,
}: Pick<MessageRow, "author" | "text" | "files" | "children">) => {
  const inShort = [text, ...files.map(({ name }) => `[${name}]`)].join(" ").trim();
  return (
    <li className="item" data-kind="message">
      <p className="queued-text">
        <strong>{author}</strong>{" "}
        <span className="text" title={inShort}>
          {inShort}
        </span>
      </p>
      <p className="message-state">{children}</p>
    </li>
  );
};

const QueueHead = ({ foot, count, isHeld }: QueueParts & { readonly count: number }) => (
  <div className="queue-head">
    <h3>{`${counted(count, "message")} waiting for the agent`}</h3>
    {isHeld && (
      <p role="status">
        {"The queue is paused. "}
        <QueueButton
          foot={foot}
          isBusy={foot.steering.busy.has("resume")}
          onPress={() => void foot.steering.resume()}
        >
          Resume
        </QueueButton>
      </p>
    )}
    {hasEnded(foot.around.session.status) && <p className="quiet">The agent gets them after a restart.</p>}
  </div>
);

interface QueueParts {
  readonly foot: Foot;
  readonly isHeld: boolean;
}

/** The queue above the composer. */
export const Queue = ({ foot, isHeld }: QueueParts) => {
  const { queue, sent, isNext } = foot.waiting();
  const own = isNext ? [] : sent;
  const count = queue.length + own.length;
  if (count === 0) return null;
  return (
    <section className="waiting-items" aria-label="Queue">
      <QueueHead foot={foot} count={count} isHeld={isHeld} />
      <ol className="queued">
        {queue.map((item) => (
          <QueuedRow key={item.id} author={authorOf(item)} text={textOf(item)} files={filesIn(item)}>
            <Cancel foot={foot} id={item.id} />
          </QueuedRow>
        ))}
        {own.map((one) => (
          <QueuedRow key={one.id} author={foot.around.me} text={one.message.text} files={sentFiles(one)}>
            <SentState foot={foot} sent={one} />
          </QueuedRow>
        ))}
      </ol>
    </section>
  );
};

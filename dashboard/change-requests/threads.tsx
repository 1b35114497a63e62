/** What people say of a change request: a remark, and below it its answers. */
import { useState } from "react";
import type { PlacedNote } from "../diff/diff.tsx";
import { type Place, placeWords } from "../diff/place.ts";
import { Markdown } from "../conversation/text/markdown.tsx";
import { notice } from "../frame/notices.ts";
import { lackedRole } from "../frame/roles.ts";
import { RoleAct } from "../ui/act.tsx";
import { Tag, Time } from "../ui/parts.tsx";
import { addRemark, type Change, editRemark, type Remark, removeRemark } from "./request.ts";
import { VERDICTS } from "./words.ts";
import { WriteBox } from "./write.tsx";

export interface Thread {
  readonly remark: Remark;
  readonly answers: readonly Remark[];
  /** Null: it is about the whole request. */
  readonly place: Place | null;
}

const toPlace = ({ place }: Remark): Place | null =>
  place && {
    file: place.file,
    lines: { side: place.side, first: place.first_line, last: place.last_line },
  };

/** The oldest first. */
export const threadsOf = (remarks: readonly Remark[]): readonly Thread[] =>
  remarks
    .filter(({ reply_to: above }) => above === null)
    .map((remark) => ({
      remark,
      answers: remarks.filter(({ reply_to: above }) => above === remark.id),
      place: toPlace(remark),
    }));

const About = ({ remark, place }: { readonly remark: Remark; readonly place: Place | null }) => {
  const { kind, created_by: by, created_at: at, edited_at: edited, outdated } = remark;
  return (
    <p className="quiet remark-head">
      <strong>{by.name}</strong>
      {kind !== "comment" && (
        <>
          {" "}
          <Tag tone={kind === "approval" ? "good" : "bad"}>{VERDICTS[kind]}</Tag>
        </>
      )}{" "}
      <Time at={at} />
      {edited !== null && ", edited"}
      {place !== null && (
        <>
          {", "}
          <code>{placeWords(place)}</code>
        </>
      )}
      {outdated && (
        <>
          {" "}
          <Tag tone="warn">before the last push</Tag>
        </>
      )}
    </p>
  );
};

interface RemarkParts {
  readonly change: Change;
  readonly remark: Remark;
  readonly place: Place | null;
  /** The reader. */
  readonly reader: string | undefined;
}

/** A remark, which its author may change. */
const RemarkView = ({ change, remark, place, reader }: RemarkParts) => {
  const [isEdited, setEdited] = useState(false);
  const { id, body, kind, created_by: by } = remark;
  const isOwn = by.id === reader && lackedRole("review-request") === null && body !== "";
  return (
    <div className="remark" data-remark={id}>
      <About remark={remark} place={place} />
      {isEdited ? (
        <WriteBox
          name={`edit ${id}`}
          label="Edit your comment"
          first={body}
          ways={[
            {
              label: "Save",
              isPrimary: true,
              send: async (text) => {
                await editRemark(change, id, { body: text });
                setEdited(false);
              },
            },
          ]}
          onCancel={() => setEdited(false)}
        />
      ) : (
        body !== "" && <Markdown text={body} />
      )}
      {isOwn && !isEdited && (
        <p className="actions small">
          <button type="button" className="plain" onClick={() => setEdited(true)}>
            Edit
          </button>
          {kind === "comment" && (
            <RoleAct
              entry="review-request"
              label="Delete"
              about="your comment"
              does={() => removeRemark(change, id)}
            />
          )}
        </p>
      )}
    </div>
  );
};

interface ThreadParts {
  readonly change: Change;
  readonly thread: Thread;
  readonly reader: string | undefined;
}

const Answering = ({ change, remark }: { readonly change: Change; readonly remark: Remark }) => {
  const [isOpen, setOpen] = useState(false);
  const { id, created_by: by, resolved_at: resolved } = remark;
  if (lackedRole("review-request") !== null) return null;
  if (isOpen)
    return (
      <WriteBox
        name={`answer ${id}`}
        label="Your answer"
        ways={[
          {
            label: "Answer",
            isPrimary: true,
            send: async (body) => {
              await addRemark(change, { body, reply_to: id });
              notice("The answer was added.");
              setOpen(false);
            },
          },
        ]}
        onCancel={() => setOpen(false)}
      />
    );
  const resolve = async (): Promise<void> => {
    await editRemark(change, id, { resolved: resolved === null });
    notice(resolved === null ? "The comment is resolved." : "The comment is open again.");
  };
  return (
    <p className="actions small">
      <button type="button" className="plain" onClick={() => setOpen(true)}>
        Answer
      </button>
      <RoleAct
        entry="review-request"
        label={resolved === null ? "Resolve" : "Open again"}
        about={`the comment of ${by.name}`}
        does={resolve}
      />
    </p>
  );
};

/** A resolved thread is one line until the reader opens it. */
export const ThreadView = ({ change, thread, reader }: ThreadParts) => {
  const { remark, answers, place } = thread;
  const { id, kind, resolved_at: resolved, created_by: by } = remark;
  const content = (
    <>
      <RemarkView change={change} remark={remark} place={place} reader={reader} />
      {answers.map((answer) => (
        <RemarkView key={answer.id} change={change} remark={answer} place={null} reader={reader} />
      ))}
      {kind === "comment" && <Answering change={change} remark={remark} />}
    </>
  );
  return resolved === null ? (
    <div className="thread" id={`thread-${id}`}>
      {content}
    </div>
  ) : (
    <details className="thread" id={`thread-${id}`}>
      <summary className="quiet">
        {`Resolved: ${by.name}${place === null ? "" : `, ${placeWords(place)}`}`}
      </summary>
      {content}
    </details>
  );
};

/** Threads at their lines. A push moves lines, so older ones stand below their files. */
export const threadNotes = (
  threads: readonly Thread[],
  { change, reader }: Omit<ThreadParts, "thread">,
): readonly PlacedNote[] =>
  threads.flatMap((thread) =>
    thread.place === null
      ? []
      : [
          {
            key: thread.remark.id,
            place: thread.place,
            isOutdated: thread.remark.outdated,
            content: <ThreadView change={change} thread={thread} reader={reader} />,
          },
        ],
  );

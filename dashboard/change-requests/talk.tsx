/** What people say of the change request as a whole, and where they say something of its lines. */
import { useState } from "react";
import { placeWords } from "../diff/place.ts";
import { notice } from "../frame/notices.ts";
import { lackedRole } from "../frame/roles.ts";
import { addRemark, type Change, type ChangeData, type Remark } from "./request.ts";
import { type Thread, ThreadView } from "./threads.tsx";
import { WriteBox } from "./write.tsx";

const DONE: Readonly<Record<Remark["kind"], string>> = {
  comment: "The comment was added.",
  approval: "You approved the newest commit.",
  changes_requested: "You asked for changes.",
};

/** One box for all that a person says: a comment, or a verdict with or without words. */
const SayBox = ({ change }: { readonly change: Change }) => {
  const isOpen = change.status === "open";
  // A verdict is about the commit that the reader began to look at.
  const [seen, setSeen] = useState(change.head_commit);
  if (lackedRole("review-request") !== null) return null;
  const say = async (kind: Remark["kind"], body: string): Promise<void> => {
    try {
      await addRemark(change, { kind, body, ...(kind !== "comment" && { commit: seen }) });
      notice(DONE[kind]);
    } finally {
      // After a refusal the page says what is new.
      setSeen(change.head_commit);
    }
  };
  return (
    <WriteBox
      name={`say ${change.id}`}
      label="Your comment"
      ways={[
        { label: "Comment", send: (body) => say("comment", body) },
        ...(isOpen
          ? [
              { label: "Approve", isBare: true, send: (body: string) => say("approval", body) },
              { label: "Ask for changes", send: (body: string) => say("changes_requested", body) },
            ]
          : []),
      ]}
    />
  );
};

/** Leads to a thread at its lines: its file is opened. */
const show = (id: string): void => {
  const thread = document.getElementById(`thread-${id}`);
  const file = thread?.closest("details.file");
  if (file instanceof HTMLDetailsElement) file.open = true;
  if (thread instanceof HTMLDetailsElement) thread.open = true;
  thread?.scrollIntoView({ block: "center" });
  thread?.querySelector<HTMLElement>("button, summary")?.focus({ preventScroll: true });
};

/** Without the signs of Markdown, of which a list shows none. */
const firstWords = (body: string): string => {
  const [first = ""] = body.trim().split("\n", 1);
  const line = first.replaceAll(/\*\*|`|^(?:#+|>|[-*]) +/g, "");
  return line.length > 80 ? `${line.slice(0, 80).trimEnd()}…` : line;
};

/** The threads of lines, in one list. */
const OnLines = ({ threads }: { readonly threads: readonly Thread[] }) =>
  threads.length > 0 && (
    <>
      <h3>On lines</h3>
      <ul className="on-lines">
        {threads.map(({ remark, place, answers }) => (
          <li key={remark.id}>
            <button type="button" className="plain" onClick={() => show(remark.id)}>
              {place === null ? "" : placeWords(place)}
            </button>{" "}
            <span className="quiet">{`${remark.created_by.name}: ${firstWords(remark.body)}`}</span>
            {answers.length > 0 && <span className="quiet">{` (${answers.length + 1})`}</span>}
            {remark.resolved_at !== null && <span className="quiet"> resolved</span>}
          </li>
        ))}
      </ul>
    </>
  );

interface TalkParts {
  readonly data: ChangeData;
  readonly threads: readonly Thread[];
  /** The paths of the files below. */
  readonly files: ReadonlySet<string>;
  readonly reader: string | undefined;
}

export const Talk = ({ data: { change }, threads, files, reader }: TalkParts) => {
  const atLines = threads.filter(({ place }) => place !== null && files.has(place.file));
  const others = threads.filter((thread) => !atLines.includes(thread));
  return (
    <section aria-labelledby="talk">
      <h2 id="talk">Talk</h2>
      {threads.length === 0 && <p className="quiet after-heading">No one has said anything yet.</p>}
      {others.length > 0 && (
        <ul className="remarks">
          {others.map((thread) => (
            <li key={thread.remark.id}>
              <ThreadView change={change} thread={thread} reader={reader} />
            </li>
          ))}
        </ul>
      )}
      <OnLines threads={atLines} />
      <SayBox change={change} />
    </section>
  );
};

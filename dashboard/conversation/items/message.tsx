/** Items of a conversation without a form or a tool: messages, thoughts, plans, notes, and their files. */
import { isOpen, type Item, textOf } from "../reading/model.ts";
import { installation } from "../../frame/app.ts";
import { Badge, Prose, Tag } from "../../ui/parts.tsx";
import { CopyButton } from "../text/copy.tsx";
import { Markdown } from "../text/markdown.tsx";
import { Picture } from "../text/picture.tsx";
import { Clock, Folded, type Opened, Took } from "../parts.tsx";

/** The kinds that the service sends as images. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** A file of a message. Without an id it cannot be opened. */
export interface ShownFile {
  readonly name: string;
  readonly media_type: string;
  readonly attachment_id: string | null;
}

export const filesIn = ({ content }: Item): readonly ShownFile[] =>
  content.flatMap((part) => (part.type === "file" ? [part] : []));

const File = ({
  file: { name, media_type: type, attachment_id: id },
  path,
}: {
  readonly file: ShownFile;
  readonly path: string;
}) => {
  if (id === null)
    return (
      <li>
        <code>{name}</code> <span className="quiet">{type}</span>
      </li>
    );
  const href = `${path}/attachments/${id}`;
  return PICTURES.has(type) ? (
    <li className="picture">
      <a href={href} target="_blank" title={name}>
        <Picture path={href} alt={name} />
      </a>
    </li>
  ) : (
    <li>
      <a href={href} download={name}>
        {name}
      </a>{" "}
      <span className="quiet">{type}</span>
    </li>
  );
};

/** @param path of the session in the API */
export const Files = ({ files, path }: { readonly files: readonly ShownFile[]; readonly path: string }) =>
  files.length > 0 && (
    <ul className="files" aria-label="Files">
      {files.map((file, index) => (
        <File key={index} file={file} path={path} />
      ))}
    </ul>
  );

/** Statuses that need no word. */
const USUAL = new Set(["accepted", "completed", "running"]);

const SaidBy = ({ item: { author, created_at, status } }: { readonly item: Item }) => (
  <p className="said-by">
    <strong>{author?.kind === "service" ? installation() : (author?.name ?? "Unknown author")}</strong>
    {author?.kind === "trigger" && (
      <>
        {" "}
        <Tag>trigger</Tag>
      </>
    )}
    {author?.kind === "service" && (
      <>
        {" "}
        <Tag>service</Tag>
      </>
    )}
    {author?.kind === "sandbox" && (
      <>
        {" "}
        <Tag tone="warn">not by a person</Tag>
      </>
    )}{" "}
    <Clock at={created_at} />
    {!USUAL.has(status) && (
      <>
        {" "}
        <Badge status={status} />
      </>
    )}
  </p>
);

interface Remarks {
  readonly item: Item;
  /** The code of an error that is said elsewhere. */
  readonly said: string | null;
}

/** What is wrong with an item, and what of it is missing. A tool says its own failure. */
export const Remarks = ({ item: { error, pruned, truncated, tool }, said }: Remarks) => (
  <>
    {truncated && tool === null && <p className="quiet">This is only the beginning of the text.</p>}
    {error !== null && tool === null && error.code !== said && (
      <p className="refusal text" dir="auto">
        <Prose text={error.message} />
      </p>
    )}
    {pruned && <p className="quiet">Parts of this item were removed to make room.</p>}
  </>
);

export const Message = ({ item, path }: { readonly item: Item; readonly path: string }) => {
  const text = textOf(item);
  const isAgents = item.role === "agent";
  return (
    <>
      {/* The head of its turn says who the agent is. */}
      {!isAgents && <SaidBy item={item} />}
      <Markdown text={text} isGrowing={isOpen(item)} />
      <Files files={filesIn(item)} path={path} />
      {/* An error says it better. */}
      {isAgents && !USUAL.has(item.status) && item.error === null && <Badge status={item.status} />}
      {text !== "" && !isOpen(item) && (
        <p className="message-tools">
          <CopyButton text={text} what="the message" />
        </p>
      )}
    </>
  );
};

export const Thought = ({ item, opened }: { readonly item: Item; readonly opened: Opened }) => (
  <Folded
    name={item.id}
    opened={opened}
    summary={
      <span className="tool-line">
        {isOpen(item) ? "Thinking…" : "Thought"} <Took item={item} />
      </span>
    }
  >
    {() => <Markdown text={textOf(item)} isGrowing={isOpen(item)} />}
  </Folded>
);

const MARKS = { completed: "☑", running: "▸", pending: "☐", cancelled: "☒" };
const MARK_WORDS = {
  completed: "Done: ",
  running: "In progress: ",
  pending: "To do: ",
  cancelled: "Cancelled: ",
};

export const Plan = ({ item }: { readonly item: Item }) => (
  <>
    <h3>Plan</h3>
    <ol className="plan">
      {item.plan.map(({ text, status }, index) => (
        <li key={index} data-status={status}>
          <span className="tick" aria-hidden="true">
            {MARKS[status]}
          </span>
          <span className="unseen">{MARK_WORDS[status]}</span>
          <span dir="auto">{text}</span>
        </li>
      ))}
    </ol>
  </>
);

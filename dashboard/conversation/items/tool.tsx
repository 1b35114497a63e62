/** A tool call: one line, and its input and output for readers who open it. */
import { isOpen, type Item } from "../reading/model.ts";
import { counted } from "../../elements/format.ts";
import { Badge, Prose } from "../../ui/parts.tsx";
import { KindIcon } from "../icons.tsx";
import { Diff, Lines, Terminal } from "../text/output.tsx";
import { Folded, type Opened, Took } from "../parts.tsx";
import {
  toolCommand,
  fileContent,
  exploredWords,
  failureWord,
  searchHits,
  inputText,
  type HitFile,
  toolTitle,
} from "../../../src/domain/conversation/tool-words.ts";
import type { ToolCall } from "../../wire.d.ts";

interface Shown {
  readonly item: Item;
  readonly tool: ToolCall;
  readonly opened: Opened;
  /** Whether it waits for a permission. */
  readonly waits?: boolean;
}

const Summary = ({ item, tool, waits }: Omit<Shown, "opened">) => {
  const { text, isProse } = toolTitle(tool);
  const failure = failureWord(item);
  return (
    <span className="tool-line">
      <KindIcon kind={tool.kind} />
      <span className={isProse ? "tool-title prose" : "tool-title"} dir="auto">
        {text}
      </span>{" "}
      {failure !== null && <Badge status={failure.startsWith("exit") ? "failed" : failure} word={failure} />}
      {isOpen(item) && <Badge status={waits ? "waiting" : "running"} />}
      {failure === null && !isOpen(item) && <Took item={item} />}
    </span>
  );
};

export const Changes = ({ changes }: Pick<ToolCall, "changes">) =>
  changes.map(({ path, operation, patch }) => (
    <div key={path} className="file">
      <h3>
        <code>{path}</code> <span className="quiet">{operation}</span>
      </h3>
      {patch !== null && patch.trim() !== "" && <Diff path={path} patch={patch} />}
    </div>
  ));

/** The page stays fast with this many files of a search. */
const FILES_MAX = 100;

const Hits = ({ files }: { readonly files: readonly HitFile[] }) => (
  <>
    <ul className="hits">
      {files.slice(0, FILES_MAX).map(({ path, hits }) => (
        <li key={path}>
          <code>{path}</code>
          {hits.length > 0 && (
            <Lines
              label={`Lines of ${path}`}
              text={hits.map(({ line, text }) => `${line ?? ""}: ${text}`).join("\n")}
            />
          )}
        </li>
      ))}
    </ul>
    {files.length > FILES_MAX && (
      <p className="quiet">{`${counted(files.length - FILES_MAX, "more file")} not shown.`}</p>
    )}
  </>
);

const Output = ({ text }: { readonly text: string }) =>
  text.trim() !== "" && <Lines text={text} label="Output" />;

/** Of a tool that the page does not know. */
const Unknown = ({ tool }: { readonly tool: ToolCall }) => (
  <>
    <h3>
      Input <span className="quiet">{tool.name}</span>
    </h3>
    <Lines text={inputText(tool.input)} label="Input" />
    <Changes changes={tool.changes} />
    {tool.output.trim() !== "" && <h3>Output</h3>}
    <Output text={tool.output} />
  </>
);

const Content = ({ tool }: { readonly tool: ToolCall }) => {
  const { kind, output } = tool;
  const hits = kind === "search" ? searchHits(tool) : null;
  if (kind === "execute" && toolCommand(tool) !== "")
    return (
      <>
        <Terminal command={toolCommand(tool)} output={output} />
        <Changes changes={tool.changes} />
      </>
    );
  if (tool.changes.length > 0) return <Changes changes={tool.changes} />;
  if (hits !== null) return <Hits files={hits} />;
  if ((kind === "read" || kind === "fetch" || kind === "search") && output !== "")
    return (
      <>
        <h3>
          <code>{toolTitle(tool).text}</code>
        </h3>
        <Output text={fileContent(tool)} />
      </>
    );
  return <Unknown tool={tool} />;
};

const Failure = ({ item }: { readonly item: Item }) =>
  item.error !== null && (
    <p className="refusal text" dir="auto">
      <Prose text={item.error.message} />
    </p>
  );

export const Tool = ({ item, tool, opened, waits = false }: Shown) => (
  <>
    <Folded name={item.id} opened={opened} summary={<Summary item={item} tool={tool} waits={waits} />}>
      {() => (
        <>
          <Content tool={tool} />
          {tool.truncated && <p className="quiet">This is only the beginning of the output.</p>}
        </>
      )}
    </Folded>
    <Failure item={item} />
  </>
);

/** Reads and searches in a row, in one line. */
export const Explored = ({ items, opened }: { readonly items: readonly Item[]; readonly opened: Opened }) => {
  const [first] = items;
  // The run may begin earlier once older items are read.
  const name = items.map(({ id }) => `run ${id}`).find((one) => opened.has(one)) ?? `run ${first?.id ?? ""}`;
  return (
    <Folded
      name={name}
      opened={opened}
      summary={
        <span className="tool-line">
          <KindIcon kind="search" />
          <span className="tool-title prose">{exploredWords(items)}</span>
        </span>
      }
    >
      {() => (
        <ol className="run">
          {items.map((item) => (
            <li key={item.id} data-item={item.id} data-kind="tool">
              {item.tool !== null && <Tool item={item} tool={item.tool} opened={opened} />}
            </li>
          ))}
        </ol>
      )}
    </Folded>
  );
};

/** Markdown as elements. Its text becomes text nodes; images become links, so that the page loads nothing. */
import { createContext, memo, type ReactNode, useContext, useRef } from "react";
import { Code } from "../../code/coloured.tsx";
import { languageNamed } from "../../code/languages.ts";
import { type Block, type Entry, type Inline, type Read, readOn } from "../../elements/markdown.ts";
import { Copied } from "./copy.tsx";
import { Outside } from "../../ui/parts.tsx";

/** A longer text is cut. The API has the rest. */
const SHOWN_MAX = 256 * 1024;

/** What continues a character before it: a mark, or the other half of a pair. */
const CONTINUES = /^[\p{M}\u200d\udc00-\udfff]/u;

/**
 * A text that may grow. What is added becomes a text node of its own, because a browser ends a selection in a node whose text changes.
 */
const Words = ({ text }: { readonly text: string }) => {
  const pieces = useRef<readonly string[]>([]);
  const known = pieces.current.join("");
  const added = text.slice(known.length);
  if (!text.startsWith(known) || CONTINUES.test(added)) pieces.current = [text];
  else if (added !== "") pieces.current = [...pieces.current, added];
  return <>{pieces.current}</>;
};

const textOf = (tokens: readonly Inline[]): string =>
  tokens.map((token) => ("text" in token ? token.text : textOf(token.children))).join("");

const Link = ({
  link,
  inLink,
}: {
  readonly link: Extract<Inline, { type: "link" }>;
  readonly inLink: boolean;
}) => {
  const { href, target, image, children } = link;
  const label = image && children.length === 0 ? <>image</> : <Inlines tokens={children} inLink />;
  if (inLink) return label;
  // Any other target stays readable beside its label.
  if (href === null)
    return target === "" ? (
      label
    ) : (
      <>
        {label} (<code>{target}</code>)
      </>
    );
  const text = textOf(children);
  const misleads = /^\s*(?:https?:|www\.)/i.test(text) && text !== target;
  return (
    <>
      <Outside to={href}>
        {image && "🖼 "}
        {label}
      </Outside>
      {misleads && ` (${href})`}
    </>
  );
};

const Inlines = ({
  tokens,
  inLink = false,
}: {
  readonly tokens: readonly Inline[];
  readonly inLink?: boolean;
}) =>
  tokens.map((token, index) => {
    // Tokens of a text that grows keep their places.
    if (token.type === "text") return <Words key={index} text={token.text} />;
    if (token.type === "code") return <code key={index}>{token.text}</code>;
    if (token.type === "link") return <Link key={index} link={token} inLink={inLink} />;
    const Tag = token.type;
    return (
      <Tag key={index}>
        <Inlines tokens={token.children} inLink={inLink} />
      </Tag>
    );
  });

const Item = ({ entry: { task, blocks } }: { readonly entry: Entry }) => {
  const [first, ...rest] = blocks;
  return (
    <li className={task === null ? undefined : "task"} dir="auto">
      {task !== null && (
        <>
          <span className="tick" aria-hidden="true">
            {task ? "☑" : "☐"}
          </span>
          <span className="unseen">{task ? "Done: " : "To do: "}</span>
        </>
      )}
      <div>
        {/* A single paragraph needs no distance to its neighbours. */}
        {first?.type === "paragraph" ? (
          <Inlines tokens={first.children} />
        ) : (
          first !== undefined && <BlockView block={first} />
        )}
        <Blocks blocks={rest} />
      </div>
    </li>
  );
};

const Table = ({ table: { align, head, rows } }: { readonly table: Extract<Block, { type: "table" }> }) => {
  const cells = (Tag: "th" | "td", row: readonly (readonly Inline[])[]): ReactNode =>
    row.slice(0, head.length).map((cell, index) => (
      <Tag key={index} dir="auto" data-align={align[index] ?? undefined}>
        <Inlines tokens={cell} />
      </Tag>
    ));
  return (
    <div className="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>{cells("th", head)}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{cells("td", row)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};

const inside = (block: Block): readonly Block[] => {
  if (block.type === "quote") return block.blocks;
  return block.type === "list" ? block.entries.flatMap(({ blocks }) => blocks) : [];
};

/** How deep each heading of a text is below the others: no level is left out, whatever the author wrote. */
const outline = (blocks: readonly Block[]): ReadonlyMap<Block, number> => {
  const depths = new Map<Block, number>();
  const above: number[] = [];
  const visit = (block: Block): void => {
    if (block.type === "heading") {
      while ((above.at(-1) ?? 0) >= block.level) above.pop();
      above.push(block.level);
      depths.set(block, above.length);
    }
    for (const one of inside(block)) visit(one);
  };
  for (const block of blocks) visit(block);
  return depths;
};

const Depths = createContext<ReadonlyMap<Block, number>>(new Map());

/** The page's own headings above a text are the first two levels. */
const HEADINGS = ["h3", "h4", "h5", "h6"] as const;

const Heading = ({ heading }: { readonly heading: Extract<Block, { type: "heading" }> }) => {
  const Tag = HEADINGS[(useContext(Depths).get(heading) ?? 1) - 1] ?? "h6";
  return (
    <Tag data-level={heading.level} dir="auto">
      <Inlines tokens={heading.children} />
    </Tag>
  );
};

/** A part of a long text has at least so many characters, and whole lines. */
const PART = 8 * 1024;

const partsOf = (text: string): readonly string[] => {
  const parts: string[] = [];
  let from = 0;
  for (let end = text.indexOf("\n", PART); end !== -1; end = text.indexOf("\n", from + PART)) {
    parts.push(text.slice(from, end));
    from = end + 1;
  }
  return [...parts, text.slice(from)];
};

/** While a long text grows, its earlier parts stay as they are, and the browser lays out the last one only. */
const Part = memo(({ text }: { readonly text: string }) => (
  <div className="text" dir="auto">
    <Words text={text} />
  </div>
));

const BlockView = memo(({ block }: { readonly block: Block }) => {
  switch (block.type) {
    case "heading":
      return <Heading heading={block} />;
    case "code":
      return (
        <Copied text={block.text} what="the code">
          <pre dir="ltr" tabIndex={0} aria-label={block.language === "" ? "Code" : `Code: ${block.language}`}>
            <code>
              <Code
                language={languageNamed(block.language)}
                text={block.text}
                plain={<Words text={block.text} />}
              />
            </code>
          </pre>
        </Copied>
      );
    case "quote":
      return (
        <blockquote>
          <Blocks blocks={block.blocks} />
        </blockquote>
      );
    case "list": {
      const entries = block.entries.map((entry, index) => <Item key={index} entry={entry} />);
      return block.ordered ? <ol start={block.start}>{entries}</ol> : <ul>{entries}</ul>;
    }
    case "table":
      return <Table table={block} />;
    case "rule":
      return <hr />;
    case "plain":
      return partsOf(block.text).map((part, index) => <Part key={index} text={part} />);
    default:
      return (
        <p dir="auto">
          <Inlines tokens={block.children} />
        </p>
      );
  }
});

const Blocks = ({ blocks }: { readonly blocks: readonly Block[] }) =>
  blocks.map((block, index) => <BlockView key={index} block={block} />);

/** A text of another author. @param isGrowing whether more of it may come */
export const Markdown = memo(
  ({ text, isGrowing = false }: { readonly text: string; readonly isGrowing?: boolean }) => {
    const known = useRef<Read | null>(null);
    const shown = text.slice(0, SHOWN_MAX);
    // A text that has ended is read whole once.
    const read = readOn(shown, isGrowing ? known.current : null);
    known.current = read;
    return (
      <div className="markdown">
        <Depths value={outline(read.blocks)}>
          <Blocks blocks={read.blocks} />
        </Depths>
        {text.length > SHOWN_MAX && (
          <p className="quiet">{`${text.length - SHOWN_MAX} more characters are not shown.`}</p>
        )}
      </div>
    );
  },
);

/** The tab of the files: a tree of the workspace that is read directory by directory, and the text of one file. */
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Answer } from "../../../src/cli/contract.ts";
import { readAt } from "../../api/client.ts";
import { FILE_LINES } from "../../diff/files.ts";
import { TextLines } from "../../diff/lines.tsx";
import { grouped, size } from "../../elements/format.ts";

type Found = Answer<"GET /v1/projects/:pid/sessions/:sid/workspace/files">;
type Directory = Extract<Found, { readonly kind: "directory" }>;
type File = Extract<Found, { readonly kind: "file" }>;

interface Tree {
  /** By path. Text: why it could not be read. */
  readonly read: ReadonlyMap<string, Found | string>;
  /** The path of the shown file. */
  readonly file: string | null;
  readonly openDirectory: (path: string) => void;
  readonly showFile: (path: string) => void;
}

const Note = ({ children }: { readonly children: ReactNode }) => <p className="quiet">{children}</p>;

const below = (directory: string, name: string): string => (directory === "" ? name : `${directory}/${name}`);

type EntryParts = {
  readonly tree: Tree;
  readonly path: string;
  readonly entry: Directory["entries"][number];
};

const Entry = ({ tree, path, entry: { name, kind, size: bytes } }: EntryParts) => {
  if (kind === "directory")
    return (
      <li>
        <details
          data-directory={path}
          onToggle={({ currentTarget }) => {
            if (currentTarget.open && !tree.read.has(path)) tree.openDirectory(path);
          }}
        >
          <summary>{`${name}/`}</summary>
          <Entries tree={tree} path={path} />
        </details>
      </li>
    );
  if (kind !== "file")
    return (
      <li className="quiet">
        {name}
        {kind === "link" ? " (link)" : " (cannot be read)"}
      </li>
    );
  return (
    <li>
      <button
        type="button"
        className="plain"
        aria-pressed={tree.file === path}
        onClick={() => tree.showFile(path)}
      >
        {name}
      </button>{" "}
      <span className="quiet">{size(bytes ?? 0)}</span>
    </li>
  );
};

const Entries = ({ tree, path }: { readonly tree: Tree; readonly path: string }) => {
  const found = tree.read.get(path);
  if (found === undefined) return <Note>Loading…</Note>;
  if (typeof found === "string") return <p className="refusal">{found}</p>;
  if (found.kind === "file") return <Note>This is a file now. Read the files again.</Note>;
  if (found.entries.length === 0) return <Note>Empty.</Note>;
  return (
    <ul className="tree-list">
      {found.entries.map((entry) => (
        <Entry key={entry.name} tree={tree} path={below(path, entry.name)} entry={entry} />
      ))}
      {found.truncated && <li className="quiet">It has more entries than the page lists.</li>}
    </ul>
  );
};

const Text = ({ path, file: { text, truncated } }: { readonly path: string; readonly file: File }) => {
  const lines = useMemo(() => (text ?? "").replace(/\n$/, "").split("\n"), [text]);
  const shown = useMemo(() => lines.slice(0, FILE_LINES), [lines]);
  if (text === null) return <Note>This file is not text.</Note>;
  if (text === "") return <Note>This file is empty.</Note>;
  return (
    <>
      <TextLines lines={shown} path={path} />
      {(truncated || shown.length < lines.length) && (
        <Note>{`The page shows the first ${grouped(shown.length)} lines.`}</Note>
      )}
    </>
  );
};

/** The file is below the tree, and so perhaps below the window: the reader is led to it. */
const ShownFile = ({ tree, path }: { readonly tree: Tree; readonly path: string }) => {
  const heading = useRef<HTMLHeadingElement>(null);
  const found = tree.read.get(path);
  const isRead = found !== undefined;
  useEffect(() => {
    if (!isRead) return;
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: "start" });
  }, [isRead]);
  return (
    <section aria-label={path} aria-live="polite">
      <h2 ref={heading} tabIndex={-1}>
        {path}
      </h2>
      {found === undefined && <Note>Loading…</Note>}
      {typeof found === "string" && <p className="refusal">{found}</p>}
      {typeof found === "object" &&
        (found.kind === "file" ? <Text path={path} file={found} /> : <Entries tree={tree} path={path} />)}
    </section>
  );
};

/** @param url of the session in the API */
export const WorkspaceFiles = ({ url }: { readonly url: string }) => {
  const [found, setFound] = useState<Tree["read"]>(new Map());
  const [file, setFile] = useState<string | null>(null);
  const read = useCallback(
    async (path: string): Promise<void> => {
      const query = path === "" ? "" : `?path=${encodeURIComponent(path)}`;
      const answer = await readAt<"GET /v1/projects/:pid/sessions/:sid/workspace/files">(
        `${url}/workspace/files${query}`,
      ).catch((error: unknown) => (error instanceof Error ? error.message : String(error)));
      setFound((known) => new Map(known).set(path, answer));
    },
    [url],
  );
  useEffect(() => void read(""), [read]);
  const showFile = (path: string): void => {
    // Its text may have changed.
    setFound((known) => new Map([...known].filter(([one]) => one !== path)));
    setFile(path);
    void read(path);
  };
  const tree: Tree = { read: found, file, openDirectory: (path) => void read(path), showFile };
  return (
    <div className="tree">
      <p>
        <button type="button" onClick={() => void Promise.all([...found.keys()].map(read))}>
          Read again
        </button>
      </p>
      <Entries tree={tree} path="" />
      {file !== null && <ShownFile key={file} tree={tree} path={file} />}
    </div>
  );
};

/** A page of a tree in a message between nodes: the contents are base64. */
import type { TreeFile, TreePage } from "../git/port.ts";

interface EncodedPage extends Omit<TreePage, "entries"> {
  readonly entries: readonly (Omit<TreeFile, "content"> & { readonly content: string })[];
}

/** The page as JSON can carry it. */
export const encodePage = ({ entries, next }: TreePage): EncodedPage => ({
  next,
  entries: entries.map(({ path, kind, size, content }) => ({
    path,
    kind,
    size,
    content: Buffer.from(content).toString("base64"),
  })),
});

/** Reads an answer of another node, which is trusted to fit the port. */
export const decodePage = (value: unknown): TreePage | null => {
  const page = value as EncodedPage | null;
  return (
    page && {
      next: page.next,
      entries: page.entries.map(({ path, kind, size, content }) => ({
        path,
        kind,
        size,
        content: new Uint8Array(Buffer.from(content, "base64")),
      })),
    }
  );
};

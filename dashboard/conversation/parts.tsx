/** Pieces of several kinds of items. */
import { type ReactNode, useState } from "react";
import type { Item } from "./reading/model.ts";
import { clock, duration, moment } from "../elements/format.ts";

/** The time of the day. */
export const Clock = ({ at }: { readonly at: string }) => (
  <time dateTime={at} title={moment(at)}>
    {clock(at)}
  </time>
);

/** What the reader has opened, by name. It outlasts the elements, which leave the document when the reader scrolls. */
export interface Opened {
  readonly has: (name: string) => boolean;
  readonly set: (name: string, isOpened: boolean) => void;
}

interface Folded {
  readonly name: string;
  readonly opened: Opened;
  readonly summary: ReactNode;
  readonly children: () => ReactNode;
}

/** Details whose content is made only while they are open. */
export const Folded = ({ name, opened, summary, children }: Folded) => {
  const [isOpened, setOpened] = useState(() => opened.has(name));
  return (
    <details
      open={isOpened}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open === isOpened) return;
        setOpened(currentTarget.open);
        opened.set(name, currentTarget.open);
      }}
    >
      <summary>{summary}</summary>
      {isOpened && <div className="folded">{children()}</div>}
    </details>
  );
};

/** How long something took. */
export const Took = ({ item: { created_at: from, completed_at: to } }: { readonly item: Item }) =>
  to !== null && <span className="quiet took">{duration(Date.parse(to) - Date.parse(from))}</span>;

/**
 * Where the reader looks on the page of a session: the tab of its panel is in the address, so that a reload and a link keep it. Whether
 * the panel is open, and how wide it is, the browser remembers for all sessions.
 */
import { useState } from "react";
import { browserChoice, objectOr } from "../frame/kept.ts";
import { setFilter, useAddressQuery } from "../ui/address.ts";
import { useMedia } from "../ui/media.ts";

export const TABS = ["changes", "files", "terminal", "preview", "log", "details"] as const;
export type Tab = (typeof TABS)[number];

/** The panel's share of the page, in percent. */
export const WIDTH = { least: 20, first: 42, most: 75 };

/** A narrower window shows one thing at a time: the conversation, or a tab. As in sessions.css. */
const NARROW = "(max-width: 60rem)";
const STORED = "session-panel";

interface Panel {
  readonly isOpen: boolean;
  readonly width: number;
}

const FIRST: Panel = { isOpen: true, width: WIDTH.first };

const withinWidth = (width: number): number => Math.min(WIDTH.most, Math.max(WIDTH.least, width));

const stored = browserChoice(STORED, (kept): Panel => {
  const { isOpen, width } = objectOr(kept, FIRST);
  return { isOpen: isOpen === true, width: withinWidth(Number(width) || FIRST.width) };
});

export interface Place {
  readonly isNarrow: boolean;
  /** Null: in a narrow window, the conversation is shown. In a wide one, the panel is closed. */
  readonly tab: Tab | null;
  /** Of the panel, in percent. */
  readonly width: number;
  readonly choose: (tab: Tab) => void;
  readonly close: () => void;
  /** Opens the panel again. */
  readonly open: () => void;
  readonly resize: (width: number) => void;
}

/** @param tabs those that the reader may see @param first the one of an address that names none */
export const usePlace = (tabs: readonly Tab[], first: Tab): Place => {
  const named = useAddressQuery().get("tab");
  const asked = tabs.find((tab) => tab === named) ?? null;
  const isNarrow = useMedia(NARROW);
  const [panel, setPanel] = useState(stored.read);
  const change = (changed: Partial<Panel>): void => {
    const next = { ...panel, ...changed };
    setPanel(next);
    stored.keep(next);
  };
  return {
    isNarrow,
    // A link to a tab opens it.
    tab: asked ?? (panel.isOpen && !isNarrow ? first : null),
    width: panel.width,
    choose: (tab) => {
      if (!isNarrow) change({ isOpen: true });
      setFilter("tab", tab);
    },
    close: () => {
      if (!isNarrow) change({ isOpen: false });
      setFilter("tab", "");
    },
    open: () => change({ isOpen: true }),
    resize: (width) => change({ width: withinWidth(width) }),
  };
};

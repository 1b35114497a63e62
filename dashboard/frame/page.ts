/** What the frame knows of a page. */
import type { Child } from "../elements/dom.ts";
import type { Listener } from "../live/live.ts";
import type { Me } from "../wire.d.ts";
import type { Action } from "./actions.ts";

/** What `load` of a page answers: only the page itself knows its form. */
// eslint-disable-next-line typescript/no-explicit-any -- the frame passes on what it does not read
export type Data = any;

/** How much of a page's list is shown. */
export interface Extent {
  pages: number;
  /** The filters of the list. */
  query: URLSearchParams;
}

/** What a page follows during a visit. */
export interface Live {
  readonly end: () => void;
  /** After each drawing. */
  readonly drawn?: (main: HTMLElement, data: Data, me: Me | null) => void;
}

export interface Page {
  /** Readers who are not signed in see it, too. */
  readonly isOpen?: boolean;
  /** Few events tell of what it shows. */
  readonly isPolled?: boolean;
  /** Events tell of nearly all that it shows. */
  readonly isHeard?: boolean;
  /** It hears of the project by a stream of its own. */
  readonly hearsProject?: boolean;
  /** Loads its script. */
  readonly ready?: () => Promise<void>;
  readonly load: (params: string[], extent: Extent) => Promise<Data>;
  readonly title: (data: Data, live: Data) => string;
  readonly view: (data: Data, me: Me | null, live: Data) => Child[];
  readonly follow?: (params: string[], redraw: () => void, project: Listener) => Live;
}

/** What ui/framed-page.tsx makes of a page: the frame begins it, and it draws itself. */
export interface RemadePage extends Page {
  readonly begin: (params: string[], frame: { redraw: () => void; project: Listener }) => void;
  readonly drawn: NonNullable<Live["drawn"]>;
  readonly end: () => void;
}

/** A module that is loaded when something of it is first needed. */
export interface Module {
  readonly pages?: Readonly<Record<string, Data>>;
  /** Of its buttons, by their `data-action`. */
  readonly actions?: Readonly<Record<string, Action>>;
  /** The conversation is no page: it begins by this (conversation/show.ts). */
  readonly mount?: Data;
}

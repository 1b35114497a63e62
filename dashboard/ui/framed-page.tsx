/**
 * A page in the frame (app.ts), which has the header, the address, the reader's session and the project's events. The frame asks for
 * the page's data; the page draws them from `queries`.
 */
import { QueryClientProvider } from "@tanstack/react-query";
import type { ComponentType, ReactNode } from "react";
import { createRoot, type Root } from "react-dom/client";
import type { Answer } from "../../src/cli/contract.ts";
import { queries } from "../api/queries.ts";
import { h } from "../elements/dom.ts";
import type { Listener } from "../live/live.ts";
import { Fault } from "./fault.tsx";

type Me = Answer<"GET /v1/me">;

/** What the frame has for a page that follows something by itself. It is the same for the whole visit. */
export interface Frame {
  /** Draws the page again, soon: a burst of calls causes one drawing. */
  readonly redraw: () => void;
  /** Hears of the project by a stream of the page (`hearsProject`). */
  readonly project: Listener;
}

/** What a page follows during a visit. */
interface Followed {
  readonly end: () => void;
}

export interface PageDefinition<D, F extends Followed> {
  /** Reads what the page shows, and again when it may have changed. The frame takes null for data that did not come yet. */
  readonly load: (params: readonly string[], query: URLSearchParams) => Promise<D>;
  /** Follows what no event of the project tells, as soon as the page's script is loaded: it may be before its data are. */
  readonly follow?: (params: readonly string[], frame: Frame) => F;
  readonly title: (data: D, following: F | null) => string;
  /** Above the page. It stays if the page has a fault. */
  readonly head?: (data: D) => ReactNode;
  readonly Body: ComponentType<Shown<D, F>>;
}

interface Shown<D, F> {
  readonly data: D;
  /** The reader. Null: the frame does not know yet. */
  readonly me: Me | null;
  /** Null: the page follows nothing. */
  readonly following: F | null;
}

const OWN = "[data-own=page]";

/** The page as the frame knows it (`frame/pages.ts`). */
export const framedPage = <D extends object | void, F extends Followed = Followed>({
  load,
  follow,
  title,
  head,
  Body,
}: PageDefinition<D, F>) => {
  let following: F | null = null;
  let root: Root | null = null;
  let place: Element | null = null;
  const end = (): void => {
    root?.unmount();
    [root, place] = [null, null];
  };
  const leave = (): void => {
    end();
    following?.end();
    following = null;
  };
  return {
    load: (params: readonly string[], { query }: { readonly query: URLSearchParams }) => load(params, query),
    title: (data: D) => title(data, following),
    view: () => [h("div", { class: "framed", "data-own": "page", "data-key": "page" })],
    /** Once for a visit. */
    begin: (params: readonly string[], frame: Frame): void => {
      following = follow?.(params, frame) ?? null;
    },
    /** After each drawing of the frame. */
    drawn: (main: Element, data: D, me: Me | null): void => {
      const present = main.querySelector(OWN);
      if (present !== place) {
        end();
        [root, place] = present === null ? [null, null] : [createRoot(present), present];
      }
      root?.render(
        <QueryClientProvider client={queries}>
          {head?.(data)}
          <div className="page">
            <Fault>
              <Body data={data} me={me} following={following} />
            </Fault>
          </div>
        </QueryClientProvider>,
      );
    },
    end: leave,
  };
};

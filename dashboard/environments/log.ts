/**
 * Follows one build until it is over, with its log.
 *
 * A log has at most 4 MiB. It is in the document as pieces of PIECE characters, of which the browser lays out only those
 * that are in view.
 */
import { request } from "../api/client.ts";
import { h, morph } from "../elements/dom.ts";
import { type Build, isOver } from "./build.ts";

const POLL_MS = 1000;
/** The pause after a failed read. */
const RETRY_MS = 5000;
/** As many pieces as the API gives at once. */
const LIMIT = 200;
/** A piece ends at the last end of a line before this many characters. Only a longer line is split. */
const PIECE = 16_384;
/** This near to the end, in pixels, counts as at it. */
const AT_END = 32;

/** How much of the text makes the next piece. @param text longer than a piece */
const cutOf = (text: string): number => {
  const line = text.lastIndexOf("\n", PIECE - 1) + 1;
  if (line > 0) return line;
  // Neither a character outside of the basic plane nor the end of a line is split.
  return /[\ud800-\udbff\r]/.test(text[PIECE - 1] ?? "") ? PIECE + 1 : PIECE;
};

/** An element that shows a growing text. Its end stays in view until the reader scrolls up. */
export interface Log {
  readonly element: HTMLElement;
  readonly add: (text: string) => void;
  readonly clear: () => void;
  readonly end: () => void;
}

/** Keeps the end of an element in view. */
const followEnd = (element: HTMLElement, inside: HTMLElement) => {
  let follows = true;
  let top = 0;
  const toEnd = (): void => {
    if (follows) element.scrollTop = element.scrollHeight;
  };
  element.addEventListener("scroll", () => {
    const { scrollTop, scrollHeight, clientHeight } = element;
    if (scrollHeight - scrollTop - clientHeight <= AT_END) follows = true;
    else if (scrollTop < top) follows = false;
    top = scrollTop;
  });
  // A piece gets its true height when it comes into view.
  const sizes = new ResizeObserver(toEnd);
  sizes.observe(inside);
  sizes.observe(element);
  return { toEnd, end: () => sizes.disconnect() };
};

export const makeLog = (): Log => {
  const lines = h("span", { class: "pieces" });
  const element = h(
    "pre",
    { class: "logs build-log", tabindex: 0, role: "region", "aria-label": "Log of the build" },
    lines,
  );
  const { toEnd, end } = followEnd(element, lines);
  /** The text of the last piece. */
  let tail = "";
  let last: HTMLElement | null = null;
  const show = (text: string): void => {
    last ??= lines.appendChild(h("span", {}));
    morph(last, [text]);
  };
  return {
    element,
    end,
    clear: () => {
      lines.replaceChildren();
      [tail, last] = ["", null];
    },
    add: (text) => {
      tail += text;
      while (tail.length > PIECE + 1) {
        const cut = cutOf(tail);
        show(tail.slice(0, cut));
        [tail, last] = [tail.slice(cut), null];
      }
      if (tail !== "") show(tail);
      toEnd();
    },
  };
};

/** A build that is begun again clears its log after it is `resolving`. @returns names the log */
const lifeOf = ({ tries, status }: Build): string => (tries > 1 ? `${tries} ${status === "resolving"}` : "");

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Reads a build again and again while the page is visible, until the build is over. */
export class Following {
  /** The build as it was last read. */
  build: Build | null = null;
  /** Why it could not be read. */
  problem: string | null = null;
  readonly log: Log | null;
  readonly #changed: () => void;
  #hasEnded = false;
  /** The number of the last piece of the log. */
  #after = 0;
  // oxlint-disable-next-line no-restricted-globals -- the type of the browser's timer
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param log where the output goes; null: it is not read */
  constructor(changed: () => void, log: Log | null) {
    this.#changed = changed;
    this.log = log;
  }

  /** Follows this build, if it is another one. */
  readonly see = (build: Build): void => {
    if (this.build?.id === build.id || this.#hasEnded) return;
    clearTimeout(this.#timer);
    this.build = build;
    void this.#look(build);
  };

  readonly end = (): void => {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.log?.end();
  };

  /** Adds what follows. @returns whether nothing will follow */
  async #readLog({ project_id: pid, id: bid }: Build): Promise<boolean> {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- each page continues after the one before
      const { pieces, complete } = await request("GET /v1/projects/:pid/environment/builds/:bid/log", {
        params: { pid, bid },
        query: { after: this.#after, limit: LIMIT },
      });
      this.log?.add(pieces.map(({ text }) => text).join(""));
      this.#after = pieces.at(-1)?.number ?? this.#after;
      if (complete || pieces.length < LIMIT || this.#hasEnded) return complete;
    }
  }

  /** @returns whether all is known */
  async #read(build: Build): Promise<boolean> {
    const isWhole = this.log === null || (await this.#readLog(build));
    const params = { pid: build.project_id, bid: build.id };
    const next = await request("GET /v1/projects/:pid/environment/builds/:bid", { params });
    if (this.build !== build) return true;
    this.build = next;
    this.problem = null;
    if (this.log !== null && lifeOf(next) !== lifeOf(build)) {
      this.log.clear();
      this.#after = 0;
      return false;
    }
    return isWhole && isOver(next);
  }

  async #look(build: Build): Promise<void> {
    let isDone = false;
    try {
      isDone = document.visibilityState === "visible" && (await this.#read(build));
    } catch (error) {
      this.problem = messageOf(error);
    }
    const { build: next } = this;
    if (this.#hasEnded || next?.id !== build.id) return;
    this.#changed();
    if (isDone) return;
    // oxlint-disable-next-line no-restricted-globals -- the browser's timer
    this.#timer = setTimeout(() => void this.#look(next), this.problem === null ? POLL_MS : RETRY_MS);
  }
}

/** Whichever of the two is known to be newer. */
export const newest = (loaded: Build, following: Following | null): Build => {
  const seen = following?.build;
  return !isOver(loaded) && seen?.id === loaded.id ? seen : loaded;
};

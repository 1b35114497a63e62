/**
 * A session's conversation on its page: reads it, and loads what shows it (page.tsx). It draws itself, because text that grows changes
 * several times a second.
 */
import { finishedTools, openRequests } from "./reading/model.ts";
import { followConversation } from "./reading/stream.ts";
import { h } from "../elements/dom.ts";
import { bring, FOLDERS } from "../frame/later.ts";
import type { Listener } from "../live/live.ts";
import { lackedRole } from "../frame/roles.ts";
import type { Around } from "./foot/foot.ts";
import type { mount, Shown } from "./page.tsx";

const DRAW_MS = 100;
/** A slow drawing leaves the page this many times as long to itself. */
const REST = 4;

const isSame = (a: Around | null, b: Around): boolean => a?.session === b.session && a.me === b.me;

class Conversation {
  readonly reading;
  readonly #path: string;
  readonly #changed: () => void;
  readonly #root = h("div", { class: "conversation" }, h("p", { class: "loading" }, "Loading…"));
  /** Ends the wait for the next drawing. Null: nothing has changed. */
  #wait: (() => void) | null = null;
  #rest = DRAW_MS;
  #told = "";
  #shown: Shown | null = null;
  #known: Around | null = null;
  #lacked: string | null = null;
  #isWanted = false;

  constructor(path: string, changed: () => void, project: Listener) {
    this.#path = path;
    this.#changed = changed;
    this.reading = followConversation(path, () => this.#drawSoon(), project);
  }

  /** Puts it into the page. @param main has its place */
  readonly show = (main: HTMLElement, around: Around): void => {
    const place = main.querySelector("[data-own=conversation]");
    if (place === null) return;
    const isNew = this.#root.parentNode !== place;
    if (isNew) place.replaceChildren(this.#root);
    void this.#load(around);
    const lacked = lackedRole("send-message");
    const isKnown = isSame(this.#known, around) && this.#lacked === lacked;
    [this.#known, this.#lacked] = [around, lacked];
    // The page and the conversation show the same state.
    if (!isNew && isKnown && this.#wait === null) return;
    this.#shown?.show(around);
    this.#draw();
  };

  readonly end = (): void => {
    this.#isWanted = false;
    this.#wait?.();
    this.#shown?.end();
    this.reading.end();
  };

  readonly #draw = (): void => {
    this.#wait?.();
    this.#wait = null;
    const before = performance.now();
    this.#shown?.draw();
    if (this.#shown?.follows() === true) this.reading.forget();
    this.#rest = Math.max(DRAW_MS, REST * (performance.now() - before));
    const { conversation, heard } = this.reading;
    const tells = `${heard} ${conversation.turn.state} ${openRequests(conversation).length} ${finishedTools(conversation)}`;
    if (this.#told !== tells) this.#changed();
    this.#told = tells;
  };

  #drawSoon(): void {
    if (this.#wait !== null) return;
    // oxlint-disable-next-line no-restricted-globals -- the browser's timer
    const timer = setTimeout(this.#draw, this.#rest);
    this.#wait = () => clearTimeout(timer);
  }

  async #load(around: Around): Promise<void> {
    if (this.#isWanted) return;
    this.#isWanted = true;
    try {
      const page = await bring(async () => (await FOLDERS["conversation"]?.()) ?? {});
      if (!this.#isWanted) return;
      const begin: typeof mount = page.mount;
      this.#shown = begin(this.#root, {
        path: this.#path,
        reading: this.reading,
        around: this.#known ?? around,
        changed: this.#draw,
      });
    } catch (error) {
      // The next drawing of the page tries again.
      this.#isWanted = false;
      this.#root.replaceChildren(
        h("p", { class: "refusal" }, error instanceof Error ? error.message : String(error)),
      );
    }
  }
}

/**
 * Follows a session's conversation and shows it.
 *
 * @param path of the session in the API
 * @param changed called when the page around it has to change
 */
export const showConversation = (path: string, changed: () => void, project: Listener) =>
  new Conversation(path, changed, project);

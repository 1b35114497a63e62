/**
 * A session's conversation on its page: reads it, and loads what shows it (conversation/page.tsx). It draws itself, because text that
 * grows changes several times a second.
 */
import { h } from "./dom.js";
import { finishedTools, openRequests } from "./conversation-model.js";
import { followConversation } from "./conversation-stream.js";
import { makeFoot } from "./conversation-foot.js";
import { bring, FOLDERS } from "./later.js";

/** @typedef {import("./conversation-foot.js").Around} Around */

/**
 * @typedef {object} Shown a conversation that is shown
 * @property {() => void} draw shows what has changed in it
 * @property {(around: Around) => void} show shows it with what the page knows beside it
 * @property {() => boolean} follows whether the reader is at its end
 * @property {() => void} toEnd
 * @property {() => void} end
 */

const DRAW_MS = 100;
/** A slow drawing leaves the page this many times as long to itself. */
const REST = 4;

/**
 * Follows a session's conversation and shows it.
 *
 * @param {string} path of the session in the API
 * @param {() => void} changed called when the page around it has to change
 * @param {import("./live.js").Listener} project
 */
export const showConversation = (path, changed, project) => {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let drawing;
  let rest = DRAW_MS;
  let told = "";
  /** @type {Shown | null} */
  let shown = null;
  /** @type {Around | null} */
  let known = null;
  let isWanted = false;
  const root = h("div", { class: "conversation" }, h("p", { class: "loading" }, "Loading…"));

  const draw = () => {
    clearTimeout(drawing);
    drawing = undefined;
    const before = performance.now();
    shown?.draw();
    if (shown?.follows() === true) reading.forget();
    rest = Math.max(DRAW_MS, REST * (performance.now() - before));
    const { conversation } = reading;
    const tells = `${reading.heard} ${conversation.turn.state} ${openRequests(conversation).length} ${finishedTools(conversation)}`;
    if (told !== tells) changed();
    told = tells;
  };
  const drawSoon = () => {
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    drawing ??= setTimeout(draw, rest);
  };
  const reading = followConversation(path, drawSoon, project);
  // The reader sees the effect of what they did at once.
  const foot = makeFoot(path, reading, { changed: draw, sent: () => shown?.toEnd() });

  /** @param {Around} around */
  const load = async (around) => {
    if (isWanted) return;
    isWanted = true;
    try {
      const { mount } = await bring(async () => FOLDERS["conversation"]?.());
      if (isWanted) shown = mount(root, { path, reading, foot }, known ?? around);
    } catch (error) {
      // The next drawing of the page tries again.
      isWanted = false;
      root.replaceChildren(
        h("p", { class: "refusal" }, error instanceof Error ? error.message : String(error)),
      );
    }
  };

  return {
    reading,
    /** Puts it into the page. @param {HTMLElement} main @param {Around} around */
    show: (main, around) => {
      const place = main.querySelector("[data-own=conversation]");
      if (place === null) return;
      const isNew = root.parentNode !== place;
      if (isNew) place.replaceChildren(root);
      void load(around);
      const isSame = known?.session === around.session && known.me === around.me;
      known = around;
      foot.around(around);
      // The page and the conversation show the same state.
      if (isNew || !isSame || drawing !== undefined) {
        shown?.show(around);
        draw();
      }
      if (isNew) foot.composer.fit();
    },
    end: () => {
      isWanted = false;
      clearTimeout(drawing);
      shown?.end();
      foot.end();
      reading.end();
    },
  };
};
